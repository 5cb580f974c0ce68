package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnCosts(t *testing.T) {
	t.Parallel()
	newSiege(t).play(costAttacks)
}

var costAttacks = []attack{pay01, pay02, pay03, pay04, pay05, pay06, pay07, pay08}

var pay01 = attack{id: "PAY-01", sends: "forged requests that name actors of a large server, then a Follow by an actor of that server whom nobody knows yet", later: "the next release"}

var pay02 = attack{id: "PAY-02", sends: "32 requests of 1 MiB, signed by keys whose server stalls, beside those of a known sender", later: "the next release"}

var pay05 = attack{id: "PAY-05", sends: "activities to the shared inbox that name 1,000 users each and are kept for none", later: "the next release"}

// bulky returns an activity by a of just under 1 MiB, which is kept and does nothing.
func (s *siege) bulky(a *peertest.Actor, name string, to ...any) vocab.Doc {
	return vocab.Doc{"id": s.id(a, name), "type": "Listen", "actor": string(a.ID), "to": to, "object": s.p.Origin + "/songs/1", "song": strings.Repeat("x", 1<<20-2000)}
}

// away makes a user's database refuse connections, or take them again.
func away(t *testing.T, home *enginetest.Instance, u *enginetest.User, is bool) {
	t.Helper()
	for _, q := range []string{fmt.Sprintf(`ALTER DATABASE lightweb_%s ALLOW_CONNECTIONS %t`, u.Name, !is),
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'lightweb_` + u.Name + `'`} {
		if _, err := home.SQL(t, "postgres").ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
}

var pay06 = attack{id: "PAY-06", sends: "activities of 1 MiB by one domain, without end, for a user whose database is down",
	happens: "503 with Retry-After once three quarters of 64 MiB wait for that user; other domains reach the user, and that domain other users; all that was answered 202 arrives",
	changes: true, asks: 2, play: func(s *siege) {
		evil := peertest.New(s, "127.0.0.4").Actor("/users/evil")
		away(s.T, s.home, s.alice, true)
		taken, refused := 0, 0
		for n := range 70 {
			a := s.post(evil, s.alice.ID+"/inbox", s.bulky(evil, fmt.Sprint(n), s.alice.ID))
			s.answered(a, http.StatusAccepted, http.StatusServiceUnavailable)
			switch {
			case a.Status == http.StatusAccepted:
				taken++
			case a.Header.Get("Retry-After") == "":
				s.Error("the 503 does not say when to come again")
			default:
				refused++
			}
		}
		if taken < 40 || refused < 20 {
			s.Errorf("%d were taken and %d refused, want 48 MiB taken at most", taken, refused)
		}
		if bytes := s.count("lightweb", `SELECT sum(octet_length(raw)) FROM intake JOIN intake_waiting USING (seq) WHERE username = 'alice'`); bytes > 48<<20 {
			s.Errorf("%d bytes wait for alice, want 48 MiB at most", bytes)
		}
		both := s.bulky(evil, "both", s.alice.ID, s.bob.ID)
		s.answered(s.post(evil, s.home.URL+"/inbox", both), http.StatusServiceUnavailable)
		enginetest.Eventually(s, "bob has what is refused for alice", func() bool {
			return s.count("lightweb_bob", `SELECT count(*) FROM activities WHERE uri = $1`, both["id"]) == 1
		})
		s.accepted(s.post(evil, s.bob.ID+"/inbox", s.bulky(evil, "bob", s.bob.ID)))
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", s.create(s.carol, "honest")))
		away(s.T, s.home, s.alice, false)
		s.settle()
		if got := s.count("lightweb_alice", `SELECT count(*) FROM activities WHERE actor_uri = $1`, string(evil.ID)); got != taken {
			s.Errorf("alice has %d of the %d that were answered 202", got, taken)
		}
		if got := s.count("lightweb_alice", `SELECT count(*) FROM feed WHERE activity_uri = $1`, s.id(s.carol, "honest")); got != 1 {
			s.Error("the honest post is not in the feed")
		}
		s.accepted(s.post(evil, s.home.URL+"/inbox", both)) // its server sends it again, and bob has it already
		enginetest.Eventually(s, "alice has it, too", func() bool {
			return s.count("lightweb_alice", `SELECT count(*) FROM activities WHERE uri = $1`, both["id"]) == 1
		})
	}}

var pay08 = attack{id: "PAY-08", sends: "a mention of alice every second that names her 2,000 followers, to be forwarded", later: "the next release"}
