package inbox_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/registry"
)

// A flood of Follows for which there is no room causes no flood of Rejects, since each domain has a
// budget for them.
func TestRejectsOfFollowsHaveABudget(t *testing.T) {
	s := newScene(t)
	err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error {
		now.FollowPolicy = registry.ApprovalRequired
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Column(t, s.Alice, `INSERT INTO relationships (id, actor_uri, type, relation, status, activity_uri, direction, host)
		SELECT gen_random_uuid(), n::text, 'follower', '', 'pending', n::text, '', 'x.example' FROM generate_series(1, 10000) n RETURNING id`)
	inbox.RejectDaily(s.Inbox, 2)
	for n := range 4 {
		s.MustSend("p:/carol", "us:/alice/inbox", strings.Replace(follow, "follows/1", "follows/f"+strconv.Itoa(n), 1))
	}
	if got := s.Column(t, s.Alice, `SELECT object_uri FROM delivery_jobs WHERE type = 'Reject' ORDER BY created_at`); len(got) != 2 {
		t.Errorf("Rejects of %q, want of the first two", got)
	}
}
