package instance_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func report(n int, users ...string) instance.Report {
	return instance.Report{Activity: vocab.ID(fmt.Sprintf("https://peer.example/flags/%d", n)), Actor: "https://peer.example/actor",
		Objects: []vocab.ID{"https://us.example/users/alice", "https://us.example/users/alice/objects/1"}, Users: users, Content: "spam\nand eggs", Domain: "peer.example",
		ReceivedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func TestAReportIsKeptOnceAndStaysResolved(t *testing.T) {
	t.Parallel()
	c, _ := alice(t)
	for _, r := range []struct {
		report   instance.Report
		instance bool
		want     bool
	}{
		{report(1, "alice", "nobody"), false, true},
		{report(1, "alice"), false, false},
		{report(2, "nobody"), false, false},
		{report(3), false, false},
		{report(3), true, true},
	} {
		added, _, err := c.Instance.Reports.Add(t.Context(), r.report, r.instance, instance.ReportBounds{All: 10, Domain: 10, Actor: 10})
		if err != nil || added != r.want {
			t.Errorf("AddReport %s about %v: %v, %v; want %v", r.report.Activity, r.report.Users, added, err, r.want)
		}
	}
	open, err := c.Instance.Reports.List(t.Context(), false)
	if err != nil || len(open) != 2 || open[0].Activity != report(3).Activity {
		t.Fatalf("open reports: %+v, %v; want two, the newest first", open, err)
	}
	want := report(1, "alice")
	want.ID, want.State, want.Host = open[1].ID, instance.ReportOpen, "peer.example"
	if diff := cmp.Diff(want, open[1]); diff != "" {
		t.Error(diff)
	}
	now := want.ReceivedAt.Add(time.Hour)
	resolved, err := c.Instance.Reports.Resolve(t.Context(), []int64{want.ID, 999}, "done", now)
	if err != nil || !slices.Equal(resolved, []int64{want.ID}) {
		t.Errorf("resolved %v, %v; want the one there is", resolved, err)
	}
	for _, n := range []struct{ note, want string }{{"", "done"}, {"again", "again"}} {
		if _, err := c.Instance.Reports.Resolve(t.Context(), []int64{want.ID}, n.note, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		got, err := c.Instance.Reports.Find(t.Context(), want.ID)
		if err != nil || got.State != instance.ReportResolved || !got.ResolvedAt.Equal(now) || got.Note != n.want {
			t.Errorf("resolved again with note %q: %+v, %v; want it as at first, with note %q", n.note, got, err, n.want)
		}
	}
	if n, err := c.Instance.Reports.CountOpen(t.Context()); err != nil || n != 1 {
		t.Errorf("%d open, %v; want 1", n, err)
	}
	if all, err := c.Instance.Reports.List(t.Context(), true); err != nil || len(all) != 2 {
		t.Errorf("%d reports in all, %v; want 2", len(all), err)
	}
	if _, err := c.Instance.Reports.Find(t.Context(), 999); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a report that is not there: %v", err)
	}
}

// All hosts below one domain count as one reporter. Many domains together cannot fill the database
// either. A report from an honest domain is stored.
func TestNoDomainFillsTheDatabaseWithReports(t *testing.T) {
	t.Parallel()
	c, _ := alice(t)
	most, n := instance.ReportBounds{All: 10, Domain: 6, Actor: 4}, 0
	reports := func(domain, host, actor string) (displaced vocab.ID, err error) {
		t.Helper()
		n++
		r := report(n, "alice")
		r.Actor, r.Domain = vocab.ID("https://"+host+"/"+actor), domain
		r.Activity = r.Actor + vocab.ID(fmt.Sprintf("/flags/%d", n))
		added, gone, err := c.Instance.Reports.Add(t.Context(), r, false, most)
		if added != (err == nil) {
			t.Errorf("report %d is added: %t, %v", n, added, err)
		}
		if gone != nil {
			displaced = gone.Activity
		}
		return displaced, err
	}
	taken := func(domain, host, actor string, displaces vocab.ID) {
		t.Helper()
		if displaced, err := reports(domain, host, actor); err != nil || displaced != displaces {
			t.Errorf("the report of %s at %s displaces %q, %v; want %q", actor, host, displaced, err, displaces)
		}
	}
	refused := func(domain, host, actor string) {
		t.Helper()
		if _, err := reports(domain, host, actor); fault.KindOf(err) != fault.RateLimited || fault.Of(err).RetryAfter == 0 {
			t.Errorf("the report of %s at %s: %v, want RateLimited with a time to wait", actor, host, err)
		}
	}
	for range most.Actor {
		taken("evil.example", "a.evil.example", "mallory", "")
	}
	refused("evil.example", "a.evil.example", "mallory")
	taken("evil.example", "b.evil.example", "actor", "")
	taken("evil.example", "c.evil.example", "actor", "")
	refused("evil.example", "d.evil.example", "actor")
	for range most.Actor {
		taken("other.example", "other.example", "actor", "") // together with those of evil.example, there are ten reports now
	}
	taken("honest.example", "honest.example", "actor", "https://c.evil.example/actor/flags/7")
	taken("honest.example", "honest.example", "actor", "https://b.evil.example/actor/flags/6")
	refused("evil.example", "b.evil.example", "actor") // no other domain has more reports than evil.example
	open, err := c.Instance.Reports.List(t.Context(), false)
	of := map[string]int{}
	for _, r := range open {
		of[r.Domain]++
	}
	if err != nil || of["evil.example"] != 4 || of["other.example"] != 4 || of["honest.example"] != 2 {
		t.Errorf("open are %v, %v; want 4, 4 and the 2 of the honest domain", of, err)
	}
}

func TestReportsAtOnceKeepWithinTheBounds(t *testing.T) {
	t.Parallel()
	c, _ := alice(t)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			if _, _, err := c.Instance.Reports.Add(t.Context(), report(n, "alice"), false, instance.ReportBounds{All: 10, Domain: 3, Actor: 3}); err != nil && fault.KindOf(err) != fault.RateLimited {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n, err := c.Instance.Reports.CountOpen(t.Context()); err != nil || n != 3 {
		t.Errorf("%d are open, %v; want 3", n, err)
	}
}

func TestReportsResolvedLongAgoAreForgotten(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	const many = 1100 // needs three batches
	dbtest.Run(t, cfg.Name, `INSERT INTO reports (digest, activity, actor, host, objects, users, content, received_at, domain, state, resolved_at)
		SELECT int4send(i), '', '', '', '{}', '{}', '', now(), '', 'resolved', $1::timestamptz - interval '1 second' FROM generate_series(1, $2::int) i`, now, many)
	for n, state := range map[int]string{-1: instance.ReportResolved, -2: instance.ReportOpen} {
		dbtest.Run(t, cfg.Name, `INSERT INTO reports (digest, activity, actor, host, objects, users, content, received_at, domain, state, resolved_at)
			VALUES (int4send($1), '', '', '', '{}', '{}', '', '2001-01-01', '', $2, CASE $2 WHEN 'resolved' THEN $3::timestamptz END)`, n, state, now)
	}
	for _, tt := range []struct {
		dryRun bool
		want   int
		left   int
	}{{true, many, many + 2}, {false, many, 2}, {false, 0, 2}} {
		n, err := c.Instance.Reports.Prune(t.Context(), now, tt.dryRun)
		left, lerr := c.Instance.Reports.List(t.Context(), true)
		if err != nil || lerr != nil || n != tt.want || len(left) != tt.left {
			t.Errorf("PruneReports with dryRun %t = %d, %v and leaves %d, %v; want %d and %d", tt.dryRun, n, err, len(left), lerr, tt.want, tt.left)
		}
	}
}
