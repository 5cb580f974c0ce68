package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// holder returns the user with a new token of the given scope.
func (s *siege) holder(u *enginetest.User, scope string) *enginetest.User {
	s.Helper()
	var token struct{ Token string }
	made := s.home.Run(s, "user", "token", "create", u.Name, "--scope", scope, "--json")
	made.Decode(s, &token)
	other := *u
	other.Token = token.Token
	return &other
}

var pay03 = attack{id: "PAY-03", sends: "100 dispatches of 1 MiB that are refused, by one token", happens: "422 for each, and a few rows of 4 KiB at most that count them, which the night removes after 180 days; another token of the user's works beside it, and its actions are recorded one by one",
	changes: true, asks: 5, play: func(s *siege) {
		evil, honest := s.holder(s.alice, "write"), s.holder(s.alice, "write")
		before := s.count("lightweb_alice", `SELECT pg_total_relation_size('audit')`)
		rows, done := s.count("lightweb_alice", `SELECT count(*) FROM audit`), s.count("lightweb_alice", `SELECT count(*) FROM audit WHERE outcome = 'ok'`)
		for n := range 100 {
			params := map[string]any{"content": strings.Repeat("x", 1<<20-1000)}
			if n%2 == 0 {
				params = map[string]any{"content": "x", "visibility": strings.Repeat("x", 1<<20-1000)}
			}
			if got := evil.Try(s, "CreateNote", params); got.Status != http.StatusUnprocessableEntity {
				s.Fatalf("answered %d %s, want 422", got.Status, got.Body)
			}
			if n%20 == 0 {
				honest.Do(s, "CreateNote", map[string]any{"content": "as ever"})
			}
		}
		if n := s.count("lightweb_alice", `SELECT count(*) FROM audit`) - rows; n > 5+2 {
			s.Errorf("%d rows more, want five notes and up to two counts", n)
		}
		if n := s.count("lightweb_alice", `SELECT count(*) FROM audit WHERE outcome = 'ok'`) - done; n != 5 {
			s.Errorf("%d actions are recorded as done, want the five of the honest program", n)
		}
		if most := s.count("lightweb_alice", `SELECT max(octet_length(t::text)) FROM audit t`); most > 4096 {
			s.Errorf("a record has %d bytes, want 4096 at most", most)
		}
		if after := s.count("lightweb_alice", `SELECT pg_total_relation_size('audit')`); after-before > 64<<10 {
			s.Errorf("the records take %d bytes, before it was %d", after, before)
		}
		s.alice.Column(s, `UPDATE audit SET at = at - interval '181 days' WHERE outcome <> 'ok' RETURNING ''`)
		s.home.Run(s, "prune", "--all")
		if n := s.count("lightweb_alice", `SELECT count(*) FROM audit WHERE outcome <> 'ok'`); n != 0 {
			s.Errorf("%d refusals are left after 181 days", n)
		}
		if n := s.count("lightweb_alice", `SELECT count(*) FROM audit WHERE outcome = 'ok'`) - done; n != 5 {
			s.Errorf("of the honest program %d actions are recorded after the night, want five", n)
		}
	}}

var pay07 = attack{id: "PAY-07", sends: "1,000 small activities by four strangers of one domain and of unknown types, while the consumer of the user's events is away",
	happens: "202, and they are stored; at most three quarters of 200 are told, and one event counts the others: what really happened is there still for a group of consumers that reads late", changes: true, asks: 3, play: func(s *siege) {
		last := int64(s.count("lightweb_alice", `SELECT coalesce(max(seq), 0) FROM event_outbox`))
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", s.like(s.carol, "before")))
		strangers := []*peertest.Actor{s.mallory, s.p.Actor("/users/waves-1"), s.p.Actor("/users/waves-2"), s.p.Actor("/users/waves-3")}
		wave := func(n int) {
			a := strangers[n%4]
			s.accepted(s.post(a, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(a, fmt.Sprint("wave-", n)), "type": "Wave", "actor": string(a.ID), "to": s.alice.ID}))
		}
		for n := range strangers {
			wave(n) // makes the engine fetch the stranger
		}
		s.at32(1000-len(strangers), func(n int) { wave(len(strangers) + n) })
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", s.create(s.carol, "after")))
		s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", s.like(s.mallory, "that-does-something")))
		told, withheld := map[string]int{}, 0
		for _, e := range s.alice.Events(s, last) {
			if told[e.Type]++; e.Type == "events.withheld" {
				var p struct{ Count int }
				if err := json.Unmarshal(e.Payload, &p); err != nil {
					s.Error(err)
				}
				withheld += p.Count
			}
		}
		stored := s.count("lightweb_alice", `SELECT count(*) FROM activities WHERE type = 'Wave'`)
		waves := told["wave.received"]
		if waves < 90 || waves > 151 || told["events.withheld"] != 1 || withheld != stored-waves || stored != 1000 {
			s.Errorf("told %v, %d of %d withheld; want 150 told at most, and the others in one event", told, withheld, stored)
		}
		if told["like.received"] != 2 || told["create.received"] != 1 {
			s.Errorf("told %v, want two likes and a note", told)
		}
		s.settle()
		late := s.redis("events", "XREADGROUP", "GROUP", "llm", "late", "COUNT", "20000", "STREAMS", "alice:events", ">")
		for _, id := range []string{s.id(s.carol, "before"), s.id(s.carol, "after")} {
			if !strings.Contains(late, id) {
				s.Errorf("a consumer that reads late does not find %s", id)
			}
		}
	}}
