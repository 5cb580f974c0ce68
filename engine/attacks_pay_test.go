package engine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnCosts(t *testing.T) {
	t.Parallel()
	newSiege(t).play(slices.DeleteFunc(slices.Clone(costAttacks), func(a attack) bool {
		return slices.ContainsFunc(sharedAttacks, func(b attack) bool { return a.id == b.id })
	}))
}

var costAttacks = []attack{pay01, pay02, pay03, pay04, pay05, pay06, pay07, pay08, pay08b}

// bulky returns an activity of just under 1 MiB. The engine stores it, and it has no other effect.
func (s *siege) bulky(a *peertest.Actor, name string, to ...any) vocab.Doc {
	return vocab.Doc{"id": s.id(a, name), "type": "Listen", "actor": string(a.ID), "to": to, "object": s.p.Origin + "/songs/1", "song": strings.Repeat("x", 1<<20-2000)}
}

// away closes a user's database to connections if the last argument is true, and opens it again if
// it is false.
func away(t *testing.T, home *enginetest.Instance, u *enginetest.User, is bool) {
	t.Helper()
	change := dbtest.AllowConnections
	if is {
		change = dbtest.RefuseConnections
	}
	change(t, home.SQL(t, "postgres"), "lightweb_"+u.Name)
}

var pay06 = attack{id: "PAY-06", sends: "activities of 1 MiB by one domain, without end, for a user whose database is down",
	happens: "503 with Retry-After once three quarters of 64 MiB wait for that user; other domains reach the user, and that domain other users; all that was answered 202 arrives",
	changes: true, asks: 2, play: func(s *siege) {
		evil := peertest.New(s, "127.0.0.4").Actor("/users/evil")
		away(s.T, s.home, s.alice, true)
		taken, refused := 0, 0
		s.flood("70 activities of 1 MiB for a user whose database is down", func() {
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
		})
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
		s.accepted(s.post(evil, s.home.URL+"/inbox", both)) // this is a repeat by the peer's server; bob has the activity already
		enginetest.Eventually(s, "alice has it, too", func() bool {
			return s.count("lightweb_alice", `SELECT count(*) FROM activities WHERE uri = $1`, both["id"]) == 1
		})
	}}

// follow gives alice the given number of followers on h. Each has its own inbox.
func (s *siege) follow(h *hostile, followers int) {
	s.Helper()
	s.alice.Column(s, `WITH f AS (SELECT n, $1 || '/users/f' || n AS uri FROM generate_series(1, $2::int) n), a AS (
			INSERT INTO actors (uri, type, inbox, raw, fetched_at) SELECT uri, 'Person', $3 || '?f=' || n, '{}', now() FROM f)
		INSERT INTO relationships (id, actor_uri, type, status, activity_uri) SELECT gen_random_uuid(), uri, 'follower', 'accepted', uri || '/follow' FROM f`,
		strings.TrimSuffix(h.inbox, "/users/h/inbox"), followers, h.inbox)
}

