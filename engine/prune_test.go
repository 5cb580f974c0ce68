package engine_test

import (
	"fmt"
	"testing"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/enginetest"
)

// ages makes all activities and objects in a user's database older by the given number of days.
func ages(t *testing.T, u *enginetest.User, days int) {
	t.Helper()
	for _, table := range []string{"activities", "objects"} {
		u.Column(t, fmt.Sprintf(`UPDATE %s SET created_at = created_at - interval '%d days', id = overlay(id::text placing v7 from 1 for 13)::uuid
			FROM (SELECT uri AS of, overlay(lpad(to_hex((extract(epoch FROM created_at - interval '%[2]d days') * 1000)::bigint), 12, '0') placing '-' from 9 for 0) AS v7 FROM %[1]s) x
			WHERE uri = of RETURNING uri`, table, days)) // a row's id begins with the time of its arrival in milliseconds
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
		admin.PruneCounts
		Users  []struct{ User string }
		Failed int
	}
	var r report
	for _, tt := range []struct {
		args []string
		want int
	}{
		// all posts are younger than retention.remote_days
		{[]string{"prune", "--all", "--json"}, 0},
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

// The deliveries and jobs of a user's own posts are pruned in time, even if remote posts are kept
// forever.
func TestPruneForgetsWhatBecameOfDeliveries(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t, "LIGHTWEB_RETENTION_REMOTE_DAYS=0", "LIGHTWEB_DELIVERY_RETENTION=720h")
	alice, bob := home.CreateUser(t, "alice"), home.CreateUser(t, "bob")
	befriend(t, bob, alice)
	post, _ := alice.Post(t, map[string]any{"content": "hello"})
	delivered(t, alice, post, true)
	alice.Column(t, `UPDATE deliveries SET updated_at = updated_at - interval '8 days', created_at = created_at - interval '8 days' RETURNING ''`)
	alice.Column(t, `WITH j AS (SELECT id FROM delivery_jobs WHERE activity_uri = $1)
		INSERT INTO deliveries (job_id, inbox, host, targets, status, next_at, created_at) SELECT id, 'https://away.example/inbox', 'away.example', '{}', 'parked', now(), now() - interval '9 days' FROM j RETURNING ''`, post)
	prune := func() (r admin.PruneReport) {
		t.Helper()
		ran := home.Run(t, "prune", "alice", "--json")
		if ran.Code != 0 {
			t.Fatalf("prune ended with %d\n%s", ran.Code, ran.Stderr)
		}
		ran.Decode(t, &r)
		return r
	}
	rows := len(alice.Column(t, `SELECT id FROM deliveries WHERE status = 'delivered'`))
	if r := prune(); r.Deliveries != rows || rows == 0 || r.Lapsed != 1 || r.Jobs != 0 || r.Activities != 0 {
		t.Errorf("prune tells %+v, want %d deliveries, and one given up", r, rows)
	}
	if got := alice.Events(t, 0); got[len(got)-1].Type != "delivery.failed" {
		t.Errorf("the last event is %+v, want that a delivery failed", got[len(got)-1])
	}
	var shown struct{ Jobs []admin.ShownDeliveries }
	home.Run(t, "deliver", "show", post, "--json").Decode(t, &shown)
	if len(shown.Jobs) != 1 || shown.Jobs[0].Status != "partial" || shown.Jobs[0].JobCounts.Delivered != 1 || string(shown.Jobs[0].Deliveries[0].Inbox) != bob.ID+"/inbox" {
		t.Errorf("then deliver show tells %+v", shown)
	}
	alice.Column(t, `UPDATE delivery_jobs SET created_at = created_at - interval '31 days' RETURNING ''`)
	if r := prune(); r.Jobs == 0 {
		t.Errorf("after a month prune tells %+v, want jobs", r)
	}
	if ran := home.Run(t, "deliver", "show", post); ran.Code != 66 {
		t.Errorf("of a job that is forgotten deliver show ended with %d, want 66", ran.Code)
	}
}
