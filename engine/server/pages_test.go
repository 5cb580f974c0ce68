package server_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func withPages(d *server.Deps) { d.Local.OfferPages() }

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"

// pageOf returns the path of the page of an object of a user's.
func (f *fixture) pageOf(object vocab.ID) string {
	return strings.TrimPrefix(f.local.PostPage(object), origin)
}

// receiveAnswer stores what somebody answered to an object that u holds, for those in to.
func (f *fixture) receiveAnswer(u vocab.Username, to, author vocab.ID, name, content string, at time.Time, audience ...vocab.ID) vocab.ID {
	f.Helper()
	id := vocab.ID(author.Origin() + "/notes/" + name)
	named := make([]any, len(audience))
	for i, a := range audience {
		named[i] = string(a)
	}
	note := vocab.Doc{"id": string(id), "type": "Note", "attributedTo": string(author), "content": content, "inReplyTo": string(to), "to": named, "published": at.Format(time.RFC3339)}
	f.write(u, func(ctx context.Context, tx *db.Tx) error {
		if _, err := tx.AddObject(ctx, db.Object{ID: uuid.Must(uuid.NewV7()), URI: id, Published: at, Raw: note.JSON()}); err != nil {
			return err
		}
		return tx.AddActivity(ctx, db.Activity{ID: uuid.Must(uuid.NewV7()), URI: id + "/create", Direction: db.Inbound, Type: "Create", Actor: author, Object: id, Published: at,
			Raw: vocab.Doc{"id": string(id + "/create"), "type": "Create", "actor": string(author), "to": named, "object": note}.JSON()})
	})
	return id
}

// holds fails unless a page has all of these and none of those.
func (r response) holds(t *testing.T, all, none []string) {
	t.Helper()
	for _, s := range all {
		if !strings.Contains(string(r.body), s) {
			t.Errorf("the page has no %q:\n%s", s, r.body)
		}
	}
	for _, s := range none {
		if strings.Contains(string(r.body), s) {
			t.Errorf("the page has %q:\n%s", s, r.body)
		}
	}
}

func TestTheProfilePageListsPublicPosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	p := registry.DefaultUser()
	p.Profile = registry.Profile{Name: "Alice <3", Summary: "I keep bees. #Bees", Icon: f.local.Picture(f.alice, "abc.png"), Image: "https://img.example/tracker.png",
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
		`<link rel="alternate" type="application/activity+json" href="https://example.org/users/alice">`, `href="https://example.org/@alice/tags/bees"`, "noindex"}, append(hidden, "oldest"))
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
	f.post(f.alice, "later", start.Add(time.Hour), vocab.Public) // the page of before is forgotten
	f.get("/@alice").want(t, 200).holds(t, []string{"later"}, []string{"noindex"})
}

func TestThePageOfAPostShowsItsPublicThread(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages, func(d *server.Deps) { d.PageSize = 10 })
	enemy, _ := f.remote("https://peer.example/users/enemy")
	f.block(f.alice, enemy.ID)
	dan := f.user("dan")
	public := vocab.Public
	_, root := f.post(f.alice, "the root", start, public)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	first := f.receiveAnswer(f.alice, root, f.carol.ID, "1", `<p onclick="evil()">first answer</p><script>evil()</script><img src="https://img.example/t.png">`, at(1), public)
	f.receiveAnswer(f.alice, root, f.carol.ID, "2", "<p>in private</p>", at(2), f.local.ID(f.alice))
	f.receiveAnswer(f.alice, root, enemy.ID, "3", "<p>of an enemy</p>", at(3), public)
	f.receiveAnswer(f.alice, root, "https://blocked.example/users/x", "4", "<p>of a blocked host</p>", at(4), public)
	f.receiveAnswer(f.alice, first, f.local.ID(dan), "5", "<p>of dan</p>", at(5), public)
	f.receiveAnswer(f.alice, first, f.local.ID(f.bob), "6", "<p>of bob</p>", at(6), public)
	f.state(dan, instance.UserSuspended)
	r := f.get(f.pageOf(root)).want(t, 200)
	r.holds(t, []string{"the root", "first answer", "of bob", "@bob@example.org", `content="article"`, `href="` + string(root) + `"`},
		[]string{"in private", "of an enemy", "blocked host", "of dan", "<script", "evil", "img.example"})
	if before, _, _ := strings.Cut(string(r.body), "first answer"); !strings.Contains(before, "the root") {
		t.Error("the answer stands before the post")
	}

	// An answer of alice's shows what it answers, as far as that is public.
	secret := f.receiveAnswer(f.alice, "", f.carol.ID, "secret", "<p>carol's secret</p>", at(8), f.local.ID(f.alice))
	for parent, shows := range map[vocab.ID][2][]string{
		first:                                    {{"the root", "first answer", "an answer"}, {"Answers another post", "of an enemy"}},
		secret:                                   {{"an answer", "Answers another post"}, {"carol's secret"}},
		vocab.ID(enemy.ID.Origin() + "/notes/3"): {{"an answer", "Answers another post"}, {"of an enemy"}},
	} {
		own := f.local.NewObjectID(f.alice)
		f.write(f.alice, func(ctx context.Context, tx *db.Tx) error {
			_, err := tx.AddObject(ctx, db.Object{ID: uuid.Must(uuid.NewV7()), URI: own, Published: at(9), Raw: vocab.Doc{"id": string(own), "type": "Note", "attributedTo": string(f.local.ID(f.alice)),
				"content": "<p>an answer</p>", "inReplyTo": string(parent), "to": []any{string(public)}}.JSON()})
			return err
		})
		f.get(f.pageOf(own)).want(t, 200).holds(t, shows[0], shows[1])
	}
}

