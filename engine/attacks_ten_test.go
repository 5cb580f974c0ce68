package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnTenancy(t *testing.T) {
	t.Parallel()
	newSiege(t, "LIGHTWEB_LIMITS_BODY=65536").play(tenancyAttacks)
}

// entries returns the ids of the items in a user's main feed.
func (s *siege) entries(u *enginetest.User) (ids []string) {
	s.Helper()
	for _, item := range u.Feed(s, "main") {
		ids = append(ids, item.ID)
	}
	return ids
}

// namesRefused checks that user create refuses each of these names with exit code 65.
func (s *siege) namesRefused(names ...string) {
	s.Helper()
	for _, name := range names {
		runAll(s.T, s.home, []command{{"user create " + name, 65, ""}})
	}
}

var tenancyAttacks = []attack{
	{id: "TEN-01", sends: "names and ids that would make one Redis key out of two", happens: "such a name is refused (65), such an id too (400); no two keys of two users are one, whatever they are made of", play: func(s *siege) {
		s.namesRefused("alice:events", "al{ice}", "alice:", ":alice")
		create := s.create(s.mallory, "1")
		create.Sub("object")["id"] = "ice:obj:x"
		s.answered(s.post(s.mallory, s.alice.ID+"/inbox", create), 400)
	}},
	{id: "TEN-02", sends: "ids with line breaks, NUL and a megabyte, towards keys and fields of streams", happens: "400: no id holds a control character or a space, or has over 1,024 bytes; events name none", changes: true, asks: 10, play: sendMadIDs},
	{id: "TEN-03", sends: "patterns in names, towards access lists of Redis", happens: "such a name is refused (65); a program that user redis-acl let in reads the events of its user, and NOPERM answers everything else", play: func(s *siege) {
		s.namesRefused("a*", "al?ce", "[a-z]lice", "%R~*")
		runAll(s.T, s.home, []command{{"user redis-acl a*", 65, ""}, {"user redis-acl al", 67, ""}})
	}},
	{id: "TEN-04", sends: "a user called like what belongs to nobody", happens: "such a name is refused (65): what belongs to nobody begins with a sign that no name has", play: func(s *siege) {
		s.namesRefused("@", "@:actor", "lightweb-template", "instance", "system")
	}},
	{id: "TEN-05", sends: "so much that the cache is full, to push out streams and counters", happens: "the cache drops what is used least; streams are never evicted, nor sessions where they have a server of their own; with one Redis for all, idle sessions may be, and their users sign in again; limits are in the engine's memory", changes: true, play: fillCache},
	{id: "TEN-06", sends: "ids, names and texts that are SQL, JSON paths, LIKE patterns, or search words", happens: "202, and they are kept as they are: statements carry values as parameters only", changes: true, asks: 1, play: func(s *siege) {
		for n, text := range []string{"'; DROP TABLE activities; --", `$.* ? (@.a == "b")`, "%_\\", "a & !b | (c", "$1 $$ {{.}}", `"; \connect postgres`} {
			create := s.create(s.mallory, fmt.Sprint(n))
			create.Sub("object")["content"], create.Sub("object")["name"] = text, text
			create.Sub("object")["tag"] = []any{vocab.Doc{"type": "Hashtag", "name": text, "href": s.p.Origin + "/tags/'%27--"}}
			create["id"] = s.id(s.mallory, fmt.Sprint(n, "?'%22;--%25_&a=$1"))
			s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", create))
			if got := s.alice.Column(s, `SELECT raw ->> 'content' FROM objects WHERE uri = $1`, create.Sub("object")["id"]); len(got) != 1 || got[0] != text {
				s.Errorf("kept as %q, want %q", got, text)
			}
		}
		for _, text := range []string{"alice'--", "alice%00", "a*", `alice";--`} {
			if got := enginetest.Fetch(s, s.home.URL+"/.well-known/webfinger?resource=acct:"+strings.ReplaceAll(text, "%", "%25")+"@127.0.0.1"); got.Status != 400 && got.Status != 404 {
				s.Errorf("WebFinger for %q was answered %d", text, got.Status)
			}
		}
		if n := s.count("lightweb", `SELECT count(*) FROM users`); n != 2 {
			s.Errorf("there are %d users, want 2", n)
		}
	}},
	{id: "TEN-07", sends: "an activity to the shared inbox for alice and bob while bob's database is down", happens: "202; alice has it at once, bob exactly once when his is back", changes: true, asks: 1, play: func(s *siege) {
		s.home.SQL(s, "lightweb_bob").SetMaxIdleConns(0) // away ends connections; the test keeps none of its own that it could end
		create := s.create(s.mallory, "both")
		create["to"] = []any{s.alice.ID, s.bob.ID}
		create.Sub("object")["to"] = create["to"]
		public := s.create(s.mallory, "public")
		public["cc"] = []any{s.bob.ID}
		away(s.T, s.home, s.bob, true)
		for range 3 {
			s.accepted(s.post(s.mallory, s.home.URL+"/inbox", public))
		}
		has := func(u *enginetest.User) int {
			return len(u.Column(s, `SELECT id FROM activities WHERE uri = $1`, public["id"]))
		}
		enginetest.Eventually(s, "alice has it", func() bool { return has(s.alice) == 1 })
		away(s.T, s.home, s.bob, false)
		enginetest.Eventually(s, "bob has it", func() bool { return has(s.bob) == 1 })
		s.settle()
		if a, b := has(s.alice), has(s.bob); a != 1 || b != 1 {
			s.Errorf("alice has it %d times and bob %d times, want once each", a, b)
		}
	}},
	{id: "TEN-08", sends: "alice's token with ids and cursors of bob's", happens: "404 for what is bob's, 400 for his cursors", changes: true, asks: 1, play: func(s *siege) {
		for n := range 3 {
			create := s.create(s.mallory, fmt.Sprint(n))
			create["to"] = []any{s.bob.ID, string(vocab.Public)}
			s.accepted(s.post(s.mallory, s.bob.ID+"/inbox", create))
		}
		for _, id := range s.entries(s.bob) {
			s.answered(s.alice.Ask(s, http.MethodGet, "/api/feed/"+id, nil), 404)
		}
		var page struct{ Next string }
		s.bob.Ask(s, http.MethodGet, "/api/feed?limit=1", nil).Decode(s, &page)
		if page.Next == "" {
			s.Fatal("bob's feed has one page")
		}
		s.answered(s.alice.Ask(s, http.MethodGet, "/api/feed?limit=1&cursor="+page.Next, nil), 400)
		s.answered(s.alice.Ask(s, http.MethodGet, "/users/bob/inbox", nil), 403)
	}},
	{id: "TEN-09", sends: "a note to alice that embeds an actor with another key", happens: "202; keys are taken from the actor's own document alone", changes: true, asks: 1, play: func(s *siege) {
		lie := vocab.Doc{"id": string(s.carol.ID), "type": "Person", "inbox": s.p.Origin + "/inbox", "publicKey": vocab.Doc{"id": s.carol.Keys.RSA.ID, "owner": string(s.carol.ID),
			"publicKeyPem": s.mallory.Doc.Sub("publicKey").Text("publicKeyPem")}}
		create := s.create(s.mallory, "poison")
		create.Sub("object")["attachment"] = []any{lie}
		create.Sub("object")["replies"] = lie
		s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", create))
		s.unauthorized(s.forge(peertest.Forgery{URL: s.bob.ID + "/inbox", Body: string(s.like(s.carol, "like").JSON()), Params: keyed(0, s.carol.Keys.RSA.ID)}))
		if got := s.home.Run(s, "actor", "fetch", string(s.carol.ID), "--json"); got.Code != 0 || strings.Contains(got.Stdout, s.p.Origin) {
			s.Errorf("carol is known as %d %s", got.Code, got.Stdout)
		}
	}},
	{id: "TEN-10", sends: "one activity for two local users", happens: "202, and both have it; no more than `database.max_connections` connections are open (`lightweb bench fanout` plays it with 1,000 users)", changes: true, asks: 1, play: func(s *siege) {
		public := s.create(s.mallory, "all")
		public["cc"] = []any{s.bob.ID}
		s.accepted(s.post(s.mallory, s.home.URL+"/inbox", public))
		s.settle()
		for _, u := range []*enginetest.User{s.alice, s.bob} {
			if len(u.Column(s, `SELECT 1 FROM activities WHERE uri = $1`, public.Text("id"))) != 1 {
				s.Errorf("%s does not have it", u.Name)
			}
		}
		open := s.home.Metric(s, `lightweb_db_user_connections{state="in_use"}`) + s.home.Metric(s, `lightweb_db_user_connections{state="idle"}`)
		if limit := s.home.Metric(s, `lightweb_db_user_connections_limit`); open == 0 || open > limit {
			s.Errorf("%v connections are open, want some and %v at most", open, limit)
		}
	}},
	{id: "TEN-11", sends: "the name of a deleted user, taken again", happens: "refused; actor, posts and inbox are 410 for good, and the old tokens are refused", changes: true, play: func(s *siege) {
		gone := s.home.CreateUser(s, "gone")
		_, note := gone.Post(s, map[string]any{"content": "for everybody", "visibility": "public"})
		if got := s.home.Run(s, "user", "delete", "gone", "--yes"); got.Code != 0 {
			s.Fatalf("user delete ended with %d: %s", got.Code, got.Stderr)
		}
		expectDeleted(s.T, s.home, gone)
		if got := s.home.Run(s, "user", "create", "gone"); got.Code != 73 || !strings.Contains(got.Stderr, "not used again") {
			s.Errorf("user create ended with %d %s, want 73 that says why", got.Code, got.Stderr)
		}
		for _, url := range []string{gone.ID, note, gone.ID + "/outbox", gone.ID + "/followers"} {
			if got := enginetest.Fetch(s, url); got.Status != http.StatusGone {
				s.Errorf("%s is answered %d, want 410", url, got.Status)
			}
		}
		s.answered(s.post(s.mallory, gone.ID+"/inbox", s.like(s.mallory, "late")), 410)
		s.answered(gone.Ask(s, http.MethodGet, "/api/feed", nil), 401)
	}},
	{id: "TEN-12", sends: "a look at private keys by somebody else on the machine, and links in their place", happens: "keys and configuration are readable by their owner alone; a key that is a link, open to others or of another account is refused, by `backup` too", play: func(s *siege) {
		folder := filepath.Join(s.home.DataDir, "users", "alice", "keys")
		files, err := os.ReadDir(folder)
		if err != nil || len(files) == 0 {
			s.Fatalf("alice's keys: %v, %v", files, err)
		}
		for _, f := range files {
			if info, err := f.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
				s.Errorf("%s is %v, %v", f.Name(), info.Mode(), err)
			}
		}
		if info, err := os.Stat(folder); err != nil || info.Mode().Perm()&0o077 != 0 {
			s.Errorf("the folder of keys is %v, %v", info.Mode(), err)
		}
		if config, err := os.Stat(filepath.Join(filepath.Dir(folder), "config.json")); err != nil || config.Mode().Perm()&0o077 != 0 {
			s.Errorf("the configuration is %v, %v", config, err)
		}
		path, away := filepath.Join(folder, "rsa.pem"), filepath.Join(s.TempDir(), "rsa.pem")
		data, err := os.ReadFile(path)
		if err := errors.Join(err, os.Rename(path, path+".real"), os.WriteFile(away, data, 0o600), os.Symlink(away, path)); err != nil {
			s.Fatal(err)
		}
		enginetest.Eventually(s, "the link is refused", func() bool { return enginetest.Fetch(s, s.alice.ID).Status == 503 })
		s.refusesBackup("rsa.pem is a link")
		if err := os.Rename(path+".real", path); err != nil {
			s.Fatal(err)
		}
		ways := map[string][2]func() error{"rsa.pem is open to other accounts": {func() error { return os.Chmod(path, 0o644) }, func() error { return os.Chmod(path, 0o600) }}}
		if os.Geteuid() == 0 { // only root can change the owner
			ways["rsa.pem belongs to another account"] = [2]func() error{func() error { return os.Chown(path, 54321, 54321) }, func() error { return os.Chown(path, 0, 0) }}
		}
		for refusal, way := range ways {
			if err := way[0](); err != nil {
				s.Fatal(err)
			}
			enginetest.Eventually(s, "the key is refused", func() bool { return enginetest.Fetch(s, s.alice.ID).Status == 503 })
			s.refusesBackup(refusal)
			if err := way[1](); err != nil {
				s.Fatal(err)
			}
			enginetest.Eventually(s, "the key is used again", func() bool { return enginetest.Fetch(s, s.alice.ID).Status == 200 })
		}
	}},
	{id: "TEN-13", sends: "an old backup of one user, restored", happens: "what it owed is not sent again, its keys replace none, numbers are not used twice (played by the tests of `lightweb restore`)", play: func(s *siege) {
		file := filepath.Join(enginetest.Dir(s), "alice.backup")
		if got := s.home.Run(s, "backup", "--user", "alice", file); got.Code != 0 {
			s.Fatalf("backup: %d %s", got.Code, got.Stderr)
		}
		if got := s.home.Run(s, "restore", "--user", "alice", file); got.Code == 0 {
			s.Errorf("a user who is there was replaced: %s", got.Stdout)
		}
	}},
	{id: "TEN-14", sends: "line breaks, escape sequences and JSON in ids, user agents and paths", happens: "each entry of the log is one line of JSON, and holds no control characters", asks: 2, play: func(s *siege) {
		s.forge(peertest.Forgery{After: func(r *http.Request) {
			r.Header.Set("User-Agent", "x\x1b[31m\t\",\"level\":\"ERROR")
			r.Header.Set("Signature", "\x1b]0;title\x07")
		}})
		s.answered(s.forge(peertest.Forgery{Body: `{"id":"` + s.p.Origin + `/a\u001b[2J\n{\"level\":\"ERROR\"}","type":"Li\u001b[1mke\nx","actor":"` + string(s.mallory.ID) + `","object":"` + s.note + `"}`}), 202, 400, 401)
		s.answered(enginetest.Fetch(s, s.home.URL+"/users/%0a%1b%5b31m%22,%22level%22:%22ERROR"), 404)
		for line := range strings.Lines(s.home.Log()) {
			if strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\x00\x07\x1b\r") || !json.Valid([]byte(line)) {
				s.Errorf("the log holds %q", line)
			}
		}
	}},
	{id: "TEN-15", sends: "ids with line breaks, towards headers of our own requests and answers", happens: "400: such ids are refused; what is stored never becomes a header", asks: 2, play: func(s *siege) {
		for _, id := range []string{s.p.Origin + `/a\r\nSet-Cookie: x=1`, s.p.Origin + `/a\u0000`, s.p.Origin + `/a b`} {
			s.answered(s.forge(peertest.Forgery{Body: `{"id":"` + id + `","type":"Like","actor":"` + string(s.mallory.ID) + `","object":"` + s.note + `"}`}), 400, 202)
		}
		a := s.p.Actor("/users/ten-15")
		a.Doc["inbox"] = string(a.ID) + "/inbox\r\nX-Evil: 1"
		a.Show()
		s.answered(s.forge(peertest.Forgery{Key: a.Keys.RSA, Body: string(s.like(a, "like").JSON())}), 401)
	}},
	{id: "TEN-16", sends: "an LLM engine's token for what its user alone may do, and activities of types with the names of other events: DM, ChatMessage, CREATE",
		happens: "403: blocks, follows and profile are not for scope `llm`; notes and reactions are, within a rate. Such an activity is told as `activity.received`", changes: true, play: func(s *siege) {
			made := s.home.Run(s, "user", "token", "create", "alice", "--scope", "llm", "--json")
			var token struct{ Token string }
			made.Decode(s, &token)
			engine := *s.alice
			engine.Token = token.Token
			s.answered(engine.Try(s, "Block", map[string]any{"actorUri": string(s.mallory.ID)}), 403)
			s.answered(engine.Try(s, "Follow", map[string]any{"actorUri": string(s.mallory.ID)}), 403)
			s.answered(engine.Try(s, "CreateNote", map[string]any{"content": "psst", "visibility": "direct", "to": []any{string(s.mallory.ID)}}), 403, 422)
			for _, kind := range []string{"DM", "ChatMessage", "CREATE", "FriendRequest", "MLS.Commit", "Unheard"} {
				s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(s.mallory, kind), "type": kind, "actor": string(s.mallory.ID), "to": s.alice.ID, "object": s.note}))
				want := "activity.received"
				if kind == "Unheard" {
					want = "unheard.received"
				}
				enginetest.Eventually(s, kind+" is told", func() bool {
					return s.count("lightweb_alice", `SELECT count(*) FROM event_outbox WHERE payload ->> 'activityUri' = $1`, s.id(s.mallory, kind)) > 0
				})
				if n := s.count("lightweb_alice", `SELECT count(*) FROM event_outbox WHERE payload ->> 'activityUri' = $1 AND type = $2 AND payload ->> 'activityType' = $3`, s.id(s.mallory, kind), want, kind); n != 1 {
					s.Errorf("an activity of the type %s is told %d times as %s, want once", kind, n, want)
				}
			}
		}},
	{id: "TEN-17", sends: "one event twice, after a crash between effect and acknowledgement", happens: "the same `eventId`, by which a consumer drops it", changes: true, play: repeatEvent},
}

