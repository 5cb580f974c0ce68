package engine_test

import (
	"fmt"
	"testing"

	"github.com/lightweb/lightweb/engine"
	"github.com/lightweb/lightweb/engine/enginetest"
)

// ages makes everything that is in a user's database arrive so many days earlier than it did.
func ages(t *testing.T, u *enginetest.User, days int) {
	t.Helper()
	for _, table := range []string{"activities", "objects"} {
		u.Column(t, fmt.Sprintf(`UPDATE %s SET created_at = created_at - interval '%d days', id = overlay(id::text placing v7 from 1 for 13)::uuid
			FROM (SELECT uri AS of, overlay(lpad(to_hex((extract(epoch FROM created_at - interval '%[2]d days') * 1000)::bigint), 12, '0') placing '-' from 9 for 0) AS v7 FROM %[1]s) x
			WHERE uri = of RETURNING uri`, table, days)) // a row's id begins with the milliseconds at which it arrived
	}
}

func TestPruneBesideAServerRemovesWhatIsOldAndKeepsTheUsersOwn(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t)
	alice, bob := home.CreateUser(t, "alice"), home.CreateUser(t, "bob")
	alice.Do(t, "Follow", map[string]any{"actorUri": bob.ID})
	enginetest.Eventually(t, "bob lets alice follow", func() bool {
		return len(alice.Column(t, `SELECT 1 FROM relationships WHERE status = 'accepted'`)) == 1
	})
	create, post := bob.Post(t, map[string]any{"content": "of no interest"})
	liked, _ := bob.Post(t, map[string]any{"content": "liked"})
	for _, id := range []string{create, liked} {
		alice.Await(t, "main", id, func(i enginetest.Item) bool { return i.ActivityURI == id })
	}
	alice.Do(t, "Like", map[string]any{"objectId": enginetest.ObjectOf(t, bob, liked)})
	for _, u := range []*enginetest.User{alice, bob} {
		ages(t, u, 100)
	}

	type report struct {
		engine.PruneCounts
		Users  []struct{ User string }
		Failed int
	}
	var r report
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"prune", "--all", "--json"}, 0}, // younger than retention.remote_days
		{[]string{"prune", "alice", "--days", "90", "--dry-run", "--json"}, 1},
		{[]string{"prune", "--all", "--days", "90", "--json"}, 1},
		{[]string{"prune", "--all", "--days", "90", "--json"}, 0},
	} {
		ran := home.Run(t, tt.args...)
		if ran.Code != 0 {
			t.Fatalf("%q: exit code %d\n%s", tt.args, ran.Code, ran.Stderr)
		}
		r = report{}
		ran.Decode(t, &r)
		if r.Activities != tt.want || r.Objects != tt.want || r.Failed != 0 {
			t.Errorf("%q says %+v, want %d of each", tt.args, r, tt.want)
		}
	}
	if len(r.Users) != 2 {
		t.Errorf("the report names %v, want both users", r.Users)
	}
	if got := alice.Column(t, `SELECT uri FROM objects WHERE uri = $1`, post); len(got) != 0 {
		t.Errorf("alice still has %q", got)
	}
	if got := bob.Column(t, `SELECT uri FROM objects`); len(got) != 2 {
		t.Errorf("bob has %q, want both posts of his own", got)
	}
	for _, item := range alice.Feed(t, "main") {
		if item.ActivityURI == create {
			t.Error("the feed shows what was pruned")
		}
	}
	var remembered int
	if err := home.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT count(pruned_at) FROM users`).Scan(&remembered); err != nil || remembered != 2 {
		t.Errorf("it is remembered of %d users that they were pruned, %v, want 2", remembered, err)
	}

	for _, tt := range []struct {
		args []string
		want int
	}{{[]string{"prune"}, 64}, {[]string{"prune", "alice", "--all"}, 64}, {[]string{"prune", "--all", "--days", "0"}, 64}, {[]string{"prune", "nobody"}, 67}} {
		if ran := home.Run(t, tt.args...); ran.Code != tt.want {
			t.Errorf("%q: exit code %d, want %d\n%s", tt.args, ran.Code, tt.want, ran.Stderr)
		}
	}
}
