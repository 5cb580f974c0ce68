package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The operator changes the policy, and the running engine applies it.
func TestPolicy(t *testing.T) {
	t.Parallel()
	s := newSiege(t)
	for _, part := range []struct {
		name string
		play func(*siege)
	}{
		{"a blocked domain", (*siege).blockedDomain},
		{"a suspended actor", (*siege).suspendedActor},
		{"lists of domains", (*siege).domainLists},
		{"a pause", (*siege).pause},
		{"an allowlist", (*siege).allowlist},
	} {
		t.Run(part.name, func(t *testing.T) {
			one := *s
			one.T, one.row = t, attack{id: strings.ReplaceAll(part.name, " ", "-")}
			part.play(&one)
		})
	}
}

// changed is the report of a policy change.
type changed struct {
	Changed, Unchanged, Unconfirmed []string
	Users, Following                int
}

func (s *siege) change(args ...string) (c changed) {
	s.Helper()
	ran := s.home.Run(s, append(args, "--json")...)
	if ran.Code != 0 {
		s.Fatalf("%q ended with %d: %s", args, ran.Code, ran.Stderr)
	}
	ran.Decode(s, &c)
	return c
}

// becomes waits until a Like of the actor is answered with the given status.
func (s *siege) becomes(a *peertest.Actor, status int) {
	s.Helper()
	n := 0
	enginetest.Eventually(s, fmt.Sprintf("%s is answered %d", a.ID, status), func() bool {
		n++
		return s.post(a, s.home.URL+"/inbox", s.like(a, fmt.Sprintf("becomes-%d-%d", status, n))).Status == status
	})
}

func (s *siege) inFeed(activity string) bool {
	s.Helper()
	return slices.ContainsFunc(s.alice.Feed(s, "main"), func(i enginetest.Item) bool { return i.ActivityURI == activity })
}

func (s *siege) blockedDomain() {
	post := s.create(s.carol, "post")
	s.accepted(s.post(s.carol, s.home.URL+"/inbox", post))
	note := post["object"].(vocab.Doc).Text("id")
	s.q.Serve(strings.TrimPrefix(note, s.q.Origin), post["object"].(vocab.Doc).JSON())
	boost := func(name string) vocab.Doc {
		return vocab.Doc{"id": s.id(s.mallory, name), "type": "Announce", "actor": string(s.mallory.ID), "to": []any{s.alice.ID, string(vocab.Public)}, "object": note}
	}
	before := boost("before")
	s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", before))
	if !s.inFeed(post.Text("id")) || !s.inFeed(before.Text("id")) {
		s.Error("the post, or its boost, is not in the feed")
	}

	if c := s.change("domain", "block", "127.0.0.3", "--comment", "spam"); !slices.Equal(c.Changed, []string{"127.0.0.3"}) || c.Users != 1 || c.Following != 1 {
		s.Errorf("block reports %+v, want the domain, and alice who follows somebody there", c)
	}
	s.becomes(s.carol, http.StatusForbidden)
	asked := s.asked()
	if s.inFeed(post.Text("id")) || s.inFeed(before.Text("id")) {
		s.Error("ORG-29: what the blocked server sent, or a boost of it, is still shown")
	}
	after := boost("after")
	s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", after))
	for _, action := range []string{"Follow", "Block"} { // alice cannot follow the actor, but can block it
		want := map[string]int{"Follow": http.StatusForbidden, "Block": http.StatusCreated}[action]
		if got := s.alice.Try(s, action, map[string]any{"actorUri": string(s.carol.ID) + "-other"}); got.Status != want {
			s.Errorf("%s of somebody there is answered %d %s, want %d", action, got.Status, got.Body, want)
		}
	}
	if got := s.alice.Try(s, "Boost", map[string]any{"objectId": note}); got.Status != http.StatusForbidden {
		s.Errorf("boosting a post of there is answered %d %s, want 403", got.Status, got.Body)
	}
	s.alice.Post(s, map[string]any{"content": "for my followers"})
	s.settle()
	if n := s.asked() - asked; n != 0 {
		s.Errorf("MOD-02: the blocked server was asked or sent something %d times", n)
	}
	listed := s.home.Run(s, "domain", "list")
	if listed.Stdout != "127.0.0.3\tblocked\tspam\n" {
		s.Errorf("domain list wrote %q", listed.Stdout)
	}

	s.change("domain", "unblock", "127.0.0.3")
	s.becomes(s.carol, http.StatusAccepted)
	if !s.inFeed(post.Text("id")) || !s.inFeed(before.Text("id")) || s.inFeed(after.Text("id")) {
		s.Error("what was hidden does not show again, or what was refused shows")
	}
	s.settle()
}

