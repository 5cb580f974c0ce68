package db_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func report(n int, users ...string) db.Report {
	return db.Report{Activity: vocab.ID(fmt.Sprintf("https://peer.example/flags/%d", n)), Actor: "https://peer.example/actor",
		Objects: []vocab.ID{"https://us.example/users/alice", "https://us.example/users/alice/objects/1"}, Users: users, Content: "spam\nand eggs",
		ReceivedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func TestAReportIsKeptOnceAndStaysResolved(t *testing.T) {
	t.Parallel()
	c, _ := alice(t)
	for _, r := range []struct {
		report   db.Report
		instance bool
		want     bool
	}{
		{report(1, "alice", "nobody"), false, true},
		{report(1, "alice"), false, false},
		{report(2, "nobody"), false, false},
		{report(3), false, false},
		{report(3), true, true},
	} {
		added, err := c.AddReport(t.Context(), r.report, r.instance)
		if err != nil || added != r.want {
			t.Errorf("AddReport %s about %v: %v, %v; want %v", r.report.Activity, r.report.Users, added, err, r.want)
		}
	}
	open, err := c.Reports(t.Context(), false)
	if err != nil || len(open) != 2 || open[0].Activity != report(3).Activity {
		t.Fatalf("open reports: %+v, %v; want two, the newest first", open, err)
	}
	want := report(1, "alice")
	want.ID, want.State = open[1].ID, db.ReportOpen
	if diff := cmp.Diff(want, open[1]); diff != "" {
		t.Error(diff)
	}
	now := want.ReceivedAt.Add(time.Hour)
	resolved, err := c.ResolveReports(t.Context(), []int64{want.ID, 999}, "done", now)
	if err != nil || !slices.Equal(resolved, []int64{want.ID}) {
		t.Errorf("resolved %v, %v; want the one there is", resolved, err)
	}
	for _, n := range []struct{ note, want string }{{"", "done"}, {"again", "again"}} {
		if _, err := c.ResolveReports(t.Context(), []int64{want.ID}, n.note, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		got, err := c.Report(t.Context(), want.ID)
		if err != nil || got.State != db.ReportResolved || !got.ResolvedAt.Equal(now) || got.Note != n.want {
			t.Errorf("resolved again with note %q: %+v, %v; want it as at first, with note %q", n.note, got, err, n.want)
		}
	}
	if n, err := c.CountOpenReports(t.Context()); err != nil || n != 1 {
		t.Errorf("%d open, %v; want 1", n, err)
	}
	if all, err := c.Reports(t.Context(), true); err != nil || len(all) != 2 {
		t.Errorf("%d reports in all, %v; want 2", len(all), err)
	}
	if _, err := c.Report(t.Context(), 999); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a report that is not there: %v", err)
	}
}

func TestNoHostFillsTheDatabaseWithReports(t *testing.T) {
	t.Parallel()
	c, _ := alice(t)
	for n := range db.MaxOpenReports {
		if added, err := c.AddReport(t.Context(), report(n, "alice"), false); err != nil || !added {
			t.Fatal(n, added, err)
		}
	}
	if _, err := c.AddReport(t.Context(), report(db.MaxOpenReports, "alice"), false); fault.KindOf(err) != fault.RateLimited {
		t.Errorf("one more: %v, want RateLimited", err)
	}
	other := report(db.MaxOpenReports, "alice")
	other.Actor = "https://other.example/actor"
	if added, err := c.AddReport(t.Context(), other, false); err != nil || !added {
		t.Errorf("of another host: %v, %v", added, err)
	}
}

func TestReportsResolvedLongAgoAreForgotten(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	c := open(t, cfg)
	const many = 1100 // three batches
	run(t, cfg.Name, `INSERT INTO reports (digest, activity, actor, host, objects, users, content, received_at, state, resolved_at)
		SELECT int4send(i), '', '', '', '{}', '{}', '', now(), 'resolved', $1::timestamptz - interval '1 second' FROM generate_series(1, $2::int) i`, now, many)
	for n, state := range map[int]string{-1: db.ReportResolved, -2: db.ReportOpen} {
		run(t, cfg.Name, `INSERT INTO reports (digest, activity, actor, host, objects, users, content, received_at, state, resolved_at)
			VALUES (int4send($1), '', '', '', '{}', '{}', '', '2001-01-01', $2, CASE $2 WHEN 'resolved' THEN $3::timestamptz END)`, n, state, now)
	}
	for _, tt := range []struct {
		dryRun bool
		want   int
		left   int
	}{{true, many, many + 2}, {false, many, 2}, {false, 0, 2}} {
		n, err := c.PruneReports(t.Context(), now, tt.dryRun)
		left, lerr := c.Reports(t.Context(), true)
		if err != nil || lerr != nil || n != tt.want || len(left) != tt.left {
			t.Errorf("PruneReports with dryRun %t = %d, %v and leaves %d, %v; want %d and %d", tt.dryRun, n, err, len(left), lerr, tt.want, tt.left)
		}
	}
}
