package instance_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func hostsNamed(all []instance.Host) (names []string) {
	for _, h := range all {
		names = append(names, h.Host)
	}
	return names
}

func TestHowDeliveriesToAHostGoIsRemembered(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	ctx, at := t.Context(), now.UTC()
	bad := instance.Host{Host: "bad.example", Failures: 7, FailingSince: &at, FailedAt: &at, Failure: "no\x00answer\xff", ClosedUntil: &at, Probes: 2, InactiveAt: &at}
	if err := c.Instance.Hosts.Save(ctx, []instance.Host{bad, {Host: "good.example", DeliveredAt: &at}}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Instance.Hosts.Find(ctx, "bad.example")
	if err != nil || got.Failures != 7 || got.Probes != 2 || got.InactiveAt == nil || !got.InactiveAt.Equal(at) || got.Failure != "no\uFFFDanswer\uFFFD" {
		t.Errorf("remembered %+v, %v", got, err)
	}
	if all, err := c.Instance.Hosts.List(ctx, false); err != nil || !slices.Equal(hostsNamed(all), []string{"bad.example", "good.example"}) {
		t.Errorf("all hosts: %v, %v", hostsNamed(all), err)
	}
	if some, err := c.Instance.Hosts.List(ctx, true); err != nil || !slices.Equal(hostsNamed(some), []string{"bad.example"}) {
		t.Errorf("hosts with something the matter: %v, %v", hostsNamed(some), err)
	}
	if err := c.Instance.Hosts.Save(ctx, []instance.Host{{Host: "bad.example"}}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if some, err := c.Instance.Hosts.List(ctx, true); err != nil || len(some) != 0 {
		t.Errorf("after something got through: %v, %v", some, err)
	}
	if _, err := c.Instance.Hosts.Find(ctx, "nobody.example"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a host nobody heard of: %v, want not found", err)
	}
}

func TestWhatTheOperatorDoesToAHostIsNoticedAndNotUndone(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	ctx, at := t.Context(), now.UTC()
	if err := c.Instance.Hosts.Save(ctx, []instance.Host{{Host: "p.example", Failures: 5, FailingSince: &at, ClosedUntil: &at, Probes: 3}}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if changed, err := c.Instance.Hosts.ListChanged(ctx, time.Time{}); err != nil || len(changed) != 0 {
		t.Errorf("changed by the operator: %v, %v; want none", changed, err)
	}
	if err := c.Instance.Hosts.Pause(ctx, "p.example"); err != nil {
		t.Fatal(err)
	}
	changed, err := c.Instance.Hosts.ListChanged(ctx, time.Time{})
	if err != nil || len(changed) != 1 || changed[0].PausedAt == nil || changed[0].Failures != 5 {
		t.Fatalf("changed: %+v, %v", changed, err)
	}
	if err := c.Instance.Hosts.Resume(ctx, "p.example"); err != nil {
		t.Fatal(err)
	}
	if err := c.Instance.Hosts.Save(ctx, []instance.Host{{Host: "p.example", Failures: 6, FailingSince: &at}}, *changed[0].ChangedAt); err != nil { // saved by a process that has not noticed the change
		t.Fatal(err)
	}
	later, err := c.Instance.Hosts.ListChanged(ctx, *changed[0].ChangedAt)
	if err != nil || len(later) != 1 || later[0].PausedAt != nil || later[0].Failures != 0 || later[0].ClosedUntil != nil {
		t.Fatalf("changed then: %+v, %v", later, err)
	}
	closed := time.Now().Add(time.Hour).UTC()
	if err := c.Instance.Hosts.Save(ctx, []instance.Host{{Host: "p.example", Failures: 1, FailingSince: &at, ClosedUntil: &closed}}, *later[0].ChangedAt); err != nil {
		t.Fatal(err)
	}
	if err := c.Instance.Hosts.Probe(ctx, []string{"p.example", "nobody.example"}); err != nil {
		t.Fatal(err)
	}
	if h, err := c.Instance.Hosts.Find(ctx, "p.example"); err != nil || h.Failures != 1 || h.ClosedUntil == nil || !h.ClosedUntil.Before(closed) || !h.ChangedAt.After(*later[0].ChangedAt) {
		t.Errorf("after the probe %+v, %v", h, err)
	}
	if err := c.Instance.Hosts.Resume(ctx, "nobody.example"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a host nobody heard of: %v, want not found", err)
	}
}

// Processes notice a change by the operator by the time of the change. So each change gets a later
// time than the change before, even if a clock was ahead.
func TestHostsAreChangedAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	ctx, closed := t.Context(), time.Now().Add(time.Hour).UTC()
	failing := instance.Host{Host: "p.example", Failures: 5, FailingSince: &closed, ClosedUntil: &closed, Probes: 3}
	if err := c.Instance.Hosts.Save(ctx, []instance.Host{failing}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	dbtest.Run(t, cfg.Name, `INSERT INTO hosts (host, changed_at) VALUES ('ahead.example', now() + interval '1 month')`)
	all, err := c.Instance.Hosts.ListChanged(ctx, time.Time{})
	if err != nil || len(all) != 1 {
		t.Fatalf("changed: %+v, %v", all, err)
	}
	seen := *all[0].ChangedAt
	for _, tt := range []struct {
		name   string
		change func() error
		want   func(instance.Host) bool
	}{
		{"probe", func() error { return c.Instance.Hosts.Probe(ctx, []string{"p.example"}) }, func(h instance.Host) bool { return h.ClosedUntil.Before(closed) }},
		{"pause", func() error { return c.Instance.Hosts.Pause(ctx, "p.example") }, func(h instance.Host) bool { return h.PausedAt != nil }},
		{"resume", func() error { return c.Instance.Hosts.Resume(ctx, "p.example") }, func(h instance.Host) bool { return h.Failures == 0 && h.PausedAt == nil }},
		{"pause of another", func() error { return c.Instance.Hosts.Pause(ctx, "q.example") }, func(h instance.Host) bool { return h.PausedAt != nil }},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		if err := c.Instance.Hosts.Save(ctx, []instance.Host{failing}, seen); err != nil { // saved by a process that has not noticed the change
			t.Fatal(err)
		}
		changed, err := c.Instance.Hosts.ListChanged(ctx, seen)
		if err != nil || len(changed) != 1 || !tt.want(changed[0]) {
			t.Fatalf("%s: changed are %+v, %v; want this change", tt.name, changed, err)
		}
		seen = *changed[0].ChangedAt
	}
}

func TestWhatHostsCallThemselvesIsRemembered(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	if err := c.Instance.Hosts.LearnSoftware(t.Context(), "p.example", "Mastodon/4.5"); err != nil {
		t.Fatal(err)
	}
	if h, err := c.Instance.Hosts.Find(t.Context(), "p.example"); err != nil || h.Software != "Mastodon/4.5" {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestWhoOwesSomething(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	ctx, at := t.Context(), now.UTC()
	anna, bert := dbtest.User(t, c, "anna"), dbtest.User(t, c, "bert")
	later := at.Add(time.Hour)
	mark := func(want []*time.Time, all ...instance.Due) {
		t.Helper()
		changed, err := c.Instance.Deliveries.MarkDue(ctx, all)
		var got []*time.Time
		for _, d := range changed {
			got = append(got, d.Was)
		}
		if err != nil || !slices.EqualFunc(got, want, func(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }) {
			t.Fatalf("changed by others: %+v, %v; want %v", changed, err, want)
		}
	}
	owing := func(by time.Time, want ...vocab.Username) {
		t.Helper()
		all, err := c.Instance.Deliveries.ListDue(ctx, by)
		var got []vocab.Username
		for _, d := range all {
			got = append(got, d.User)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("owing by %v: %v, %v; want %v", by, got, err, want)
		}
	}
	owing(time.Time{})
	mark(nil, instance.Due{User: anna, At: &later}, instance.Due{User: bert, At: &at})
	owing(time.Time{}, bert, anna)
	owing(at, bert)
	mark([]*time.Time{&at}, instance.Due{User: bert}) // the stored time is another one, so this changes nothing
	mark(nil, instance.Due{User: bert, Was: &at})
	owing(time.Time{}, anna)
	if err := c.Instance.Deliveries.Want(ctx, []vocab.Username{bert}); err != nil {
		t.Fatal(err)
	}
	owing(time.Now().Add(time.Minute), anna, bert)
	if err := c.Instance.Users.SetState(ctx, bert, instance.UserSuspended); err != nil {
		t.Fatal(err)
	}
	owing(time.Time{}, anna)
}

func TestATimeStoredMeanwhileIsReturned(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	later := now.Add(time.Hour)
	beside := dbtest.InstanceSQL(t, c, u)
	tx, err := beside.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`UPDATE users SET next_due = $1`, later); err != nil {
		t.Fatal(err)
	}
	var stored []instance.Due
	done := make(chan error, 1)
	go func() {
		var err error
		stored, err = c.Instance.Deliveries.MarkDue(t.Context(), []instance.Due{{User: u, At: &now}})
		done <- err
	}()
	for waits := false; !waits && len(done) == 0; {
		if err := beside.QueryRow(`SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || len(stored) != 1 || stored[0].At == nil || !stored[0].At.Equal(later) {
		t.Errorf("MarkDue = %+v, %v, want %v", stored, err, later)
	}
}

func TestWhoseDeliveriesAreParked(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	ctx := t.Context()
	u := dbtest.User(t, c, "anna")
	both := []instance.Parked{{Host: "p.example", User: u}, {Host: "q.example", User: u}}
	for range 2 {
		if err := c.Instance.Deliveries.MarkParked(ctx, both, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Instance.Deliveries.MarkParked(ctx, both[:1], true); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Instance.Deliveries.ListParked(ctx); err != nil || !slices.Equal(got, both[1:]) {
		t.Errorf("parked: %v, %v", got, err)
	}
}

func TestHostsNobodyHearsOfAreForgotten(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	ctx := t.Context()
	u := dbtest.User(t, c, "anna")
	dbtest.Run(t, cfg.Name, `INSERT INTO hosts (host, dialect, learned_at, heard_at) SELECT n || '.evil.example', 'cavage', now(), now() - interval '91 days' FROM generate_series(1, 1100) n`)
	dbtest.Run(t, cfg.Name, `INSERT INTO hosts (host, dialect, learned_at, heard_at) SELECT n || '.example', 'cavage', now(), now() - interval '91 days'
		FROM unnest('{asked,learnt,named,delivered,paused,parked,closed}'::text[]) n`)
	dbtest.Run(t, cfg.Name, `UPDATE hosts SET closed_until = now() + interval '1 hour' WHERE host = 'closed.example'`)
	if d, _, err := c.Instance.Hosts.Dialect(ctx, "asked.example"); err != nil || d != "cavage" {
		t.Errorf("the dialect is %q, %v", d, err)
	}
	for _, err := range []error{c.Instance.Hosts.LearnDialect(ctx, "learnt.example", "rfc9421", time.Now()), c.Instance.Hosts.LearnSoftware(ctx, "named.example", "x"),
		c.Instance.Hosts.Save(ctx, []instance.Host{{Host: "delivered.example"}}, time.Time{}), c.Instance.Hosts.Pause(ctx, "paused.example"),
		c.Instance.Deliveries.MarkParked(ctx, []instance.Parked{{Host: "parked.example", User: u}}, false)} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, dryRun := range []bool{true, false} {
		if n, err := c.Instance.Hosts.Prune(ctx, time.Now(), dryRun); err != nil || n != 1100 {
			t.Errorf("PruneHosts with dryRun %t = %d, %v, want 1100", dryRun, n, err)
		}
	}
	want := []string{"asked.example", "closed.example", "delivered.example", "learnt.example", "named.example", "parked.example", "paused.example"}
	if all, err := c.Instance.Hosts.List(ctx, false); err != nil || !slices.Equal(hostsNamed(all), want) {
		t.Errorf("left are %v, %v", hostsNamed(all), err)
	}
}

// A user who was away for three months still has followers at the host. The host's dialect,
// draft-cavage, must stay stored. Otherwise the host gets requests signed by RFC 9421, and may
// drop them without an error.
func TestAHostOfAcquaintancesKeepsItsDraftCavage(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	u := dbtest.User(t, c, "anna")
	dbtest.Run(t, cfg.Name, `INSERT INTO hosts (host, dialect, learned_at, heard_at) SELECT n, 'cavage', now(), now() - interval '91 days'
		FROM unnest('{known.example,known.example.evil.example,own.example}'::text[]) n`)
	dbtest.Run(t, cfg.Name, `INSERT INTO hosts (host, dialect, learned_at, heard_at) VALUES ('modern.example', 'rfc9421', now(), now() - interval '91 days')`)
	dbtest.Run(t, cfg.Name, `INSERT INTO acquaintances (actor_uri, username) SELECT a, '`+u.String()+`'
		FROM unnest('{https://known.example/users/bob,https://modern.example/users/eve,https://unknown.example/x}'::text[]) a`)
	for _, dryRun := range []bool{true, false} {
		if n, err := c.Instance.Hosts.Prune(t.Context(), time.Now(), dryRun); err != nil || n != 3 {
			t.Errorf("PruneHosts with dryRun %t = %d, %v, want 3", dryRun, n, err)
		}
	}
	if all, err := c.Instance.Hosts.List(t.Context(), false); err != nil || !slices.Equal(hostsNamed(all), []string{"known.example"}) {
		t.Errorf("left are %v, %v, want the host of an acquaintance that takes draft-cavage", hostsNamed(all), err)
	}
}