func (s *siege) suspendedActor() {
	dave := s.q.Actor("/users/dave")
	post := s.create(s.carol, "post")
	s.accepted(s.post(s.carol, s.home.URL+"/inbox", post))
	if c := s.change("actor", "suspend", string(s.carol.ID), "--comment", "rude"); !slices.Equal(c.Changed, []string{string(s.carol.ID)}) || len(c.Unconfirmed) != 0 || c.Users != 1 || c.Following != 1 {
		s.Errorf("suspend reports %+v, want carol, followed by alice", c)
	}
	s.becomes(s.carol, http.StatusForbidden)
	s.becomes(dave, http.StatusAccepted)
	posted := len(s.q.Posted())
	s.alice.Post(s, map[string]any{"content": "for my followers"})
	s.settle()
	if len(s.q.Posted()) != posted || s.inFeed(post.Text("id")) {
		s.Error("the suspended actor is delivered to, or shown")
	}
	read := func(id string) int {
		return s.send(peertest.Forgery{Method: http.MethodGet, URL: id, Key: s.carol.Keys.RSA, Before: func(r *http.Request) { r.Header.Set("Accept", vocab.ActivityJSON) }}.Request(s)).Status
	}
	if public, private := read(s.note), read(s.secret); public != http.StatusOK || private != http.StatusNotFound {
		s.Errorf("it is answered %d for a public note and %d for one that was for it alone, want 200 and 404 like strangers", public, private)
	}
	if listed := s.home.Run(s, "actor", "list", "--suspended"); listed.Stdout != string(s.carol.ID)+"\t\trude\n" {
		s.Errorf("actor list --suspended wrote %q", listed.Stdout)
	}
	runAll(s.T, s.home, []command{
		{"actor suspend " + string(s.carol.ID), 73, "already suspended"},
		{"actor suspend " + s.alice.ID, 65, "of this server"},
		{"actor suspend nobody", 65, "not a handle"},
		{"actor suspend @nobody@no-such-host.invalid", 68, ""},
		{"actor suspend", 64, "needs URI|HANDLE"},
		{"actor unsuspend @nobody@elsewhere.example", 66, "nobody is known"},
		{"actor unsuspend https://elsewhere.example/users/nobody", 66, "not suspended"},
		{"actor list", 64, "--suspended"},
	})
	some := s.home.Run(s, "actor", "suspend", "http://127.0.0.1:1/users/away", string(s.carol.ID), "--json")
	var c changed
	some.Decode(s, &c)
	if some.Code != 3 || !slices.Equal(c.Unconfirmed, []string{"http://127.0.0.1:1/users/away"}) || !slices.Equal(c.Unchanged, []string{string(s.carol.ID)}) {
		s.Errorf("suspending one whose server is away, and one again: %d, %+v", some.Code, c)
	}
	s.change("actor", "unsuspend", string(s.carol.ID), "http://127.0.0.1:1/users/away")
	s.becomes(s.carol, http.StatusAccepted)
	if got := read(s.secret); got != http.StatusOK {
		s.Errorf("afterwards it is answered %d for its own, want 200", got)
	}
	s.settle()
}

