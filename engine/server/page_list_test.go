package server_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestTheProfilePageListsPublicPosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	p := registry.DefaultUser()
	p.Profile = registry.Profile{Name: "Alice <3", Summary: "I keep bees with @carol@peer.example. #Bees", Mentions: []registry.Mention{{Handle: "@carol@peer.example", URL: "https://peer.example/@carol"}}, Icon: f.local.Picture(f.alice, "abc.png"), Image: "https://img.example/tracker.png",
		Fields: []registry.Field{{Name: "Home", Value: "https://alice.example/"}}}
	if err := f.registry.UpdateUser(f.alice, func(now *registry.User) error { *now = p; return nil }); err != nil {
		t.Fatal(err)
	}
	f.post(f.alice, "oldest", start, vocab.Public)
	f.post(f.alice, "unlisted", start.Add(1*time.Minute), f.local.Followers(f.alice), vocab.Public)
	f.post(f.alice, "for followers", start.Add(2*time.Minute), f.local.Followers(f.alice))
	f.post(f.alice, "for carol", start.Add(3*time.Minute), f.carol.ID)
	_, gone := f.post(f.alice, "regretted", start.Add(4*time.Minute), vocab.Public)
	f.bury(f.alice, gone)
	f.post(f.alice, "newest", start.Add(5*time.Minute), vocab.Public)
	f.post(f.bob, "by bob", start, vocab.Public)
	hidden := []string{"for followers", "for carol", "regretted", "by bob", "hidden.example", "img.example", "<script"}

	r := f.get("/@alice").want(t, 200)
	r.holds(t, []string{"Alice &lt;3", "@alice@example.org", `rel="me nofollow noopener noreferrer"`, `src="https://example.org/users/alice/media/abc.png"`, "newest", "unlisted",
		`<link rel="alternate" type="application/activity+json" href="https://example.org/users/alice">`, `href="https://example.org/@alice/tags/bees"`, `href="https://peer.example/@carol"`, "noindex"}, append(hidden, "oldest"))
	_, next, found := strings.Cut(string(r.body), `rel="next" href="`)
	next, _, _ = strings.Cut(next, `"`)
	if !found {
		t.Fatalf("no next page in %s", r.body)
	}
	f.get(next).want(t, 200).holds(t, []string{"oldest"}, append(hidden, "newest", "unlisted", `rel="next"`))
	for _, wrong := range []string{"/@bob?cursor=" + strings.SplitN(next, "=", 2)[1], "/@alice?cursor=x"} {
		f.get(wrong).want(t, 400)
	}

	policy := r.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "script") ||
		r.Header.Get("Content-Type") != "text/html; charset=utf-8" || r.Header.Get("Cache-Control") != "public, max-age=60" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the page has the headers %v", r.Header)
	}
	if again := f.get("/@alice", header("If-None-Match", r.Header.Get("ETag"))); again.StatusCode != 304 {
		t.Errorf("asked again: %d", again.StatusCode)
	}
	p.Indexable = true
	if err := f.registry.UpdateUser(f.alice, func(now *registry.User) error { *now = p; return nil }); err != nil {
		t.Fatal(err)
	}
	// the server no longer keeps the page after this
	f.post(f.alice, "later", start.Add(time.Hour), vocab.Public)
	f.get("/@alice").want(t, 200).holds(t, []string{"later"}, []string{"noindex"})
}

// A post that cannot be read hides no other post, and the pages go on behind it.
func TestAPostThatCannotBeReadHidesNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	var posts []vocab.ID
	for n, text := range []string{"oldest", "unreadable", "newer", "newest"} {
		_, object := f.post(f.alice, text, start.Add(time.Duration(n)*time.Minute), vocab.Public)
		posts = append(posts, object)
	}
	f.retype(f.alice, posts[1], 16)
	f.retype(f.alice, posts[3], "No te")
	f.get("/@alice/feed.atom").want(t, 200).holds(t, []string{"newest", "newer"}, []string{"unreadable"})
	all := ""
	for next, pages := "/@alice", 0; next != "" && pages < len(posts); pages++ {
		body := string(f.get(next).want(t, 200).body)
		all += body
		_, next, _ = strings.Cut(body, `rel="next" href="`)
		next, _, _ = strings.Cut(next, `"`)
	}
	for text, want := range map[string]int{"oldest": 1, "unreadable": 0, "newer": 1, "newest": 1} {
		if n := strings.Count(all, text+"</p>"); n != want {
			t.Errorf("the pages show %q %d times, want %d", text, n, want)
		}
	}
}

func TestPagesSayWhetherAPollIsOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, object := f.post(f.alice, "which", start.Add(-time.Hour), vocab.Public)
	ask := func(end time.Time) {
		f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Replace(ctx, object, vocab.Doc{"id": string(object), "type": "Question", "attributedTo": string(f.local.ID(f.alice)), "content": "<p>which</p>",
				"to": []any{string(vocab.Public)}, "oneOf": []any{vocab.Doc{"type": "Note", "name": "honey"}}, "endTime": end.Format(time.RFC3339)}.JSON(), nil, start)
			return err
		})
	}
	for end, want := range map[time.Time]string{start.Add(-time.Minute): "Closed 2026-02-21 11:59 UTC", start.Add(time.Minute): "Open until 2026-02-21 12:01 UTC"} {
		ask(end)
		for _, address := range []string{"/@alice", f.local.PostPage(object)} {
			f.get(address).want(t, 200).holds(t, []string{want}, nil)
		}
	}
}

func TestThePagesOfTagsListPostsInAnySpelling(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	for n, tag := range []string{"#Bees", "#BEES", "#bees2", "#Straße", "#Cats", "#cats", "#CATS"} {
		_, object := f.post(f.alice, fmt.Sprint("post-", n), start.Add(time.Duration(n)*time.Minute), vocab.Public)
		f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Replace(ctx, object, vocab.Doc{"id": string(object), "type": "Note", "attributedTo": string(f.local.ID(f.alice)), "content": fmt.Sprintf("<p>post-%d</p>", n),
				"to": []any{string(vocab.Public)}, "tag": []any{vocab.Doc{"type": "Hashtag", "name": tag}}}.JSON(), nil, start.Add(time.Hour))
			return err
		})
	}
	r := f.get(f.local.TagPage(f.alice, "Bees")).want(t, 200)
	r.holds(t, []string{"post-0", "post-1", "#bees"}, []string{"post-2", "post-3"})
	f.get(f.local.TagPage(f.alice, "Straße")).want(t, 200).holds(t, []string{"post-3", "/tags/stra%C3%9Fe"}, []string{"post-0"})
	_, next, found := strings.Cut(string(f.get("/@alice/tags/CaTs").want(t, 200).body), `rel="next" href="`)
	next, _, _ = strings.Cut(next, `"`)
	if !found {
		t.Fatal("the page of three posts has no next one")
	}
	f.get(next).want(t, 200).holds(t, []string{"post-4"}, []string{"post-5", "post-6"})
	f.get("/@bob/tags/bees").want(t, 404)
	f.get("/@alice/tags/%3Cscript%3E").want(t, 404).holds(t, nil, []string{"<script>"})
	f.get("/@alice/tags/a%2Fb").want(t, 404)
}

func TestTheFeedOfAUserIsAtom(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	var objects []vocab.ID
	for n := range 3 {
		_, object := f.post(f.alice, fmt.Sprint("post ", n, `<script>evil()</script>`), start.Add(time.Duration(n)*time.Minute), vocab.Public)
		objects = append([]vocab.ID{object}, objects...)
	}
	f.post(f.alice, "secret", start.Add(time.Hour), f.local.Followers(f.alice))
	type link struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	}
	var got []vocab.ID
	for next := "/@alice/feed.atom"; next != ""; {
		r := f.get(next).want(t, 200)
		r.holds(t, nil, []string{"secret", "evil"})
		if r.Header.Get("Content-Type") != "application/atom+xml; charset=utf-8" || r.Header.Get("X-Robots-Tag") != "noindex" || r.Header.Get("ETag") == "" {
			t.Errorf("the feed has the headers %v", r.Header)
		}
		f.get(next, header("If-None-Match", r.Header.Get("ETag"))).want(t, 304)
		var feed struct {
			XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
			ID      string   `xml:"id"`
			Updated string   `xml:"updated"`
			Links   []link   `xml:"link"`
			Entries []struct {
				ID      vocab.ID `xml:"id"`
				Updated string   `xml:"updated"`
				Links   []link   `xml:"link"`
			} `xml:"entry"`
		}
		if err := xml.Unmarshal(r.body, &feed); err != nil {
			t.Fatalf("%v: %s", err, r.body)
		}
		if feed.ID != string(f.local.ID(f.alice)) || feed.Updated == "" || feed.Links[0] != (link{"self", origin + strings.TrimPrefix(next, origin)}) {
			t.Errorf("the feed is %+v", feed)
		}
		for _, e := range feed.Entries {
			if got = append(got, e.ID); e.Updated == "" || e.Links[0] != (link{"alternate", f.local.PostPage(e.ID)}) {
				t.Errorf("an entry is %+v", e)
			}
		}
		next = ""
		for _, l := range feed.Links {
			if l.Rel == "next" {
				next = l.Href
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(objects) {
		t.Errorf("the feed has %v, want %v", got, objects)
	}
}
