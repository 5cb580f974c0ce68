package server_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func withPages(d *server.Deps) { d.Local.OfferPages() }

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"

// pageOf returns the path of an object's page.
func (f *fixture) pageOf(object vocab.ID) string {
	return strings.TrimPrefix(f.local.PostPage(object), origin)
}

// holds fails the test unless the page contains every text in all and no text in none.
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
	f.get(f.pageOf(private), f.signed(f.carolKey, signature.RFC9421)).want(t, 404) // the page is the same for every reader, even for a recipient
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

// A client that prefers HTML is redirected from an id to the id's page, if there is one. Other
// clients get the same answers as from a server without pages.
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

// Pixelfed fetches a post from the address of its page, and follows no redirect. So that address
// also answers with the post's document.
func TestAPageIsADocumentForWhoeverPrefersOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, public := f.post(f.alice, "hi", start, vocab.Public)
	_, private := f.post(f.alice, "secret", start, f.carol.ID)
	const page = "text/html; charset=utf-8"
	const pixelfed = vocab.ActivityJSON + ", application/ld+json"
	for _, c := range []struct {
		accept, form string
	}{
		{pixelfed, vocab.ActivityJSON},
		{vocab.MediaType, vocab.MediaType},
		{"", page},
		{"*/*", page},
		{browser, page},
		{"text/html, " + pixelfed, page},
		{"application/json", page},
	} {
		var how []asking
		if c.accept != "" {
			how = append(how, header("Accept", c.accept))
		}
		for path, id := range map[string]vocab.ID{"/@alice": f.local.ID(f.alice), f.pageOf(public): public} {
			r := f.get(path, how...).want(t, 200)
			if got := r.Header.Get("Content-Type"); got != c.form {
				t.Errorf("%s, asked for %q, has the type %q, want %q", path, c.accept, got, c.form)
			}
			if isDocument := strings.Contains(string(r.body), `"id":"`+string(id)+`"`); isDocument != (c.form != page) {
				t.Errorf("%s, asked for %q: %s", path, c.accept, r.body)
			}
			if vary := strings.Join(r.Header.Values("Vary"), ","); !strings.Contains(vary, "Accept") {
				t.Errorf("%s, asked for %q: Vary %q", path, c.accept, vary)
			}
		}
		if r := f.get(f.pageOf(private), how...); r.StatusCode != 404 || strings.Contains(string(r.body), "secret") {
			t.Errorf("a private post, asked for %q: %d %s", c.accept, r.StatusCode, r.body)
		}
	}
	f.get(f.pageOf(public), header("Accept", pixelfed), f.signed(f.blockedKey(), signature.RFC9421)).want(t, 403)
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

// A page that was read once is sent to later readers without a read of the database, until the
// user writes.
func TestPagesAreRememberedUntilTheUserWrites(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, object := f.post(f.alice, "hi", start, vocab.Public)
	paths := []string{"/@alice", "/@alice/feed.atom", f.pageOf(object)}
	for _, path := range paths {
		f.get(path).want(t, 200)
	}
	release := f.server.HoldReads(netip.MustParseAddr("192.0.2.1")) // requests in tests come from this address; it may read no more
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

// Readers of pages open no more databases than other strangers do.
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