func (s *siege) domainLists() {
	dir := s.TempDir()
	write := func(name, list string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
			s.Fatal(err)
		}
		return path
	}
	list := write("list.csv", "\ufeff#domain,#severity,#reject_media,#reject_reports,#public_comment,#obfuscate\r\n"+
		"evil.example,suspend,TRUE,TRUE,\"spam,\a=1\",FALSE\r\nWICKED.example,suspend,TRUE,TRUE,=1+1,FALSE\r\nevil.example,suspend,,,again,\r\n"+
		"127.0.0.3,suspend,,,,\r\nloud.example,silence,,,,\r\nodd.example,noop,,,,\r\n"+
		"ev**.example,suspend,,,,\r\ncom,suspend,,,,\r\n127.0.0.1,suspend,,,,\r\n,suspend,,,,\r\n")
	type imported struct {
		Rows, Unchanged, Skipped, Obfuscated int
		Users, Following                     int
		Changed                              []string
		Refused                              []struct{ Line int }
		DryRun                               bool `json:"dry_run"`
	}
	want := imported{Rows: 10, Unchanged: 1, Skipped: 2, Obfuscated: 1, Users: 1, Following: 1, Changed: []string{"127.0.0.3", "evil.example", "wicked.example"},
		Refused: []struct{ Line int }{{8}, {9}, {10}, {11}}}
	check := func(ran enginetest.Ran, want imported) {
		s.Helper()
		var got imported
		ran.Decode(s, &got)
		if ran.Code != 3 || fmt.Sprint(got) != fmt.Sprint(want) {
			s.Errorf("import ended with %d and %+v, want 3 and %+v", ran.Code, got, want)
		}
		var failed struct{ Error struct{ Code string } }
		if err := json.Unmarshal([]byte(ran.Stderr), &failed); err != nil || failed.Error.Code != "partial" {
			s.Errorf("with --json it said %q, want the error alone", ran.Stderr)
		}
	}
	dry := want
	dry.DryRun = true
	check(s.home.Run(s, "domain", "import", list, "--dry-run", "--json"), dry)
	if listed := s.home.Run(s, "domain", "list"); listed.Stdout != "" {
		s.Errorf("a dry run blocked %q", listed.Stdout)
	}
	check(s.home.Run(s, "domain", "import", list, "--json"), want)
	s.becomes(s.carol, http.StatusForbidden)
	again := s.home.Run(s, "domain", "import", list)
	if again.Code != 3 || !strings.Contains(again.Stdout, "changed: 0\nunchanged: 4\nskipped: 2\nrefused: 4\nobfuscated: 1\n") || !strings.Contains(again.Stderr, "line 9: com: ") {
		s.Errorf("again: %d, %q, %q", again.Code, again.Stdout, again.Stderr)
	}
	exported := s.home.Run(s, "domain", "export")
	const table = "#domain,#severity,#reject_media,#reject_reports,#public_comment,#obfuscate\n127.0.0.3,suspend,true,true,,false\n" +
		"evil.example,suspend,true,true,\"spam, =1\",false\nwicked.example,suspend,true,true,'=1+1,false\n"
	if exported.Stdout != table {
		s.Errorf("exported\n%s, want\n%s", exported.Stdout, table)
	}
	s.change(append([]string{"domain", "unblock"}, want.Changed...)...)
	if ran := s.home.Run(s, "domain", "import", write("export.csv", exported.Stdout), "-q"); ran.Code != 0 || ran.Stdout+ran.Stderr != "" {
		s.Errorf("importing the export ended with %+v", ran)
	}
	if back := s.home.Run(s, "domain", "export"); back.Stdout != table {
		s.Errorf("what was exported and imported is\n%s", back.Stdout)
	}
	runAll(s.T, s.home, []command{
		{"domain block evil.example", 73, "already blocked"},
		{"domain block good.example com", 65, "public suffix"},
		{"domain block good.example 127.0.0.1", 65, "own domain"},
		{"domain block *.evil.example", 65, "without *"},
		{"domain block good.example/users", 65, "no domain"},
		{"domain block good.example --comment " + strings.Repeat("x", 501), 65, "500 characters"},
		{"domain block good.example --comment loud\a", 65, "cannot be shown"},
		{"domain block", 64, "needs DOMAIN"},
		{"domain block good.example --dry-run", 0, "" /* nobody knows anybody there */},
		{"domain unblock good.example", 66, "not blocked"},
		{"domain disallow good.example", 66, "not allowed"},
		{"domain import " + filepath.Join(dir, "none.csv"), 66, "no such file"},
		{"domain import " + write("broken.csv", "#domain\n\"evil.example\n"), 65, "malformed"},
		{"domain import " + write("nothing.txt", "# nothing\n"), 65, "no line"},
		{"domain import " + write("useless.txt", "com\n*\n"), 65, "line 1"},
		{"domain import -", 65, "no line"},
		{"domain export x", 64, "does not take"},
		{"domain", 64, "needs a subcommand"},
	})
	some := s.home.Run(s, "domain", "unblock", "127.0.0.3", "evil.example", "wicked.example", "good.example")
	if some.Code != 3 || some.Stdout != "unblocked 127.0.0.3 evil.example wicked.example\n" {
		s.Errorf("unblocking four, of which one is not blocked: %d, %q, %q", some.Code, some.Stdout, some.Stderr)
	}
	s.becomes(s.carol, http.StatusAccepted)
	s.settle()
}

