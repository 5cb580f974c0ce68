package server_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestWebFingerAnswers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.store.Instance.Users.Reserve(t.Context(), mustName(t, "halfmade")); err != nil {
		t.Fatal(err)
	}
	const alice, instance = "acct:alice@example.org", "acct:instance@example.org"
	unknown := ""
	for _, c := range []struct {
		name, query string
		status      int
		subject     string
	}{
		{"an account", "resource=acct:alice@example.org", 200, alice},
		{"WF-11 percent-encoded", "resource=acct%3Aalice%40example.org", 200, alice},
		{"WF-11 in capitals", "resource=acct:ALICE@Example.ORG", 200, alice},
		{"WF-11 without scheme", "resource=alice@example.org", 200, alice},
		{"WF-08 by URI", "resource=https://example.org/users/alice", 200, alice},
		{"WF-06 with what nobody knows", "x=1&resource=acct:alice@example.org&y=2", 200, alice},
		{"FE-04 the server itself", "resource=https://example.org/", 200, instance},
		{"the instance actor", "resource=acct:instance@example.org", 200, instance},
		{"WF-02 no resource", "", 400, ""},
		{"WF-02 an empty one", "resource=", 400, ""},
		{"WF-02 with a space", "resource=a%20b", 400, ""},
		{"WF-02 neither URI nor handle", "resource=alice", 400, ""},
		{"WF-02 two", "resource=acct:alice@example.org&resource=acct:bob@example.org", 400, ""},
		{"WF-03 nobody", "resource=acct:nobody@example.org", 404, ""},
		{"WF-03 a reserved name", "resource=acct:admin@example.org", 404, ""},
		{"WF-03 a name nobody can have", "resource=acct:a-b@example.org", 404, ""},
		{"a user who is not made yet", "resource=acct:halfmade@example.org", 404, ""},
		{"somebody elsewhere", "resource=acct:alice@peer.example", 404, ""},
		{"a URI elsewhere", "resource=https://peer.example/users/alice", 404, ""},
		{"another scheme", "resource=mailto:alice@example.org", 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := f.get("/.well-known/webfinger?"+c.query, header("Accept", "text/plain")).want(t, c.status)
			if r.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Error("WF-05: pages of other origins may not read the answer")
			}
			if c.status == 404 {
				body := strings.ReplaceAll(string(r.body), r.Header.Get("X-Request-Id"), "")
				if unknown == "" {
					unknown = body
				} else if body != unknown {
					t.Errorf("WF-03: %s, want the same as for others: %s", body, unknown)
				}
			}
			if c.status != 200 {
				return
			}
			if got := r.Header.Get("Content-Type"); got != "application/jrd+json" {
				t.Errorf("WF-04: Content-Type %q whatever is accepted", got)
			}
			d := r.doc(t)
			if d.Text("subject") != c.subject {
				t.Errorf("WF-10: subject %q, want %q", d.Text("subject"), c.subject)
			}
			var types []string
			for _, l := range d.Subs("links") {
				if l.Text("rel") == "self" {
					types = append(types, l.Text("type"))
				}
			}
			if diff := cmp.Diff([]string{vocab.ActivityJSON, vocab.MediaType}, types); diff != "" {
				t.Error("WF-10: types of self (-want +got):\n", diff)
			}
		})
	}
}

func TestWebFingerFiltersLinksByRel(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for query, want := range map[string]int{"rel=self&rel=x": 2, "rel=x": 0} {
		d := f.get("/.well-known/webfinger?resource=acct:alice@example.org&"+query).want(t, 200).doc(t)
		if n := len(d.Subs("links")); n != want || d.Text("subject") == "" {
			t.Errorf("WF-07: %s gives %d links, want %d, and the subject", query, n, want)
		}
	}
}

