package handler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// Only a limited number of Follows from one domain may wait for a user, and a limited number of
// Follows from all domains. A Follow that waits already may come again. A Follow for which there is
// no room is answered by a Reject, which the database does not store and no event tells of.
func TestWaitingFollowsAreBounded(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	approving(s)
	s.Actor("p:/dave")
	fill := func(server, host, n string) {
		s.Column(t, s.Alice, `INSERT INTO relationships (id, actor_uri, type, relation, status, activity_uri, direction, host)
			SELECT gen_random_uuid(), $1 || n, 'follower', '', 'pending', $1 || n, '', $2 FROM generate_series(1, $3::int) n RETURNING id`, server, host, n)
	}
	fill("https://x.example/", s.ID("p:/carol").Host(), "999")
	s.MustSend("p:/carol", "us:/alice/inbox", follow)
	other := strings.NewReplacer("p:/carol", "p:/dave", "follows/1", "follows/2").Replace(follow)
	waits := func(when string, want int) {
		t.Helper()
		s.Later(25 * time.Hour) // an actor gets one Reject a day
		made := s.Changes(func() { s.MustSend("p:/dave", "us:/alice/inbox", other) })
		if want == 0 && !slices.Equal(made, []string{
			strings.NewReplacer("p:/carol", "p:/dave", "follows/1", "follows/2", `"Accept"`, `"Reject"`).Replace(deliveryOf1)}) {
			t.Errorf("%s: %q, want a Reject alone", when, made)
		}
		if got := len(s.Column(t, s.Alice, `SELECT actor_uri FROM relationships WHERE type = 'follower' AND actor_uri = $1`, s.Long("p:/dave"))); got != want {
			t.Errorf("%s: %d Follows of dave wait, want %d", when, got, want)
		}
	}
	waits("one more of the domain", 0)
	s.Column(t, s.Alice, `UPDATE relationships SET host = 'x' RETURNING id`)
	fill("https://y.example/", "y", "9000")
	waits("one more of all", 0)
	s.MustSend("p:/carol", "us:/alice/inbox", strings.Replace(follow, "follows/1", "follows/3", 1))
	if got := s.Column(t, s.Alice, `SELECT activity_uri FROM relationships WHERE actor_uri = $1`, s.Long("p:/carol")); len(got) != 1 || got[0] != s.Long("p:/follows/3") {
		t.Errorf("carol waits with %q, want her last Follow", got)
	}
	s.Column(t, s.Alice, `DELETE FROM relationships WHERE actor_uri = 'https://y.example/1' RETURNING id`)
	waits("once there is room", 1)
}