// mode restarts the engine in another federation mode.
func (s *siege) mode(mode string) {
	s.Helper()
	s.home.Stop(s)
	s.home.Set("LIGHTWEB_FEDERATION_MODE=" + mode)
	s.home.Start(s)
}

func (s *siege) pause() {
	s.mode("paused")
	for _, inbox := range []string{s.home.URL + "/inbox", s.alice.ID + "/inbox"} {
		if got := s.post(s.carol, inbox, s.like(s.carol, "paused")); got.Status != http.StatusMethodNotAllowed || got.Header["Allow"] == nil {
			s.Errorf("DL-17: POST %s is answered %d, Allow %q, want 405", inbox, got.Status, got.Header["Allow"])
		}
	}
	if s.home.Metric(s, "lightweb_federation_paused") != 1 || !strings.Contains(s.home.Log(), "federation is paused") {
		s.Error("neither log nor metrics tell of the pause")
	}
	asked := s.asked()
	if got := s.alice.Try(s, "Follow", map[string]any{"actorUri": s.q.Origin + "/users/eve"}); got.Status != http.StatusServiceUnavailable {
		s.Errorf("following somebody unknown is answered %d %s, want 503", got.Status, got.Body)
	}
	_, note := s.alice.Post(s, map[string]any{"content": "for later"})
	s.bob.Do(s, "Follow", map[string]any{"actorUri": s.alice.ID})
	awaitFollows(s.T, s.bob, "following accepted") // the Accept is already made, so alice's worker has run since the post
	if got := enginetest.Fetch(s, note); got.Status != http.StatusOK {
		s.Errorf("a public note is answered %d, want 200", got.Status)
	}
	if n := s.count("lightweb_alice", `SELECT count(*) FROM deliveries WHERE status = 'pending' AND attempts = 0 AND lease_owner IS NULL AND host <> ''`); n != 1 || s.asked() != asked {
		s.Errorf("%d deliveries wait, and others were asked or sent something %d times; want 1 and 0", n, s.asked()-asked)
	}
	s.mode("open")
	s.settle()
	if got := s.q.Posted(); !strings.Contains(string(got[len(got)-1].Content), "for later") {
		s.Errorf("afterwards carol got %s, want the post", got[len(got)-1].Content)
	}
}

func (s *siege) allowlist() {
	if ran := s.home.Run(s, "domain", "allow", "127.0.0.3"); ran.Code != 0 || ran.Stdout != "allowed 127.0.0.3\n" || !strings.Contains(ran.Stderr, "federation.mode is open") {
		s.Errorf("domain allow ended with %+v, want a warning that the mode is another", ran)
	}
	s.mode("allowlist")
	s.becomes(s.carol, http.StatusAccepted)
	s.becomes(s.mallory, http.StatusForbidden)
	for who, want := range map[*peertest.Actor]int{s.carol: http.StatusOK, s.mallory: http.StatusForbidden} {
		r := peertest.Forgery{Method: http.MethodGet, URL: s.note, Key: who.Keys.RSA, Before: func(r *http.Request) { r.Header.Set("Accept", vocab.ActivityJSON) }}.Request(s)
		if got := s.send(r); got.Status != want {
			s.Errorf("MOD-06: a public note, asked for by %s: %d, want %d", who.ID, got.Status, want)
		}
	}
	if got := enginetest.Fetch(s, s.note); got.Status != http.StatusUnauthorized {
		s.Errorf("MOD-06: a public note, asked for by nobody: %d, want 401", got.Status)
	}
	s.alice.Post(s, map[string]any{"content": "among us"})
	s.settle()
	s.change("domain", "disallow", "127.0.0.3")
	s.becomes(s.carol, http.StatusForbidden)
}