func TestWebFingerIsNotAnsweredWithoutTLS(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const target = "/.well-known/webfinger?resource=acct:alice@example.org"
	for _, c := range []struct {
		name, from string
		status     int
	}{
		{"WF-01 a trusted proxy says so", "10.1.2.3:4000", http.StatusPermanentRedirect},
		{"WF-01 a trusted proxy over IPv6", "[::ffff:10.1.2.3]:4000", http.StatusPermanentRedirect},
		{"CLI-05 anybody else says so", "192.0.2.1:4000", http.StatusOK},
	} {
		r := f.get(target, header("X-Forwarded-Proto", "http"), func(r *http.Request) { r.RemoteAddr = c.from }).want(t, c.status)
		if c.status == http.StatusPermanentRedirect && (r.Header.Get("Location") != origin+target || len(r.body) > 0) {
			t.Errorf("%s: Location %q with %q, want https and nothing else", c.name, r.Header.Get("Location"), r.body)
		}
	}
}

func mustName(t *testing.T, name string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(name)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestHostMetaTellsWhereWebFingerIs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if r := f.get("/.well-known/host-meta.json", header("Accept", "application/xrd+xml")).want(t, 200); r.Header.Get("Content-Type") != "application/json" ||
		!strings.Contains(string(r.body), `"template":"https://example.org/.well-known/webfinger?resource={uri}"`) {
		t.Errorf("host-meta.json is %s %s, want JSON with the template", r.Header.Get("Content-Type"), r.body)
	}
	for accept, want := range map[string]string{"": "application/xrd+xml; charset=utf-8", "application/json": "application/json",
		"application/jrd+json": "application/jrd+json", "text/html": "application/xrd+xml; charset=utf-8"} {
		r := f.get("/.well-known/host-meta", header("Accept", accept)).want(t, 200)
		if got := r.Header.Get("Content-Type"); got != want || !strings.Contains(string(r.body), "https://example.org/.well-known/webfinger?resource={uri}") {
			t.Errorf("WF-14: Accept %q gives %q %s, want %q with the template", accept, got, r.body, want)
		}
	}
}

func TestNodeInfo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	links := f.get("/.well-known/nodeinfo").want(t, 200).doc(t).Subs("links")
	if len(links) != 3 || links[0].Text("rel") != "http://nodeinfo.diaspora.software/ns/schema/2.1" ||
		links[1].Text("rel") != "http://nodeinfo.diaspora.software/ns/schema/2.0" ||
		links[2].Text("rel") != "https://www.w3.org/ns/activitystreams#Application" {
		t.Fatalf("NI-01, NI-05: links %v, want schemas 2.1 and 2.0, and the Application actor", links)
	}
	r := f.get(links[0].Text("href")).want(t, 200)
	if got := r.Header.Get("Content-Type"); got != `application/json; profile="http://nodeinfo.diaspora.software/ns/schema/2.1#"` {
		t.Errorf("NI-02: Content-Type %q", got)
	}
	want := `{"metadata":{},"openRegistrations":false,"protocols":["activitypub"],"services":{"inbound":[],"outbound":[]},` +
		`"software":{"homepage":"https://lightwebbrowser.org","name":"lightweb","repository":"https://github.com/lightweb/lightweb","version":"0.1.0"},` +
		`"usage":{"users":{"total":2}},"version":"2.1"}`
	if diff := cmp.Diff(want, string(r.body)); diff != "" {
		t.Error("NI-03, NI-04 (-want +got):\n", diff)
	}
	r = f.get(links[1].Text("href")).want(t, 200)
	if got := r.Header.Get("Content-Type"); got != `application/json; profile="http://nodeinfo.diaspora.software/ns/schema/2.0#"` {
		t.Errorf("NI-02: Content-Type %q of version 2.0", got)
	}
	want = `{"metadata":{},"openRegistrations":false,"protocols":["activitypub"],"services":{"inbound":[],"outbound":[]},` +
		`"software":{"name":"lightweb","version":"0.1.0"},"usage":{"users":{"total":2}},"version":"2.0"}`
	if diff := cmp.Diff(want, string(r.body)); diff != "" {
		t.Error("NI-03 version 2.0 (-want +got):\n", diff)
	}
	if a := f.get(links[2].Text("href")).want(t, 200).doc(t); a.Text("type") != "Application" {
		t.Errorf("NI-05: the link leads to %v", a)
	}
}

func TestHomePageHoldsNoScript(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.get("/", header("Accept", "text/html")).want(t, 200)
	if !strings.Contains(string(r.body), "example.org") || strings.Contains(string(r.body), "<script") ||
		!strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") || r.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%v %s", r.Header, r.body)
	}
}