// Answers that find no room stand on the pages behind, each once.
func TestTheAnswersOfAThreadArePaged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, root := f.post(f.alice, "the root", start, vocab.Public)
	for n := range 7 {
		f.receiveAnswer(f.alice, root, f.carol.ID, fmt.Sprint("a", n), fmt.Sprintf("<p>answer-%d.</p>", n), start.Add(time.Duration(n+1)*time.Minute), vocab.Public)
	}
	seen, pages := "", 0
	for next := f.pageOf(root); next != "" && pages < 20; pages++ {
		body := string(f.get(next).want(t, 200).body)
		for n := range 7 {
			if strings.Contains(body, fmt.Sprintf("answer-%d.", n)) {
				seen += fmt.Sprint(n)
			}
		}
		_, next, _ = strings.Cut(body, `rel="next" href="`)
		next, _, _ = strings.Cut(next, `"`)
	}
	if seen != "0123456" || pages < 4 {
		t.Errorf("%d pages show the answers %s", pages, seen)
	}
}

func TestWhatIsNotPublicHasNoPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, private := f.post(f.alice, "secret", start, f.local.Followers(f.alice))
	_, deleted := f.post(f.alice, "regretted", start, vocab.Public)
	_, withdrawn := f.post(f.alice, "private regret", start, f.carol.ID)
	f.bury(f.alice, deleted)
	f.bury(f.alice, withdrawn)
	unknown := f.local.NewObjectID(f.alice)
	absent := string(f.get(f.pageOf(unknown)).want(t, 404).body)
	for _, path := range []string{f.pageOf(private), f.pageOf(withdrawn), "/@alice/not-an-id", "/@alice/" + strings.ToUpper(string(unknown[len(unknown)-36:])), "/@alice/tags/nothing", "/@alice/tags/secret",
		"/@alice/tag/x", "/@alice/tags/" + strings.Repeat("x", 65), "/@nobody", "/@nobody/feed.atom", "/@Alice", "/@..", "/@admin", "/@", "/@alice/tags/"} {
		if r := f.get(path); r.StatusCode != 404 || strings.Contains(string(r.body), "secret") || strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") && string(r.body) != absent {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	f.get(f.pageOf(private), f.signed(f.carolKey, signature.RFC9421)).want(t, 404) // a page is the same for everybody
	f.get(f.pageOf(private), bearerToken(f.token(f.alice, "read"))).want(t, 404)
	r := f.get(f.pageOf(deleted)).want(t, 410)
	r.holds(t, []string{"This is gone"}, []string{"regretted"})
	if r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("a deleted post has the headers %v", r.Header)
	}
	for state, status := range map[string]int{instance.UserSuspended: 404, instance.UserDeleted: 410} {
		u := f.user("user" + state)
		f.post(u, "x", start, vocab.Public)
		f.get("/@"+u.String()).want(t, 200)
		f.state(u, state)
		for _, path := range []string{"", "/feed.atom", "/" + uuid.NewString(), "/tags/x"} {
			f.get("/@"+u.String()+path).want(t, status)
		}
	}
}