func TestAttacksOnTheClientAPI(t *testing.T) {
	t.Parallel()
	newSiege(t).play(clientAttacks)
}

// socketAnswered asks for a WebSocket of the user's events and checks the status of the answer.
func (s *siege) socketAnswered(status int, query string, headers ...string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.home.URL+"/ws"+query, nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
	for n := 0; n < len(headers); n += 2 {
		r.Header.Add(headers[n], headers[n+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.Fatal(err)
	}
	_ = resp.Body.Close() // closes the socket, if the handshake succeeded
	if resp.StatusCode != status {
		s.Errorf("a socket with %q is answered %d, want %d", headers, resp.StatusCode, status)
	}
}

var clientAttacks = []attack{
	{id: "CLI-01", sends: "a WebSocket from a foreign page with the user's cookie", happens: "403 with whatever proof, as the page's origin is none that the operator named; 401 for a cookie, which proves nothing", play: func(s *siege) {
		bearer := []string{"Authorization", "Bearer " + s.alice.Token}
		for _, origin := range []string{"https://evil.example", "null", s.home.URL + ".evil.example", "https://" + strings.TrimPrefix(s.home.URL, "http://")} {
			s.socketAnswered(403, "", append([]string{"Origin", origin}, bearer...)...)
		}
		s.socketAnswered(401, "", "Cookie", "__Host-lw="+s.alice.Token+"; session="+s.alice.Token, "Origin", s.home.URL)
		s.socketAnswered(101, "", append([]string{"Origin", s.home.URL}, bearer...)...)
	}},
	{id: "CLI-02", sends: "a WebSocket whose token is in its address, expires or is revoked", happens: "400 for one in the address, 401 for one that is revoked or is given twice", changes: true, play: func(s *siege) {
		s.socketAnswered(400, "?token="+s.alice.Token, "Authorization", "Bearer "+s.alice.Token)
		s.socketAnswered(401, "", "Authorization", "Bearer "+s.alice.Token, "Sec-Websocket-Protocol", "lightweb.v1, bearer."+s.alice.Token)
		var made struct{ ID, Token string }
		s.home.Run(s, "user", "token", "create", "alice", "--json").Decode(s, &made)
		s.socketAnswered(101, "", "Sec-Websocket-Protocol", "lightweb.v1, bearer."+made.Token)
		runAll(s.T, s.home, []command{{"user token revoke alice " + made.ID + " --yes", 0, ""}})
		s.socketAnswered(401, "", "Sec-Websocket-Protocol", "lightweb.v1, bearer."+made.Token)
	}},
	{id: "CLI-02b", sends: "a stream of a user who is suspended meanwhile", happens: "sockets and streams end within 15 seconds (4001); new ones are 401", changes: true, play: suspendUnderSocket},
	{id: "CLI-03", sends: "100,000 subscriptions, endless frames, a reader who never reads", happens: "429 for the eleventh socket of a user; 1009 for a message over 64 KiB, in however many frames; 1008 for a flood; who does not read is cut off; others go on", changes: true, play: floodSockets},
	{id: "CLI-04", sends: "passwords: a megabyte long, of users and of nobody, and so many that alice is locked out", happens: "413; 401 in the same words and after the same work, whoever's name it is; 429 for the address that floods, while alice signs in from elsewhere", changes: true, play: guessPasswords},
	{id: "CLI-05", sends: "other spellings of addresses and headers, to get round a limit or a check of the token", happens: "401 or 404 for each: there is one spelling, and no proxy's header is believed", play: func(s *siege) {
		for _, path := range []string{"/api/feed/", "//api/feed", "/api/feed.json", "/api/%66eed", "/API/feed", "/api/./feed", "/api/x/../feed", "/api/feed;x"} {
			s.answered(enginetest.Fetch(s, s.home.URL+path), 400, 401, 404)
		}
		for _, header := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override"} {
			r := peertest.Forgery{Method: http.MethodGet, URL: s.home.URL + "/users/nobody", Key: s.mallory.Keys.RSA, After: func(r *http.Request) {
				r.Header.Del("Signature")
				r.Header.Set(header, "/api/feed")
			}}.Request(s)
			s.answered(s.send(r), 404)
		}
	}},
	{id: "CLI-06", sends: "unknown actions and parameters, __proto__, somebody else as the actor, megabytes of parameters", happens: "422 or 400, with the place of what is wrong", play: func(s *siege) {
		for _, try := range []struct {
			action string
			params map[string]any
		}{{"DropTables", nil}, {"", nil}, {"CreateNote", map[string]any{"content": "x", "__proto__": map[string]any{"admin": true}}},
			{"CreateNote", map[string]any{"content": "x", "actor": s.bob.ID}}, {"CreateNote", map[string]any{"content": "x", "bcc": []any{string(s.mallory.ID)}}},
			{"CreateNote", map[string]any{"content": strings.Repeat("x", 500_000)}}, {"CreateNote", map[string]any{"content": 5}},
			{"CreateNote", map[string]any{"content": "x", "visibility": "everybody"}}, {"Like", map[string]any{"objectId": []any{s.note}}},
			{"CreateNote", map[string]any{"content": "x", "visibility": "direct", "to": []any{s.bob.ID + "/groups/friends"}}}} {
			s.answered(s.alice.Try(s, try.action, try.params), 400, 404, 422)
		}
		for _, body := range []string{`{"action":"CreateNote"}`, `[]`, `{"action":"CreateNote","params":{"content":"x"},"admin":true}`, `{"action":"Like","action":"CreateNote","params":{"content":"x"}}`, `{`, ``} {
			r := peertest.Forgery{URL: s.home.URL + "/api/activity", Body: body, Key: s.mallory.Keys.RSA, After: func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+s.alice.Token)
				r.Header.Set("Content-Type", "application/json")
			}}.Request(s)
			s.answered(s.send(r), 400, 422)
		}
	}},
	{id: "CLI-07", sends: "a note of alice's with an id, an actor and a date of her choice, and changes to what is bob's or carol's", happens: "422, 403 or 404: the engine sets them, and only what is alice's own changes", play: func(s *siege) {
		for _, name := range []string{"id", "actor", "published", "attributedTo", "bto"} {
			s.answered(s.alice.Try(s, "CreateNote", map[string]any{"content": "x", name: s.bob.ID}), 422)
		}
		for _, object := range []string{s.bob.ID + "/objects/019c8052-5f00-7000-8000-000000000001", string(s.carol.ID) + "/notes/1", string(s.carol.ID), s.alice.ID} {
			s.answered(s.alice.Try(s, "UpdateObject", map[string]any{"objectId": object, "content": "mine"}), 403, 404, 422)
			s.answered(s.alice.Try(s, "DeleteObject", map[string]any{"objectId": object}), 403, 404, 422)
		}
	}},
	{id: "CLI-08", sends: "requests that a foreign page makes in the user's browser", happens: "401: no cookie means anything, no foreign origin is allowed, forms are 415", play: func(s *siege) {
		send := func(change func(*http.Request)) enginetest.Answer {
			return s.send(peertest.Forgery{URL: s.home.URL + "/api/activity", Body: `{"action":"CreateNote","params":{"content":"x","visibility":"public"}}`, Key: s.mallory.Keys.RSA, After: func(r *http.Request) {
				r.Header.Del("Signature")
				r.Header.Set("Origin", "https://evil.example")
				r.Header.Set("Content-Type", "application/json")
				change(r)
			}}.Request(s))
		}
		s.unauthorized(send(func(r *http.Request) {
			r.Header.Set("Cookie", "token="+s.alice.Token+"; Authorization=Bearer "+s.alice.Token)
		}))
		a := send(func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+s.alice.Token)
			r.Header.Set("Content-Type", "text/plain")
		})
		s.answered(a, http.StatusUnsupportedMediaType)
		for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"} {
			if got := a.Header.Get(name); got != "" {
				s.Errorf("%s is %q", name, got)
			}
		}
	}},
	{id: "CLI-09", sends: "addresses to look up without a token, to scan ports through the engine", happens: "401 or 404: nothing is fetched for who is nobody here", play: func(s *siege) {
		for _, path := range []string{"/api/feed?feed=" + s.p.Origin, "/api/search?q=" + s.p.Origin + "/x&resolve=true", "/.well-known/webfinger?resource=" + s.p.Origin + "/users/mallory",
			"/authorize_interaction?uri=" + s.p.Origin + "/x", "/api/actor?uri=" + s.p.Origin + "/x"} {
			s.answered(enginetest.Fetch(s, s.home.URL+path), 400, 401, 404)
		}
		s.answered(s.send(peertest.Forgery{URL: s.home.URL + "/api/activity", Body: `{"action":"Follow","params":{"actorUri":"` + s.p.Origin + `/users/x"}}`, Key: s.mallory.Keys.RSA, After: func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer lw_alice_"+strings.Repeat("a", 43))
		}}.Request(s)), 401)
	}},
	{id: "CLI-10", sends: "a user's token for what is the operator's, and a role in the body", happens: "404 or 422: the operator's side is another listener, on loopback, that takes no foreign Host", play: func(s *siege) {
		for _, path := range []string{"/metrics", "/readyz", "/healthz", "/debug/pprof/heap", "/api/admin", "/admin"} {
			s.answered(s.alice.Ask(s, http.MethodGet, path, nil), 404)
		}
		s.answered(s.alice.Try(s, "CreateNote", map[string]any{"content": "x", "role": "admin"}), 422)
	}},
	{id: "CLI-11", sends: "an archive to import that is a bomb, holds links, or a million follows", happens: "65, and nothing is changed; a list has 10,000 accounts at most, and follows leave one in two seconds", play: func(s *siege) {
		for what, file := range hostileImports(s.T) {
			for _, way := range []string{"--verify-only", "--yes"} {
				if got := s.home.Run(s, "user", "import", file, "--as", "alice", way); got.Code != 65 {
					s.Errorf("%s, %s: exit code %d and %s, want 65", what, way, got.Code, got.Stderr)
				}
			}
		}
	}},
	{id: "CLI-12", sends: "redirects at sign-in to addresses that only look allowed", happens: "no answer leads there: a browser comes back from an OpenID provider to pages of api.cors_origins alone (400), and no other path looks at such an address; an id leads to its page alone, for the query is not looked at", play: func(s *siege) {
		for _, name := range []string{"page", "redirect_uri", "next", "return_to", "url"} {
			for _, to := range []string{"https://evil.example/", "//evil.example", s.home.URL + "@evil.example/", s.home.URL + "/#https://evil.example", s.home.URL + "?x=https://evil.example", `\\evil.example`} {
				query := "?" + name + "=" + url.QueryEscape(to)
				for path, ask := range map[string]func(string) *http.Response{
					"/api/session":      s.signsIn(name, to),
					"/api/session/oidc": s.looks,
					"/client/":          s.looks,
					"/users/alice":      s.looks,
					"/@alice":           s.looks,
				} {
					got := ask(s.home.URL + path + query)
					if place := got.Header.Get("Location"); place != "" && (path != "/users/alice" || place != s.home.URL+"/@alice") {
						s.Errorf("%s%s is answered %d and leads to %s", path, query, got.StatusCode, place)
					}
					if path+"?"+name == "/api/session/oidc?page" && got.StatusCode != http.StatusBadRequest {
						s.Errorf("%s%s is answered %d, want 400", path, query, got.StatusCode)
					}
				}
			}
		}
	}},
}

// refusesBackup checks that the command refuses a backup of alice because of her key, and leaves
// no file.
func (s *siege) refusesBackup(why string) {
	s.Helper()
	file := filepath.Join(s.TempDir(), "alice.backup")
	if got := s.home.Run(s, "backup", "--user", "alice", file); got.Code != 78 || !strings.Contains(got.Stderr, why) || !strings.Contains(got.Stderr, "chmod 600") {
		s.Errorf("a backup of a key that is not for one account ended with %d %s", got.Code, got.Stderr)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("a refused backup left a file: %v", err)
	}
}
