package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sharedAttacks use up resources that all clients share. Their requests come from several
// addresses. The rate limits are those of production.
var sharedAttacks = []attack{pay01, pay02, pay05}

func TestAttacksOnWhatAllShare(t *testing.T) {
	t.Parallel()
	newSiege(t, "LIGHTWEB_LIMITS_KEY_FETCH_RATE=20/min").play(sharedAttacks)
}

var pay01 = attack{id: "PAY-01", sends: "25 forged requests that name actors of a large server, then a Follow by an actor of that server that nobody knows yet",
	happens: "the forger's address uses up its part of what is fetched from that server; the Follow, from another address, is answered 202 and accepted",
	asks:    20, changes: true, play: func(s *siege) {
		forger, honest, asked, before := s.from("127.1.0.1"), s.from("127.2.0.1"), s.asked(), s.known(s.q.Origin)
		s.flood("25 forged requests", func() {
			for n := range 25 {
				id := fmt.Sprintf("%s/users/made-up-%d", s.q.Origin, n)
				like := vocab.Doc{"id": id + "/likes/1", "type": "Like", "actor": id, "object": s.note}
				forger.answered(forger.forge(peertest.Forgery{Body: string(like.JSON()), Key: signature.Key{ID: id + "#main-key", Private: s.mallory.Keys.RSA.Private}, Dialect: signature.RFC9421}),
					http.StatusUnauthorized, http.StatusTooManyRequests)
			}
		})
		if n := s.asked() - asked; n > 12 {
			s.Errorf("the forger caused %d fetches", n)
		}
		if after := s.known(s.q.Origin); after != before {
			s.Errorf("the forged actors leave %+v, before it was %+v", after, before)
		}
		a := s.q.Actor("/users/pay-01")
		honest.accepted(honest.post(a, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(a, "follow"), "type": "Follow", "actor": string(a.ID), "object": s.alice.ID}))
		if got := s.count("lightweb_alice", `SELECT count(*) FROM relationships WHERE type = 'follower' AND status = 'accepted' AND actor_uri = $1`, string(a.ID)); got != 1 {
			s.Error("the honest actor does not follow alice")
		}
		if after := s.known(s.q.Origin); after.actors != before.actors+1 || after.keys != before.keys+2 || after.acquaintances != before.acquaintances+1 {
			s.Errorf("in the end there is %+v, before it was %+v; want one actor more, who has two keys", after, before)
		}
	}}

var pay02 = attack{id: "PAY-02", sends: "32 requests of 1 MiB from two addresses, signed by keys whose servers stall, beside those of a known sender; then the same again",
	happens: "they hold their bodies and no more, and leave nothing; the known sender is answered 202 while all of them wait",
	asks:    2, changes: true, play: func(s *siege) {
		first := s.stallKeys(0)
		second := s.stallKeys(1)
		enginetest.Eventually(s, "the second time leaves no more than the first", func() bool {
			return second.memory < first.memory+stallsLeave || s.usage().memory < first.memory+stallsLeave
		})
	}}

// The bounds of the memory that 32 stalled requests of 1 MiB use, in bytes.
const (
	stallsTake  = 128 << 20
	stallsLeave = 16 << 20
)

// stallKeys runs the attack PAY-02 with new servers in each round. It returns the engine's usage
// after the round.
func (s *siege) stallKeys(round int) (after usage) {
	s.Helper()
	var stalled, ended atomic.Int32
	release := make(chan struct{})
	from := []*siege{s.from("127.1.0.2"), s.from("127.2.0.2"), s.from("127.3.0.2")}
	return s.floodWithin(stallsTake, "32 requests of 1 MiB whose keys stall", func() {
		var all sync.WaitGroup
		for n := range 32 {
			slow := s.slow(round*8 + n%8)
			path := fmt.Sprint("/users/slow-", n)
			a := slow.Actor(path)
			slow.Handle(path, func(w http.ResponseWriter, r *http.Request) {
				stalled.Add(1)
				select {
				case <-release:
				case <-r.Context().Done():
				}
				ended.Add(1)
				w.Header().Set("Connection", "close")
				w.WriteHeader(http.StatusNotFound)
			})
			by := from[n%2]
			like := vocab.Doc{"id": string(a.ID) + "/likes/1", "type": "Like", "actor": string(a.ID), "object": s.note, "x": strings.Repeat("x", 1<<20-2000)}
			all.Go(func() {
				by.answered(by.post(a, s.alice.ID+"/inbox", like), http.StatusUnauthorized)
			})
			enginetest.Eventually(s, "it waits for its key, and so do all before it", func() bool { return stalled.Load() == int32(n+1) }) // the engine may need more memory for the request while it reads it
		}
		known := from[2]
		known.accepted(known.post(s.carol, s.alice.ID+"/inbox", s.like(s.carol, fmt.Sprint("known-", round))))
		if n := ended.Load(); n != 0 {
			s.Errorf("%d of 32 wait no more when the known sender is answered", n)
		}
		close(release)
		all.Wait()
		for _, by := range from {
			by.client.CloseIdleConnections()
		}
	})
}

