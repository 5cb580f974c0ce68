package engine_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnModeration(t *testing.T) {
	t.Parallel()
	newSiege(t).play(moderationAttacks)
}

// blocking blocks a domain, calls play(), and unblocks the domain.
func (s *siege) blocking(domain string, play func()) {
	s.Helper()
	s.change("domain", "block", domain)
	defer s.change("domain", "unblock", domain)
	claim := "http://" + domain + "/users/x"
	enginetest.Eventually(s, domain+" is blocked", func() bool { return s.claimed(claim).Status == http.StatusForbidden })
	play()
}

// claimed sends a Like in the name of the given actor. The Like is signed with mallory's key.
func (s *siege) claimed(actor string) enginetest.Answer {
	s.Helper()
	return s.forge(peertest.Forgery{Params: keyed(0, actor+"#main-key"), Body: `{"id":"` + actor + `/1","type":"Like","actor":"` + actor + `","object":"` + s.note + `"}`})
}

var moderationAttacks = []attack{
	{id: "MOD-01", sends: "a blocked domain under another spelling: a subdomain, upper case, with a port, with a dot at the end", happens: "403: a domain stands for all below it, however it is written", changes: true, play: func(s *siege) {
		s.blocking("evil.example", func() {
			for _, host := range []string{"a.evil.example", "a.b.EVIL.example", "EVIL.EXAMPLE", "evil.example:8443", "evil.example.", "evil.example.:80"} {
				s.answered(s.claimed("http://"+host+"/users/x"), http.StatusForbidden)
			}
		})
	}},
	{id: "MOD-02", sends: "a blocked server's posts and actors through others: boosts, replies, redirects, a Move, a key elsewhere", happens: "403, or nothing of it is taken; the blocked server is never asked", changes: true, asks: 4, play: func(s *siege) {
		victim := s.p.Actor("/users/mod-02")
		s.accepted(s.post(victim, s.alice.ID+"/inbox", s.like(victim, "hello")))
		s.p.Handle("/notes/mod-02", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, s.q.Origin+"/notes/mod-02", http.StatusFound)
		})
		s.blocking("127.0.0.3", func() {
			before, asked := s.state(), len(s.q.Asked())+len(s.q.Posted())
			for n, activity := range []vocab.Doc{
				{"type": "Announce", "object": s.q.Origin + "/notes/mod-02"},
				{"type": "Announce", "object": s.p.Origin + "/notes/mod-02"},
				{"type": "Create", "object": s.q.Origin + "/notes/mod-02"},
				{"type": "Move", "object": string(victim.ID), "target": string(s.carol.ID)},
			} {
				activity["id"], activity["actor"], activity["to"] = s.id(victim, string(rune('a'+n))), string(victim.ID), []any{s.alice.ID, string(vocab.Public)}
				s.answered(s.post(victim, s.alice.ID+"/inbox", activity), 202, 400, 403)
			}
			s.answered(s.forge(peertest.Forgery{Key: victim.Keys.RSA, Body: string(s.like(s.carol, "like").JSON())}), 403)
			s.settle()
			if after := s.state(); after != before {
				s.Errorf("it left traces:\n%s", difference(before, after))
			}
			if n := len(s.q.Asked()) + len(s.q.Posted()) - asked; n != 0 {
				s.Errorf("the blocked server was asked %d times", n)
			}
		})
	}},
	{id: "MOD-02b", sends: "requests of a blocked server, to learn by the answers that it is blocked by its key or by its actor", happens: "403 in the same words, whichever it is", changes: true, play: func(s *siege) {
		s.blocking("127.0.0.3", func() {
			words := func(a enginetest.Answer) string {
				s.answered(a, http.StatusForbidden)
				return strings.ReplaceAll(string(a.Body), a.Header.Get("X-Request-Id"), "")
			}
			key := words(s.post(s.carol, s.alice.ID+"/inbox", s.like(s.carol, "key")))
			actor := words(s.forge(peertest.Forgery{Body: string(s.like(s.carol, "actor").JSON())}))
			if key != actor {
				s.Errorf("answered\n%s\nand\n%s", key, actor)
			}
		})
	}},
	{id: "MOD-03", sends: "a blocked server's reading of what is public, under a name that is not blocked", never: "what is public is so for every name; `federation.mode = \"allowlist\"` and `federation.secure_mode` are for who minds"},
	{id: "MOD-04", sends: "lists with public suffixes, our own domain, `*`, empty and obfuscated rows, formulas, another encoding mark", happens: "such rows are refused by their number; the rest is taken whole, or with `--dry-run` nothing", changes: true, play: func(s *siege) {
		list := filepath.Join(s.TempDir(), "list.csv")
		if err := os.WriteFile(list, []byte("\ufeff#domain,#severity\ncom,suspend\n127.0.0.1,suspend\n*,suspend\n,suspend\nev**.example,suspend\n\"=evil.example\",suspend\n"), 0o600); err != nil {
			s.Fatal(err)
		}
		for _, args := range [][]string{{"domain", "import", list, "--dry-run"}, {"domain", "import", list}} {
			if got := s.home.Run(s, args...); got.Code == 0 || !strings.Contains(got.Stderr, "line 2") {
				s.Errorf("%q ended with %d %s", args, got.Code, got.Stderr)
			}
		}
		if got := s.home.Run(s, "domain", "list"); got.Stdout != "" {
			s.Errorf("domain list wrote %q", got.Stdout)
		}
	}},
	{id: "MOD-05", sends: "a subscribed list that turns on its readers", never: "there are no subscriptions: a list is imported by somebody who can look at it first"},
	{id: "MOD-06", sends: "requests of servers that are not on the allowlist", happens: "403 for what they send, 401 for what they read; WebFinger, NodeInfo and the instance actor stay open", play: func(s *siege) {
		closed := enginetest.Start(s, "LIGHTWEB_FEDERATION_MODE=allowlist")
		erin := closed.CreateUser(s, "erin")
		s.answered(enginetest.Fetch(s, erin.ID), http.StatusUnauthorized)
		s.answered(enginetest.Fetch(s, erin.ID+"/outbox"), http.StatusUnauthorized)
		s.answered(s.get(s.mallory, erin.ID+"/outbox"), http.StatusForbidden)
		s.answered(s.post(s.mallory, erin.ID+"/inbox", s.like(s.mallory, "like")), http.StatusForbidden)
		if got := enginetest.Fetch(s, closed.URL+"/actor"); got.Status != http.StatusOK {
			s.Errorf("the instance actor was answered %d", got.Status)
		}
	}},
	{id: "MOD-07", sends: "what a blocked actor sends by the shared inbox, as an Update, by an Undo, and through others", happens: "202, and it is not for who blocks: nothing of it is stored", changes: true, asks: 3, play: func(s *siege) {
		troll := s.p.Actor("/users/mod-07")
		s.accepted(s.post(troll, s.alice.ID+"/inbox", s.like(troll, "hello")))
		s.alice.Do(s, "Block", map[string]any{"actorUri": string(troll.ID)})
		s.settle()
		before := s.state()
		create := s.create(troll, "create")
		s.accepted(s.post(troll, s.home.URL+"/inbox", create))
		s.accepted(s.post(troll, s.alice.ID+"/inbox", create))
		s.accepted(s.post(troll, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(troll, "update"), "type": "Update", "actor": string(troll.ID), "to": create["to"], "object": create["object"]}))
		s.p.Serve(strings.TrimPrefix(create.Sub("object").Text("id"), s.p.Origin), create.Sub("object").JSON())
		s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(s.mallory, "boost"), "type": "Announce", "actor": string(s.mallory.ID),
			"to": []any{s.alice.ID, string(vocab.Public)}, "object": create.Sub("object").Text("id")}))
		s.settle()
		if after := s.state(); after != before {
			s.Errorf("it left traces:\n%s", difference(before, after))
		}
		s.alice.Do(s, "Unblock", map[string]any{"actorUri": string(troll.ID)})
	}},
}
