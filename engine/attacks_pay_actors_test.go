package engine_test

import (
	"fmt"
	"strings"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// invented returns the nth of many actors on mallory's server. The actor's document has nearly the
// largest size that the engine reads.
func (s *siege) invented(n int) *peertest.Actor {
	s.Helper()
	a := s.p.Actor(fmt.Sprint("/users/invented-", n))
	a.Doc["attachment"] = strings.Repeat("x", 250<<10)
	a.Show()
	return a
}

// knownActors counts the rows of the instance database about the actors of one server, and their
// bytes.
type knownActors struct{ actors, keys, bytes, largest, acquaintances int }

func (s *siege) known(origin string) (k knownActors) {
	s.Helper()
	err := s.home.SQL(s, "lightweb").QueryRowContext(s.Context(), `SELECT count(*), (SELECT count(*) FROM actor_keys WHERE actor_uri LIKE $1), coalesce(sum(octet_length(raw::text)), 0),
		coalesce(max(octet_length(raw::text)), 0), (SELECT count(*) FROM acquaintances WHERE actor_uri LIKE $1) FROM actors WHERE uri LIKE $1`, origin+"/%").
		Scan(&k.actors, &k.keys, &k.bytes, &k.largest, &k.acquaintances)
	if err != nil {
		s.Fatal(err)
	}
	return k
}

// pruneLater prunes as if 40 days had passed. It returns how many actors were forgotten.
func (s *siege) pruneLater() (forgotten int) {
	s.Helper()
	for _, older := range []string{`UPDATE actors SET used_at = used_at - interval '40 days'`, `UPDATE acquaintances SET idle_at = idle_at - interval '40 days'`} {
		if _, err := s.home.SQL(s, "lightweb").ExecContext(s.Context(), older); err != nil {
			s.Fatal(err)
		}
	}
	var r struct {
		Forgotten int `json:"forgotten_actors"`
	}
	s.home.Run(s, "prune", "--all", "--json").Decode(s, &r)
	return r.Forgotten
}

var pay04 = attack{id: "PAY-04", sends: "posts for nobody by a hundred invented actors with documents of 256 KiB (10,000 with `LIGHTWEB_SIEGE`), then posts to alice by as many",
	happens: "202: of those that are for nobody nothing is stored; of an actor who wrote to somebody here at most 16 KiB, counted against its domain (whose bound `TestNewActorsAreStoredWithinABudget` plays), until two nights find nothing of it here and 30 days have passed",
	asks:    2*sized(100, 10_000) + 10, changes: true, play: func(s *siege) {
		many := sized(100, 10_000)
		honest := s.guest(s.q, "reads")
		s.accepted(s.post(honest, s.alice.ID+"/inbox", s.does(honest, "Like", s.note)))
		friends, before := s.known(s.q.Origin), s.known(s.p.Origin)
		held := s.count("lightweb_alice", `SELECT count(*) FROM activities`)
		s.flood("posts for nobody by invented actors", func() {
			for n := range many {
				a := s.invented(n)
				s.accepted(s.post(a, s.home.URL+"/inbox", but(but(s.create(a, "for-nobody"), "to", []any{everybody}), "object", vocab.Doc{
					"id": s.id(a, "note"), "type": "Note", "attributedTo": string(a.ID), "content": "to nobody", "to": []any{everybody}})))
			}
			s.settle()
		})
		if after := s.known(s.p.Origin); after != before {
			s.Errorf("posts for nobody leave %+v, before it was %+v", after, before)
		}
		if n := s.count("lightweb_alice", `SELECT count(*) FROM activities`); n != held {
			s.Errorf("alice has %d activities, before it was %d", n, held)
		}

		s.flood("posts to alice by invented actors", func() {
			for n := range many {
				a := s.invented(many + n)
				s.accepted(s.post(a, s.alice.ID+"/inbox", s.create(a, "for-alice")))
			}
			s.settle()
		})
		after := s.known(s.p.Origin)
		if after.actors != before.actors+many || after.largest > 16<<10 || after.bytes-before.bytes > many*(4<<10) {
			s.Errorf("posts to alice leave %+v, before it was %+v; want %d small documents", after, before, many)
		}
		if n := s.count("lightweb_alice", `SELECT max(octet_length(raw::text)) FROM actors`); n > 16<<10 {
			s.Errorf("alice has a copy of an actor with %d bytes", n)
		}

		if n := s.pruneLater(); n != 0 {
			s.Errorf("%d actors are forgotten that alice has posts of", n)
		}
		for _, table := range []string{"feed", "activities", "actors"} {
			column := map[string]string{"actors": "uri"}[table]
			if column == "" {
				column = "actor_uri"
			}
			s.alice.Column(s, fmt.Sprintf(`DELETE FROM %s WHERE %s LIKE '%%/users/invented-%%' RETURNING ''`, table, column))
		}
		s.alice.Column(s, `DELETE FROM objects WHERE raw ->> 'attributedTo' LIKE '%/users/invented-%' RETURNING ''`)
		if n := s.pruneLater(); n != 0 {
			s.Errorf("%d actors are forgotten by the first night that finds nothing of them", n)
		}
		if n := s.pruneLater(); n != many {
			s.Errorf("%d actors are forgotten that nobody has anything of, want %d", n, many)
		}
		if left := s.known(s.p.Origin); left != before {
			s.Errorf("in the end there is left %+v, before it was %+v", left, before)
		}
		if got := s.known(s.q.Origin); got != friends {
			s.Errorf("of those who are known there is %+v, before it was %+v", got, friends)
		}
		create, _ := s.alice.Post(s, map[string]any{"content": "still there", "visibility": "public"})
		s.settle()
		enginetest.Eventually(s, "carol gets what alice writes", func() bool {
			for _, p := range s.q.Posted() {
				if strings.Contains(string(p.Content), create) {
					return true
				}
			}
			return false
		})
	}}