func TestActorsAreServed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	suspended, deleted := f.user("suspended"), f.user("deleted")
	f.state(suspended, instance.UserSuspended)
	f.state(deleted, instance.UserDeleted)
	for _, c := range []struct {
		name, path, kind string
		status           int
		how              []asking
	}{
		{"AC-01 a user", "/users/alice", "Person", 200, nil},
		{"AC-05 the instance, unsigned", "/actor", "Application", 200, nil},
		{"AC-05 the instance, to a blocked host", "/actor", "Application", 200, []asking{f.signed(f.blockedKey(), signature.RFC9421)}},
		{"with a signature that does not hold", "/users/alice", "Person", 200, []asking{header("Signature", "x")}},
		{"SG-21 to a blocked host", "/users/alice", "", 403, []asking{f.signed(f.blockedKey(), signature.RFC9421)}},
		{"nobody", "/users/nobody", "", 404, nil},
		{"a name nobody can have", "/users/ALICE", "", 404, nil},
		{"below a user", "/users/alice/x", "", 404, nil},
		{"a slash too many", "/users/alice/", "", 404, nil},
		{"an encoded slash", "/users%2Falice", "", 404, nil},
		{"suspended", "/users/suspended", "", 404, nil},
		{"deleted", "/users/deleted", "Tombstone", 410, nil},
		{"D15 only HTML", "/users/alice", "", 406, []asking{header("Accept", "text/html")}},
	} {
		r := f.get(c.path, c.how...)
		if r.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, r.StatusCode, c.status, r.body)
			continue
		}
		if c.kind != "" {
			if d := r.doc(t); d.Text("type") != c.kind || r.Header.Get("Content-Type") != vocab.ActivityJSON || r.Header.Get("Vary") != "Accept" {
				t.Errorf("%s: %v %v, want a %s", c.name, r.Header, d, c.kind)
			}
		} else if got := r.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: Content-Type %q, want a problem", c.name, got)
		}
	}
	a, err := vocab.ParseActor(f.get("/users/alice").body)
	if err != nil || a.Inbox == "" || a.Outbox == "" || a.Followers == "" || a.Following == "" || a.SharedInbox == "" || len(a.Keys) != 2 {
		t.Errorf("AC-01, AC-02: %+v, %v", a, err)
	}
	for _, id := range []vocab.ID{a.Outbox, a.Followers, a.Following} {
		if d := f.get(string(id)).want(t, 200).doc(t); d.Text("type") != "OrderedCollection" || d.Text("id") != string(id) {
			t.Errorf("AC-01: %s is %v", id, d)
		}
	}
}

func TestActorNeedsNoDatabaseOfTheUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nobase := mustName(t, "nobase") // an active user without a database
	if _, err := f.store.Instance.Users.Reserve(t.Context(), nobase); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Instance.Users.Activate(t.Context(), nobase); err != nil {
		t.Fatal(err)
	}
	if err := f.keys.Create(nobase); err != nil {
		t.Fatal(err)
	}
	f.get("/users/nobase").want(t, 200)
	f.get("/.well-known/webfinger?resource=acct:nobase@example.org").want(t, 200)
	r := f.get("/users/nobase/outbox").want(t, 503)
	if r.Header.Get("Retry-After") == "" || strings.Contains(string(r.body), "SQLSTATE") {
		t.Errorf("%v %s, want Retry-After and no internals", r.Header, r.body)
	}
}

// If a user's files are damaged, the server answers 503. A peer could take a 404 for a deletion.
func TestAUserWhoseFilesAreDamagedIsNotGone(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*fixture) error{
		"the keys are missing": func(f *fixture) error { return os.RemoveAll(f.keys.Dir(f.alice)) },
		"a key is no key": func(f *fixture) error {
			return os.WriteFile(filepath.Join(f.keys.Dir(f.alice), "rsa.pem"), []byte("no key"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if err := damage(f); err != nil {
				t.Fatal(err)
			}
			r := f.get("/users/alice").want(t, http.StatusServiceUnavailable)
			if r.Header.Get("Retry-After") == "" || !strings.Contains(string(r.body), "user-unavailable") || strings.Contains(string(r.body), filepath.Dir(f.keys.Dir(f.alice))) {
				t.Errorf("%v %s, want Retry-After and no internals", r.Header, r.body)
			}
			f.get("/users/bob").want(t, http.StatusOK)
		})
	}
}