func TestThePagesOfTagsListPostsInAnySpelling(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	for n, tag := range []string{"#Bees", "#BEES", "#bees2", "#Straße"} {
		_, object := f.post(f.alice, fmt.Sprint("post-", n), start.Add(time.Duration(n)*time.Minute), vocab.Public)
		f.write(f.alice, func(ctx context.Context, tx *db.Tx) error {
			_, err := tx.ReplaceObject(ctx, object, vocab.Doc{"id": string(object), "type": "Note", "attributedTo": string(f.local.ID(f.alice)), "content": fmt.Sprintf("<p>post-%d</p>", n),
				"to": []any{string(vocab.Public)}, "tag": []any{vocab.Doc{"type": "Hashtag", "name": tag}}}.JSON(), nil, start.Add(time.Hour))
			return err
		})
	}
	r := f.get(f.local.TagPage(f.alice, "Bees")).want(t, 200)
	r.holds(t, []string{"post-0", "post-1", "#bees"}, []string{"post-2", "post-3"})
	f.get(f.local.TagPage(f.alice, "Straße")).want(t, 200).holds(t, []string{"post-3", "/tags/stra%C3%9Fe"}, []string{"post-0"})
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

// Whoever would rather have a page gets it where there is one, and everybody else what they got
// before there were pages.
func TestAnIDLeadsPeopleToItsPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, public := f.post(f.alice, "hi", start, vocab.Public)
	_, private := f.post(f.alice, "secret", start, f.carol.ID)
	_, deleted := f.post(f.alice, "regretted", start, vocab.Public)
	f.bury(f.alice, deleted)
	gone := f.user("gone")
	f.state(gone, instance.UserDeleted)
	const short = vocab.ActivityJSON
	for _, c := range []struct {
		accept                                                         string
		actor, post, hidden, buried, nobody, goneActor, activityOutbox int
	}{
		{"", 200, 200, 404, 410, 404, 410, 200},
		{"*/*", 200, 200, 404, 410, 404, 410, 200},
		{"application/json", 200, 200, 404, 410, 404, 410, 200},
		{short, 200, 200, 404, 410, 404, 410, 200},
		{short + ", text/html", 200, 200, 404, 410, 404, 410, 200},
		{short + ", text/html;q=0.1", 200, 200, 404, 410, 404, 410, 200},
		{vocab.MediaType + ", " + short + `, text/html;q=0.1`, 200, 200, 404, 410, 404, 410, 200},
		{"text/html, " + short, 200, 200, 404, 410, 404, 410, 200},
		{"text/html", 303, 303, 406, 406, 406, 406, 406},
		{"text/*", 303, 303, 406, 406, 406, 406, 406},
		{browser, 303, 303, 404, 410, 404, 410, 200},
		{"text/html, " + short + ";q=0.9", 303, 303, 404, 410, 404, 410, 200},
		{"text/html;q=0.5, */*;q=0.1", 303, 303, 404, 410, 404, 410, 200},
		{"text/html;q=0", 406, 406, 406, 406, 406, 406, 406},
		{"image/png", 406, 406, 406, 406, 406, 406, 406},
	} {
		for _, at := range []struct {
			path, page string
			status     int
		}{
			{"/users/alice", "/@alice", c.actor}, {string(public), f.pageOf(public), c.post}, {string(private), "", c.hidden}, {string(deleted), "", c.buried},
			{"/users/nobody", "", c.nobody}, {"/users/gone", "", c.goneActor}, {"/users/alice/outbox", "", c.activityOutbox},
		} {
			var how []asking
			if c.accept != "" {
				how = append(how, header("Accept", c.accept))
			}
			r := f.get(at.path, how...)
			if r.StatusCode != at.status {
				t.Errorf("%s, asked for %q: %d, want %d: %s", at.path, c.accept, r.StatusCode, at.status, r.body)
				continue
			}
			if location := r.Header.Get("Location"); at.status == 303 && location != origin+at.page || at.status != 303 && location != "" {
				t.Errorf("%s, asked for %q, leads to %q", at.path, c.accept, location)
			}
			if vary := strings.Join(r.Header.Values("Vary"), ","); !strings.Contains(vary, "Accept") {
				t.Errorf("%s, asked for %q: Vary %q", at.path, c.accept, vary)
			}
		}
	}
	f.get(string(public), header("Accept", browser), f.signed(f.blockedKey(), signature.RFC9421)).want(t, 403)
	f.get("/users/alice", header("Accept", browser), f.signed(f.blockedKey(), signature.RFC9421)).want(t, 403)
}