// slow returns the nth slow server. Each has an address of its own.
func (s *siege) slow(n int) *peertest.Peer {
	s.Helper()
	for len(s.slowOnes) <= n {
		s.slowOnes = append(s.slowOnes, peertest.New(s, fmt.Sprint("127.0.0.", 20+len(s.slowOnes))))
	}
	return s.slowOnes[n]
}

var pay05 = attack{id: "PAY-05", sends: "activities to the shared inbox, until one is refused, that name 20 users each (1,000 with `LIGHTWEB_SIEGE`) and are kept for none",
	happens: "429 once 2,000 recipients who do not follow the sender were charged to its domain; another domain is answered 202, and so are posts of that same domain to those who follow their sender, however many these are; nothing waits or is kept in the end",
	asks:    sized(65, 3100), changes: true, play: func(s *siege) {
		readers := []*enginetest.User{s.alice, s.bob}
		for n := range sized(18, 998) {
			readers = append(readers, s.home.CreateUser(s, fmt.Sprint("reader", n)))
		}
		var to []any
		for _, u := range readers {
			to = append(to, u.ID)
		}
		unknown := func(a *peertest.Actor, n int) vocab.Doc {
			return vocab.Doc{"id": s.id(a, fmt.Sprint("like-", n)), "type": "Like", "actor": string(a.ID), "object": s.home.URL + "/users/nobody/objects/1", "to": to}
		}
		const most = 2000 // 20 recipients a second become free again, so a slow machine must send more than the burst
		taken := 0
		untilRefused := func() (last enginetest.Answer) {
			for taken < most {
				if last = s.post(s.mallory, s.home.URL+"/inbox", unknown(s.mallory, taken)); last.Status != http.StatusAccepted {
					break
				}
				taken++
			}
			s.answered(last, http.StatusTooManyRequests)
			return last
		}
		s.flood("activities that name many users", func() {
			last := untilRefused()
			if taken < 2000/len(to) || last.Header.Get("Retry-After") == "" {
				s.Errorf("%d were taken, and the 429 says to come again after %q", taken, last.Header.Get("Retry-After"))
			}
		})
		s.accepted(s.post(s.carol, s.home.URL+"/inbox", unknown(s.carol, 0)))
		s.accepted(s.post(s.carol, s.home.URL+"/inbox", s.create(s.carol, "post")))
		s.settle()
		if !fed(s, s.alice, s.id(s.carol, "post-note")) {
			s.Error("alice does not see the post of carol, followed by her")
		}

		writer := s.p.Actor("/users/writer")
		for n, u := range readers {
			sent := u.Do(s, "Follow", map[string]any{"actorUri": string(writer.ID)}).ActivityID
			s.accepted(s.post(writer, u.ID+"/inbox", vocab.Doc{"id": s.id(writer, fmt.Sprint("accept-", n)), "type": "Accept", "actor": string(writer.ID), "object": sent}))
		}
		s.settle()
		untilRefused()
		s.accepted(s.post(writer, s.home.URL+"/inbox", s.create(writer, "post")))
		s.settle()
		for n, u := range readers {
			if n%sized(1, 50) != 0 {
				continue // the test looks into 20 of the thousand databases, because each look needs its own connection
			}
			if !fed(s, u, s.id(writer, "post-note")) {
				s.Errorf("%s does not see the post of an actor that every user follows", u.Name)
			}
			if n := s.count("lightweb_"+u.Name, `SELECT count(*) FROM activities WHERE uri LIKE '%/pay-05-like-%'`); n != 0 {
				s.Errorf("%s has %d of the activities that are kept for none", u.Name, n)
			}
		}
		if n := s.count("lightweb", `SELECT count(*) FROM intake`); n != 0 {
			s.Errorf("%d activities still wait", n)
		}
	}}