// The server still serves a user whose profile it cannot read. It uses the settings of a user who
// permits nothing to strangers.
func TestAUserWhoseProfileIsBrokenIsServedClosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := os.WriteFile(f.registry.File(f.alice), []byte(`{"profile":{"name":"Alice"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := f.get("/users/alice").want(t, 200).doc(t)
	if d["name"] != "alice" || d["manuallyApprovesFollowers"] != true || d["discoverable"] != false {
		t.Errorf("the actor is %v, want one that is closed", d)
	}
	f.get("/users/alice/outbox").want(t, 200)
	if d := f.get("/users/alice/followers").want(t, 200).doc(t); d["first"] != nil {
		t.Errorf("the followers are %v, want none shown", d)
	}
}

func TestAnswersAreNotSentAgainToWhoHasThem(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, object := f.post(f.alice, "hello", start, vocab.Public)
	for _, path := range []string{"/users/alice", "/actor", "/users/alice/outbox", "/users/alice/outbox?page=true", "/users/alice/followers", string(object)} {
		first := f.get(path).want(t, 200)
		tag := first.Header.Get("ETag")
		if !strings.HasPrefix(tag, `W/"`) || !strings.HasPrefix(first.Header.Get("Cache-Control"), "public") {
			t.Errorf("OB-10: %s has ETag %q, Cache-Control %q", path, tag, first.Header.Get("Cache-Control"))
		}
		for _, sent := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*"} {
			if r := f.get(path, header("If-None-Match", sent)).want(t, 304); len(r.body) > 0 {
				t.Errorf("OB-10: %s answers 304 with a body", path)
			}
		}
		f.get(path, header("If-None-Match", `W/"x"`)).want(t, 200)
	}
	before := f.get("/users/alice").Header.Get("ETag")
	p := registry.DefaultUser()
	p.Profile.Name = "Alice"
	if err := f.registry.UpdateUser(f.alice, func(now *registry.User) error { *now = p; return nil }); err != nil {
		t.Fatal(err)
	}
	f.get("/users/alice", header("If-None-Match", before)).want(t, 200)
}

func TestRoutesKeepToTheirMethodsAndPaths(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/inbox", 405, "POST"},
		{"POST", "/users/alice/outbox", 405, "GET"},
		{"DELETE", "/users/alice", 405, "GET"},
		{"PUT", "/api/activity", 405, "POST"},
		{"POST", "/inbox/", 404, ""},
		{"GET", "/API/feed", 404, ""},
		{"GET", "/api/feed/", 404, ""},
		{"GET", "/api/nothing", 404, ""},
		{"GET", "//users/alice", 404, ""},
		{"GET", "/users/alice/groups/close-friends", 404, ""},
		{"GET", "/metrics", 404, ""},
	} {
		r := f.ask(c.method, c.path)
		if r.StatusCode != c.status || !strings.Contains(r.Header.Get("Allow"), c.allow) || r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d, Allow %q, %s, want a problem with %d, Allow %s", c.method, c.path, r.StatusCode, r.Header.Get("Allow"), r.Header.Get("Content-Type"), c.status, c.allow)
		}
		if inAPI := strings.HasPrefix(c.path, "/api/"); strings.Contains(string(r.body), `"success":false`) != inAPI {
			t.Errorf("%s %s: %s", c.method, c.path, r.body)
		}
	}
	for _, path := range []string{"/", "/users/alice", "/nodeinfo/2.1", "/.well-known/webfinger?resource=" + url.QueryEscape("acct:alice@example.org")} {
		get, head := f.get(path).want(t, 200), f.ask(http.MethodHead, path).want(t, 200)
		if got := head.Header.Get("Content-Length"); got != fmt.Sprint(len(get.body)) {
			t.Errorf("HEAD %s: Content-Length %s, want %d as with GET", path, got, len(get.body))
		}
	}
}

func TestOverTLSNothingChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.get("/.well-known/webfinger?resource=acct:alice@example.org", func(r *http.Request) { r.TLS = &tls.ConnectionState{} }).want(t, 200)
}