func TestWithoutPagesEverythingIsAsBefore(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*server.Deps){"pages = false": func(*server.Deps) {}, "secure mode": secure} {
		f := newFixture(t, change)
		_, public := f.post(f.alice, "hi", start, vocab.Public)
		read := bearerToken(f.token(f.alice, "read"))
		for _, path := range []string{"/@alice", f.pageOf(public), "/@alice/feed.atom", "/@alice/tags/x"} {
			if r := f.get(path, read); r.StatusCode != 404 || r.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %s: %d %s", name, path, r.StatusCode, r.body)
			}
		}
		for _, path := range []string{"/users/alice", string(public)} {
			f.get(path, read, header("Accept", "text/html")).want(t, 406)
			if d := f.get(path, read, header("Accept", browser)).want(t, 200).doc(t); d["url"] != nil {
				t.Errorf("%s: %s has the url %v", name, path, d["url"])
			}
		}
		f.get("/robots.txt").want(t, 200).holds(t, []string{"Disallow: /\n"}, nil)
		f.get("/").want(t, 200).holds(t, []string{"no pages"}, nil)
		f.get("/.well-known/webfinger?resource=acct:alice@example.org").want(t, 200).holds(t, nil, []string{"profile-page"})
	}
	f := newFixture(t, withPages)
	f.get("/").want(t, 200).holds(t, []string{"/@name"}, []string{"no pages"})
	f.get("/robots.txt").want(t, 200).holds(t, []string{"Disallow: /users/\n"}, []string{"Disallow: /\n"})
	f.get("/.well-known/webfinger?resource=acct:alice@example.org").want(t, 200).holds(t, []string{"http://webfinger.net/rel/profile-page", `"https://example.org/@alice"`}, nil)
	if r := f.get("/favicon.svg").want(t, 200); r.Header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("the favicon has the headers %v", r.Header)
	}
}

func TestPagesOfLargePostsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages, func(d *server.Deps) { d.PageSize = 20 })
	var object vocab.ID
	for n := range 20 {
		_, object = f.post(f.alice, fmt.Sprint("post-", n, strings.Repeat(" & bees", 9_000)), start.Add(time.Duration(n)*time.Minute), vocab.Public)
		f.receiveAnswer(f.alice, object, f.carol.ID, fmt.Sprint(n), "<p>"+strings.Repeat("<b>x</b> ", 9_000)+"</p>", start, vocab.Public)
	}
	for _, path := range []string{"/@alice", "/@alice/feed.atom", f.pageOf(object)} {
		if r := f.get(path).want(t, 200); len(r.body) > 64_000 {
			t.Errorf("%s has %d bytes", path, len(r.body))
		}
	}
	f.get("/@alice").holds(t, []string{"post-19", "post-0 "}, []string{`rel="next"`})
}

// A page that many read at once is read from the database once, and a write ends that.
func TestPagesAreRememberedUntilTheUserWrites(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, object := f.post(f.alice, "hi", start, vocab.Public)
	paths := []string{"/@alice", "/@alice/feed.atom", f.pageOf(object)}
	for _, path := range paths {
		f.get(path).want(t, 200)
	}
	release := f.server.HoldReads(netip.MustParseAddr("192.0.2.1")) // the address of requests in tests: it may read nothing more
	for _, path := range paths {
		f.get(path).want(t, 200)
	}
	f.get("/@alice/tags/x").want(t, 503)
	f.post(f.alice, "more", start.Add(time.Minute), vocab.Public)
	for _, path := range paths {
		if r := f.get(path).want(t, 503); r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
	}
	release()
	f.get("/@alice").want(t, 200).holds(t, []string{"more"}, nil)
}

// Pages open no more databases than other reads of strangers.
func TestPagesLeaveDatabasesToOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	refused := 0
	for n := range 60 {
		path := "/@" + f.coldUser().String() + []string{"", "/feed.atom", "/" + uuid.NewString(), "/tags/x"}[n%4]
		if r := f.get(path); r.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(r.body), "crowded") {
			refused++
		}
	}
	if refused < 30 {
		t.Errorf("%d of 60 cold databases were refused, want most", refused)
	}
}
