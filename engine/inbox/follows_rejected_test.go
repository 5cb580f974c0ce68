package inbox_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/registry"
)

// fullOfFollows lets so many Follows wait for alice that there is no room for one more.
func fullOfFollows(t *testing.T, s *peertest.Scene) {
	t.Helper()
	err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error {
		now.FollowPolicy = registry.ApprovalRequired
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Column(t, s.Alice, `INSERT INTO relationships (id, actor_uri, type, relation, status, activity_uri, direction, host)
		SELECT gen_random_uuid(), n::text, 'follower', '', 'pending', n::text, '', 'x.example' FROM generate_series(1, 10000) n RETURNING id`)
}

// rejected returns the Follows for which a Reject is queued.
func rejected(t *testing.T, s *peertest.Scene) []string {
	t.Helper()
	return s.Column(t, s.Alice, `SELECT object_uri FROM delivery_jobs WHERE type = 'Reject' ORDER BY created_at`)
}

// A flood of Follows for which there is no room causes no flood of Rejects, since each domain has a
// budget for them.
func TestRejectsOfFollowsHaveABudget(t *testing.T) {
	s := newScene(t)
	fullOfFollows(t, s)
	inbox.RejectDaily(s.Inbox, 2)
	for n := range 4 {
		actor := "p:/follower" + strconv.Itoa(n)
		s.MustSend(actor, "us:/alice/inbox", strings.NewReplacer("follows/1", "follows/f"+strconv.Itoa(n), "p:/carol", actor).Replace(follow))
	}
	if got := rejected(t, s); len(got) != 2 {
		t.Errorf("Rejects of %q, want of the first two", got)
	}
}

// The events of the Accepts that strangers' Follows cause have the budget of strangers' events.
func TestAcceptsOfStrangersFollowsHaveABudgetOfEvents(t *testing.T) {
	s := newScene(t)
	s.Inbox.TellDaily(4)
	const followers = 9
	for n := range followers {
		actor := "p:/follower" + strconv.Itoa(n)
		s.MustSend(actor, "us:/alice/inbox", strings.NewReplacer("follows/1", "follows/f"+strconv.Itoa(n), "p:/carol", actor).Replace(follow))
	}
	told := map[string]int{}
	for _, kind := range s.Column(t, s.Alice, `SELECT type FROM event_outbox`) {
		told[kind]++
	}
	if n := told["follow.received"]; n == 0 || n > 4 || told["accept.sent"] != n || told["events.withheld"] == 0 {
		t.Errorf("told %v; want at most four Follows, as many Accepts, and that others are withheld", told)
	}
	if got := s.Column(t, s.Alice, `SELECT object_uri FROM delivery_jobs WHERE type = 'Accept'`); len(got) != followers {
		t.Errorf("Accepts of %q are sent, want one for each of %d followers", got, followers)
	}
}

// One actor uses up only one Reject of its domain a day, and the others of the domain get theirs.
func TestAnActorGetsOneRejectADay(t *testing.T) {
	s := newScene(t)
	fullOfFollows(t, s)
	inbox.RejectDaily(s.Inbox, 2)
	send := func(actor, id string) {
		t.Helper()
		s.MustSend(actor, "us:/alice/inbox", strings.NewReplacer("p:/follows/1", id, "p:/carol", actor).Replace(follow))
	}
	for _, id := range []string{"p:/follows/1", "p:/follows/1", "p:/follows/2", "p:/follows/3"} {
		send("p:/carol", id)
	}
	send("p:/dave", "p:/follows/4")
	if got, want := rejected(t, s), []string{s.Long("p:/follows/1"), s.Long("p:/follows/4")}; !slices.Equal(got, want) {
		t.Errorf("Rejects of %q, want %q", got, want)
	}
	s.Later(25 * time.Hour)
	send("p:/carol", "p:/follows/5")
	if got := rejected(t, s); len(got) != 3 {
		t.Errorf("a day later, Rejects of %q, want one more", got)
	}
}