var pay08 = attack{id: "PAY-08", sends: "answers to alice by two strangers that name her 2,000 followers, 60 of them at once, to be forwarded",
	happens: "202, and they are kept; their deliveries end with a share of alice's budget of 20,000, and her own posts go out before those that wait", changes: true, asks: 20, play: func(s *siege) {
		const followers = 2000
		h := s.against(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
		})
		s.follow(h, followers)
		defer s.alice.Column(s, `DELETE FROM relationships WHERE actor_uri LIKE $1 || '%'`, strings.TrimSuffix(h.inbox, "h/inbox"))
		answer := func(a *peertest.Actor, name string) vocab.Doc {
			d := s.create(a, name)
			d.Sub("object")["inReplyTo"] = s.note
			d["cc"] = []any{s.alice.ID + "/followers"}
			return d
		}
		evils := []*peertest.Actor{s.mallory, s.p.Actor("/users/minion")}
		for n := range 60 {
			s.accepted(s.post(evils[n%2], s.alice.ID+"/inbox", answer(evils[n%2], fmt.Sprint(n))))
		}
		if n := s.count("lightweb_alice", `SELECT count(*) FROM activities WHERE uri LIKE '%/pay-08-%'`); n != 60 {
			s.Errorf("%d are kept, want all 60", n)
		}
		forwarded := s.count("lightweb_alice", `SELECT count(*) FROM deliveries d JOIN delivery_jobs j ON j.id = job_id WHERE j.activity_uri LIKE '%/pay-08-%'`)
		if forwarded == 0 || forwarded > 16_000 {
			s.Errorf("%d deliveries are forwarded, want three quarters of 20,000 at most", forwarded)
		}
		before := len(h.posted())
		own := []string{"my own first", "my own second"}
		for _, content := range own {
			s.alice.Post(s, map[string]any{"content": content, "visibility": "public"})
		}
		enginetest.Eventually(s, "alice's own posts have gone out", func() bool {
			return s.count("lightweb_alice", `SELECT count(*) FROM deliveries d JOIN delivery_jobs j ON j.id = job_id
				WHERE convert_from(body, 'UTF8') LIKE '%my own%' AND status = 'delivered'`) >= 2*followers
		})
		waited := s.count("lightweb_alice", `SELECT count(*) FROM deliveries WHERE host = $1 AND forwarded AND (status = 'pending' OR updated_at > (
			SELECT max(d.updated_at) FROM deliveries d JOIN delivery_jobs j ON j.id = job_id WHERE convert_from(body, 'UTF8') LIKE '%my own%'))`, h.host)
		if waited < 1000 {
			s.Errorf("of %d forwarded deliveries %d waited until alice's own had gone out, want most of them", forwarded, waited)
		}
		came := h.posted()[before:]
		for _, content := range own { // each post is looked at alone, because alice may have no delivery for a while between the two
			if n := forwardedAmong(came, content); n > followers/4 { // so many may be claimed with alice's own deliveries, and be sent while the engine reads more of hers
				s.Errorf("%d forwarded deliveries went out among %d of %q, want a quarter at most", n, followers, content)
			}
		}
		s.accepted(s.post(s.carol, s.alice.ID+"/inbox", answer(s.carol, "honest")))
		if n := s.count("lightweb_alice", `SELECT count(*) FROM deliveries d JOIN delivery_jobs j ON j.id = job_id WHERE j.activity_uri = $1`, s.id(s.carol, "honest")); n < followers {
			s.Errorf("of carol's answer %d deliveries are owed, want it forwarded to all", n)
		}
		s.over()
	}}

// forwardedAmong looks at the requests from the first one with content to the last one. It returns
// how many of these requests bring no post of alice's own.
func forwardedAmong(came []peertest.Posted, content string) (n int) {
	brings := func(what string) func(peertest.Posted) bool {
		return func(p peertest.Posted) bool { return strings.Contains(string(p.Content), what) }
	}
	first := slices.IndexFunc(came, brings(content))
	last := len(came) - 1
	for last > first && !brings(content)(came[last]) {
		last--
	}
	for _, p := range came[max(first, 0) : last+1] {
		if !brings("my own")(p) {
			n++
		}
	}
	return n
}

var pay08b = attack{id: "PAY-08b", sends: "Views of a note of alice's and of alice, to be forwarded to followers whose server refuses them; then alice deletes the note",
	happens: "202, and they are forwarded; her Delete waits for none of them", changes: true, asks: 4, play: func(s *siege) {
		const followers = 3
		var refuses atomic.Bool
		h := s.against(func(w http.ResponseWriter, _ *http.Request) {
			if refuses.Load() {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.WriteHeader(http.StatusAccepted)
		})
		s.follow(h, followers)
		defer s.alice.Column(s, `DELETE FROM relationships WHERE actor_uri LIKE $1 || '%'`, strings.TrimSuffix(h.inbox, "h/inbox"))
		_, note := s.alice.Post(s, map[string]any{"content": "soon deleted", "visibility": "public"})
		s.settle()
		deliveries := func(kind, are string) int {
			return s.count("lightweb_alice", `SELECT count(*) FROM deliveries d JOIN delivery_jobs j ON j.id = job_id WHERE d.host = $1 AND j.type = $2 AND `+are, h.host, kind)
		}
		refuses.Store(true)
		viewer := s.q.Actor("/users/viewer") // mallory's server has used up its share of what is forwarded (PAY-08)
		for n, object := range []string{note, s.alice.ID} {
			s.accepted(s.post(viewer, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(viewer, fmt.Sprint("view-", n)), "type": "View", "actor": string(viewer.ID),
				"to": []any{s.alice.ID}, "cc": []any{s.alice.ID + "/followers"}, "object": object, "inReplyTo": note}))
		}
		enginetest.Eventually(s, "the Views were tried, and will be tried again", func() bool {
			return deliveries("View", `forwarded AND attempts > 0 AND status = 'pending'`) == 2*followers
		})
		s.changeDeliveries(`UPDATE deliveries SET next_at = next_at + interval '1 hour' WHERE forwarded`)
		refuses.Store(false)
		s.alice.Do(s, "DeleteObject", map[string]any{"objectId": note})
		enginetest.Eventually(s, "the Delete has reached every follower", func() bool { return deliveries("Delete", `status = 'delivered'`) == followers })
		s.over()
	}}
