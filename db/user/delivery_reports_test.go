package user_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func jobReport(t testing.TB, c *dbtest.Cluster, u vocab.Username, j user.Job, at time.Time) (r user.DeliveryJob) {
	t.Helper()
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		found, err := tx.Jobs.Find(ctx, j.ID, at)
		if err != nil || found == nil {
			return fmt.Errorf("job %s: %v, %w", j.ID, found, err)
		}
		r = *found
		return nil
	})
	return r
}

// jobsOf returns the ids of the jobs on a page of Jobs.List.
func jobsOf(t testing.TB, c *dbtest.Cluster, u vocab.Username, f user.DeliveryFilter, status string, after *user.Place, n int) (ids []uuid.UUID) {
	t.Helper()
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		found, err := tx.Jobs.List(ctx, f, status, after, n, now)
		ids = nil
		for _, j := range found {
			ids = append(ids, j.ID)
		}
		return err
	})
	return ids
}

func rowsOf(t testing.TB, c *dbtest.Cluster, u vocab.Username, j user.Job) (rows []user.DeliveryReport) {
	t.Helper()
	read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
		rows, err = tx.Jobs.ListDeliveries(ctx, j.ID, -1<<62, 1000, now)
		return err
	})
	return rows
}

// end finishes a claimed delivery with a status.
func end(t testing.TB, c *dbtest.Cluster, u vocab.Username, d user.Delivery, status string) {
	t.Helper()
	finish(t, c, u, "me", user.Outcome{Delivery: d.ID, Status: status, NextAt: now.Add(time.Hour), Spent: true, Error: "because it is " + status})
}

func TestAJobSaysWhatItAmountsTo(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	for _, tt := range []struct {
		ends []string
		want string
	}{
		{[]string{"pending", "pending"}, user.DeliveryPending},
		{[]string{"failed", "pending"}, user.DeliveryPending},
		{[]string{"delivered", "pending"}, user.JobPartial},
		{[]string{"delivered", "failed"}, user.JobPartial},
		{[]string{"delivered", "skipped"}, user.DeliveryDelivered},
		{[]string{"failed", "skipped"}, user.JobError},
		{[]string{"delivered", ""}, user.DeliveryDelivering}, // the second delivery is under way
	} {
		j := job("Create", "")
		enqueue(t, c, u, j, now, inboxOn("p.example", 0), inboxOn("q.example", 1))
		want := user.JobCounts{Total: 2}
		for n, d := range claim(t, c, u, "me", now, 10) {
			switch tt.ends[n] {
			case "":
				want.Pending++
				continue
			case "pending":
				want.Pending++
			case "delivered":
				want.Delivered++
			case "failed":
				want.Failed++
			case "skipped":
				want.Skipped++
			}
			end(t, c, u, d, tt.ends[n])
		}
		if r := jobReport(t, c, u, j, now); r.Status != tt.want || r.JobCounts != want || r.Activity != j.Activity || r.Type != "Create" {
			t.Errorf("%q make %+v, want %s with %+v", tt.ends, r, tt.want, want)
		}
		for _, d := range claim(t, c, u, "me", now.Add(lease), 10) { // so that these do not come before the next job's deliveries
			end(t, c, u, d, user.DeliverySkipped)
		}
	}
}

func TestJobsAreFoundByWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var jobs []user.Job
	for n := range 5 {
		j := job("Create", post+vocab.ID(fmt.Sprint(n)))
		jobs = append(jobs, j)
		enqueue(t, c, u, j, now.Add(time.Duration(n)*time.Hour), inboxOn(fmt.Sprintf("%d.example", n), n))
	}
	for _, d := range claim(t, c, u, "me", now.Add(time.Minute), 10) {
		end(t, c, u, d, user.DeliveryDelivered) // the first job's delivery
	}
	ids := func(of ...int) (ids []uuid.UUID) {
		for _, n := range of {
			ids = append(ids, jobs[n].ID)
		}
		return ids
	}
	for _, tt := range []struct {
		name   string
		filter user.DeliveryFilter
		status string
		after  *user.Place
		n      int
		want   []uuid.UUID
	}{
		{"all, the newest first", user.DeliveryFilter{}, "", nil, 10, ids(4, 3, 2, 1, 0)},
		{"a page", user.DeliveryFilter{}, "", nil, 2, ids(4, 3)},
		{"the next", user.DeliveryFilter{}, "", &user.Place{ID: jobs[3].ID}, 2, ids(2, 1)},
		{"to a host", user.DeliveryFilter{Hosts: []string{"2.example", "4.example"}}, "", nil, 10, ids(4, 2)},
		{"of an activity", user.DeliveryFilter{Activity: jobs[1].Activity}, "", nil, 10, ids(1)},
		{"about an object", user.DeliveryFilter{Activity: post + "3"}, "", nil, 10, ids(3)},
		{"one", user.DeliveryFilter{Job: jobs[2].ID}, "", nil, 10, ids(2)},
		{"since", user.DeliveryFilter{Since: now.Add(3 * time.Hour)}, "", nil, 10, ids(4, 3)},
		{"delivered", user.DeliveryFilter{}, user.DeliveryDelivered, nil, 10, ids(0)},
		{"pending to a host", user.DeliveryFilter{Hosts: []string{"0.example", "1.example"}}, user.DeliveryPending, nil, 10, ids(1)},
		{"failed", user.DeliveryFilter{}, user.DeliveryFailed, nil, 10, nil},
	} {
		if d := cmp.Diff(tt.want, jobsOf(t, c, u, tt.filter, tt.status, tt.after, tt.n)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// park parks the deliveries to a host, as the dispatcher does when the host becomes inactive.
func park(t *testing.T, c *dbtest.Cluster, u vocab.Username, host string) {
	t.Helper()
	if n := number(t, databaseOf(t, c, u), `WITH p AS (UPDATE deliveries SET status = 'parked' WHERE status = 'pending' AND lease_owner IS NULL AND host = '`+host+`' RETURNING 1) SELECT count(*) FROM p`); n == 0 {
		t.Fatalf("nothing is owed to %s", host)
	}
}

func TestADeliveryIsReportedWithEverything(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := job("Create", post)
	enqueue(t, c, u, j, now, inboxOn("p.example", 0), inboxOn("q.example", 1), inboxOn("r.example", 2))
	rows := claim(t, c, u, "me", now, 2)
	finish(t, c, u, "me", user.Outcome{Delivery: rows[0].ID, Status: user.DeliveryPending, NextAt: now.Add(time.Hour), Spent: true, HTTPStatus: 503,
		Headers: "Server: x\xff\x1b[31m\nVia: 1.1 one\nVia: 1.1 two\n", Answer: []byte("bad\x00\x1b[31m\xff\nline"), Location: "https://p.example/else", RetryAfter: time.Minute, RemoteID: "https://p.example/1", Error: "busy",
		Latency: 40 * time.Millisecond, BytesOut: 100, BytesIn: 7})
	park(t, c, u, "r.example")
	got := rowsOf(t, c, u, j)
	if len(got) != 3 || got[1].Status != user.DeliveryDelivering || got[1].NextAt != nil || got[2].Status != user.DeliveryParked {
		t.Fatalf("reported %+v", got)
	}
	r, next := got[0], now.Add(time.Hour)
	want := user.DeliveryReport{ID: rows[0].ID, Job: j.ID, Inbox: rows[0].Inbox, Host: "p.example", Targets: rows[0].Targets, Status: user.DeliveryPending, Attempts: 1,
		NextAt: &next, LastStatus: 503, Headers: r.Headers, Answer: r.Answer, Location: "https://p.example/else", RetryAfter: 60, Error: "busy", RemoteID: "https://p.example/1",
		LatencyMS: 40, BytesOut: 100, BytesIn: 7, CreatedAt: &now, UpdatedAt: &now}
	if d := cmp.Diff(want, r); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"Server": "x\ufffd\ufffd[31m", "Via": "1.1 one, 1.1 two"}, r.Fields()); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
	if r.Says() != "bad\ufffd\ufffd[31m\ufffd\nline" || r.IdempotencyKey() != rows[0].IdempotencyKey() {
		t.Errorf("says %q under %q", r.Says(), r.IdempotencyKey())
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		states, err := tx.Jobs.CountStates(ctx, now)
		if d := cmp.Diff([]user.DeliveryState{
			{Host: "p.example", Status: user.DeliveryPending, Count: 1, Oldest: now, NextAt: &next, Error: "busy"},
			{Host: "q.example", Status: user.DeliveryDelivering, Count: 1, Oldest: now},
			{Host: "r.example", Status: user.DeliveryParked, Count: 1, Oldest: now},
		}, states); d != "" {
			t.Errorf("states (-want +got):\n%s", d)
		}
		return err
	})
}

// retention returns the rules by which an instance forgets deliveries, as of a time.
func retention(at time.Time) user.DeliveryRetention {
	const day = 24 * time.Hour
	return user.DeliveryRetention{Now: at, Delivered: 7 * day, Jobs: 90 * day, Parked: 8 * day, Lasting: 30 * day, Types: []string{"Delete", "Move", "Undo"},
		Failed: func(d user.Delivery, why string, at time.Time) user.Event {
			return user.Event{Type: "delivery.failed", Source: "ap", Payload: json.RawMessage(fmt.Sprintf(`{"activityUri":%q,"error":%q}`, d.Activity, why)), At: at}
		}}
}

func forget(t testing.TB, c *dbtest.Cluster, u vocab.Username, days int, dry bool) user.Pruned {
	t.Helper()
	did, err := c.Prune(t.Context(), u, user.Pruning{Me: aliceID, DryRun: dry, Deliveries: retention(now.Add(time.Duration(days) * 24 * time.Hour))})
	if err != nil {
		t.Fatal(err)
	}
	return did
}

// The engine knows to which inboxes it forwarded another actor's note. It forgets them when an
// activity takes the note back, or when the job is forgotten.
func TestWhereAThingWasForwardedToIsKnownAsLongAsItsJob(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const note = "https://p.example/notes/1"
	create, update, like := job("Create", note), job("Update", note), job("Like", "")
	like.Object = like.Activity
	for n, j := range []user.Job{create, update, like, job("Like", note)} {
		j.Forwarded = true
		enqueue(t, c, u, j, now, inboxOn("q.example", n))
	}
	for range 2 { // the Update waits for the Create, and is claimed in the second round
		for _, d := range claim(t, c, u, "me", now, 10) {
			end(t, c, u, d, user.DeliveryDelivered)
		}
	}
	reached := func(id vocab.ID) string {
		var urls []string
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			all, err := tx.Deliveries.ListForwardedTo(ctx, id)
			for _, i := range all {
				urls = append(urls, string(i.URL))
			}
			return err
		})
		slices.Sort(urls)
		return strings.Join(urls, " ")
	}
	check := func(when string, want map[vocab.ID]string) {
		t.Helper()
		for id, want := range want {
			if got := reached(id); got != want {
				t.Errorf("%s %s was forwarded to %q, want %q", when, id, got, want)
			}
		}
	}
	url := func(n int) string { return string(inboxOn("q.example", n).URL) }
	all := map[vocab.ID]string{note: url(0) + " " + url(1), update.Activity: url(1), like.Activity: url(2), "https://p.example/notes/2": ""}
	check("at first", all)
	forget(t, c, u, 8, false)
	check("without rows of the deliveries", all)
	enqueue(t, c, u, job("Undo", like.Activity), now, inboxOn("q.example", 2))
	check("after the Undo", map[vocab.ID]string{note: all[note], like.Activity: ""})
	forget(t, c, u, 91, false)
	check("without the job", map[vocab.ID]string{note: "", like.Activity: ""})
}

func TestWhatBecameOfDeliveriesIsForgottenInTime(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	done, half, open := job("Create", post), job("Create", post+"2"), job("Create", post+"3")
	enqueue(t, c, u, done, now, inboxOn("p.example", 0), inboxOn("q.example", 1))
	enqueue(t, c, u, half, now, inboxOn("p.example", 0), inboxOn("q.example", 1))
	for n, d := range claim(t, c, u, "me", now, 10) {
		end(t, c, u, d, []string{user.DeliveryDelivered, user.DeliveryDelivered, user.DeliveryDelivered, user.DeliveryFailed}[n])
	}
	enqueue(t, c, u, open, now, inboxOn("p.example", 0))
	sent := func() (all []user.Inbox) {
		read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
			all, err = tx.Deliveries.ListSentTo(ctx, post)
			return err
		})
		return all
	}
	before, was := sent(), jobReport(t, c, u, done, now)
	if did := forget(t, c, u, 6, false); did != (user.Pruned{}) {
		t.Errorf("after six days %+v is forgotten", did)
	}
	for _, dry := range []bool{true, false} {
		if did := forget(t, c, u, 8, dry); did != (user.Pruned{Deliveries: 3}) {
			t.Errorf("after eight days %+v goes (dry run: %t), want 3 deliveries", did, dry)
		}
	}
	if did := forget(t, c, u, 8, false); did != (user.Pruned{}) {
		t.Errorf("then %+v", did)
	}
	if d := cmp.Diff(before, sent()); d != "" || len(before) != 2 {
		t.Errorf("recipients of the post (-before +after):\n%s", d)
	}
	if d := cmp.Diff(was, jobReport(t, c, u, done, now)); d != "" {
		t.Errorf("the job (-before +after):\n%s", d)
	}
	rows := rowsOf(t, c, u, half)
	if len(rows) != 2 || rows[0].Status != user.DeliveryDelivered || rows[0].Host != "p.example" || rows[0].IdempotencyKey() != "" || !slices.Equal(rows[0].Targets, inboxOn("p.example", 0).Targets) ||
		rows[1].Status != user.DeliveryFailed {
		t.Errorf("of the other is known %+v", rows)
	}
	if got := jobsOf(t, c, u, user.DeliveryFilter{Hosts: []string{"q.example"}}, "", nil, 10); !slices.Equal(got, []uuid.UUID{half.ID, done.ID}) {
		t.Errorf("by host there are %v, want those done long ago too", got)
	}
	if did := forget(t, c, u, 91, true); did != (user.Pruned{Jobs: 2}) {
		t.Errorf("after 91 days %+v goes, want 2 jobs", did)
	}
	forget(t, c, u, 91, false)
	if got := jobsOf(t, c, u, user.DeliveryFilter{}, "", nil, 10); !slices.Equal(got, []uuid.UUID{open.ID}) {
		t.Errorf("left are %v, want the one that is tried again", got)
	}
}

func TestWhatIsParkedForTooLongIsGivenUp(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	enqueue(t, c, u, job("Create", ""), now, inboxOn("p.example", 0))
	enqueue(t, c, u, job("Delete", ""), now, inboxOn("p.example", 0))
	enqueue(t, c, u, job("Create", ""), now, inboxOn("q.example", 0)) // this delivery waits, and is not parked
	forwarded := job("Create", "")
	forwarded.Forwarded = true
	answer := job("Accept", "") // of the user's own, since it says when it was published
	answer.Body = []byte(`{"type":"Accept","published":"2026-01-01T00:00:00Z"}`)
	for _, j := range []user.Job{forwarded, job("Accept", ""), answer} {
		enqueue(t, c, u, j, now, inboxOn("p.example", 0))
	}
	park(t, c, u, "p.example")
	for _, tt := range []struct{ days, want int }{{7, 0}, {9, 4}, {29, 0}, {31, 1}} {
		for _, dry := range []bool{true, false} {
			if did := forget(t, c, u, tt.days, dry); did.Lapsed != tt.want {
				t.Errorf("after %d days %d are given up (dry run: %t), want %d", tt.days, did.Lapsed, dry, tt.want)
			}
		}
	}
	var events []user.Event
	read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
		events, err = tx.Events.List(ctx, 0, 10)
		return err
	})
	if len(events) != 3 || events[0].Type != "delivery.failed" || !strings.Contains(string(events[0].Payload), "stayed away") {
		t.Errorf("told of it was %+v, want the Create, the Accept of the user's own and the Delete", events)
	}
}

func TestMoreThanABatchIsForgotten(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	run(t, databaseOf(t, c, u), `WITH j AS (INSERT INTO delivery_jobs (id, activity_uri, type, body, created_at, dedupe_hash)
			SELECT ('0192d3a4-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'https://here.example/' || n, 'Create', '{}', $1::timestamptz, sha256(n::text::bytea) FROM generate_series(1, 600) n RETURNING id)
		INSERT INTO deliveries (job_id, inbox, host, targets, status, next_at, created_at, updated_at)
		SELECT id, 'https://p.example/' || m, 'p.example', '{}', CASE m WHEN 1 THEN 'failed' ELSE 'delivered' END, $1, $1, $1 FROM j, generate_series(1, 12) m`, now)
	if did := forget(t, c, u, 8, true); did != (user.Pruned{Deliveries: 6600}) {
		t.Errorf("%+v would go, want 6600 deliveries", did)
	}
	if did := forget(t, c, u, 100, false); did != (user.Pruned{Deliveries: 6600, Jobs: 600}) {
		t.Errorf("%+v goes, want 6600 deliveries and 600 jobs", did)
	}
}

func choice(states ...string) user.DeliveryChoice { return user.DeliveryChoice{States: states} }

func requeue(t testing.TB, c *dbtest.Cluster, u vocab.Username, ch user.DeliveryChoice, reset bool, at time.Time) (rows []user.Requeued) {
	t.Helper()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
		rows, err = tx.Deliveries.Requeue(ctx, ch, reset, 0, 100, at)
		return err
	})
	return rows
}

func TestDeliveriesAreTriedAgainWhenAsked(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	later := now.Add(time.Hour / 2)
	j := job("Create", post)
	enqueue(t, c, u, j, now, inboxOn("failed.example", 0), inboxOn("pending.example", 1), inboxOn("parked.example", 2), inboxOn("gone.example", 3), inboxOn("blocked.example", 4), inboxOn("leased.example", 5))
	rows := claim(t, c, u, "me", now, 10)
	for n, status := range []string{user.DeliveryFailed, user.DeliveryPending, user.DeliveryPending, user.DeliverySkipped, user.DeliveryFailed} {
		end(t, c, u, rows[n], status)
	}
	park(t, c, u, "parked.example")
	claim(t, c, u, "other", now.Add(lease), 1) // the lease of "me" has ended without an outcome
	at := now.Add(lease)
	all := choice(user.DeliveryPending, user.DeliveryParked, user.DeliveryFailed)
	all.Except = []string{"blocked.example"}
	hosts := func(rows []user.Requeued) (hosts []string) {
		for _, r := range rows {
			hosts = append(hosts, strings.TrimSuffix(r.Host, ".example"))
		}
		return hosts
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		chosen, err := tx.Deliveries.CountChosen(ctx, all, at)
		if len(chosen) != 3 || chosen[1].Host != "parked.example" || chosen[1].Parked != 1 || chosen[0].Error != "because it is failed" {
			t.Errorf("chosen are %+v", chosen)
		}
		return err
	})
	if got := hosts(requeue(t, c, u, choice(user.DeliveryFailed), false, at)); !slices.Equal(got, []string{"failed", "blocked"}) {
		t.Errorf("of the failed %q are due", got)
	}
	all.Except = append(all.Except, "failed.example")
	if got := hosts(requeue(t, c, u, all, true, at)); !slices.Equal(got, []string{"pending", "parked"}) {
		t.Errorf("of the others %q are due", got)
	}
	due := map[string]user.Delivery{}
	for _, d := range claim(t, c, u, "me", at, 10) {
		due[d.Host] = d
	}
	if len(due) != 4 || due["failed.example"].Attempts != 1 || due["parked.example"].Attempts != 0 || !due["parked.example"].Created.Equal(at) || !due["failed.example"].Created.Equal(now) {
		t.Errorf("at %s due are %+v", later, due)
	}
}

// A failed Create is not sent again after the post was deleted.
func TestWhatWasTakenBackIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	enqueue(t, c, u, job("Create", post), now, inboxOn("p.example", 0))
	end(t, c, u, claim(t, c, u, "me", now, 1)[0], user.DeliveryFailed)
	if rows := requeue(t, c, u, choice(user.DeliveryFailed), false, now); len(rows) != 1 {
		t.Fatalf("%+v are due, want the one", rows)
	}
	end(t, c, u, claim(t, c, u, "me", now, 1)[0], user.DeliveryFailed)
	enqueue(t, c, u, job("Delete", post), now.Add(time.Minute), inboxOn("p.example", 0))
	if rows := requeue(t, c, u, choice(user.DeliveryFailed), false, now.Add(time.Hour)); len(rows) != 0 {
		t.Errorf("%+v are due after the Delete", rows)
	}
}

func TestChosenDeliveriesAreLeasedInOrder(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	first, second := job("Create", post), job("Update", post)
	enqueue(t, c, u, first, now, inboxOn("p.example", 0))
	enqueue(t, c, u, second, now, inboxOn("p.example", 0))
	take := func() (rows []user.Delivery) {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
			rows, err = tx.Deliveries.ClaimChosen(ctx, choice(user.DeliveryPending), false, "me", lease, 10, now)
			return err
		})
		return rows
	}
	rows := take()
	if len(rows) != 1 || rows[0].Job != first.ID || string(rows[0].Body) != string(first.Body) {
		t.Fatalf("leased %+v, want the first", rows)
	}
	if again := take(); len(again) != 0 {
		t.Errorf("while it is under way %+v were leased", again)
	}
	end(t, c, u, rows[0], user.DeliveryDelivered)
	if rows := take(); len(rows) != 1 || rows[0].Job != second.ID {
		t.Errorf("then %+v, want the second", rows)
	}
}

func TestDeliveriesAreDropped(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j, other := job("Create", post), job("Create", "")
	enqueue(t, c, u, j, now, inboxOn("p.example", 0), inboxOn("q.example", 1))
	enqueue(t, c, u, other, now, inboxOn("p.example", 0))
	leased := claim(t, c, u, "me", now, 1)
	drop := func(f user.DeliveryFilter) (n int) {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
			_, n, err = tx.Deliveries.Drop(ctx, user.DeliveryChoice{DeliveryFilter: f, States: []string{user.DeliveryPending, user.DeliveryParked}}, "dropped", 0, 10, now)
			return err
		})
		return n
	}
	if n := drop(user.DeliveryFilter{Hosts: []string{"p.example"}}); n != 1 {
		t.Errorf("%d dropped, want the one that is not under way", n)
	}
	var under int
	read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
		under, err = tx.Deliveries.CountLeased(ctx, user.DeliveryFilter{Hosts: []string{"p.example"}}, now)
		return err
	})
	if under != 1 {
		t.Errorf("%d are under way, want 1", under)
	}
	end(t, c, u, leased[0], user.DeliveryPending)
	if n := drop(user.DeliveryFilter{Activity: j.Activity}); n != 2 {
		t.Errorf("%d dropped of the activity, want 2", n)
	}
	for _, r := range slices.Concat(rowsOf(t, c, u, j), rowsOf(t, c, u, other)) {
		if r.Status != user.DeliverySkipped || r.Error != "dropped" {
			t.Errorf("left is %+v", r)
		}
	}
}

func TestOneProcessRetriesAtATimeAndAnotherMayWait(t *testing.T) {
	t.Parallel()
	c, _ := alice(t)
	release, err := c.Instance.Locks.Retry(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, time.Millisecond} {
		if _, err := c.Instance.Locks.Retry(t.Context(), wait); fault.KindOf(err) != fault.Busy || !strings.Contains(err.Error(), "another 'lightweb deliver retry' runs (process ") {
			t.Errorf("after %v: %v, want Busy with who it is", wait, err)
		}
	}
	got := make(chan error, 1)
	go func() {
		release, err := c.Instance.Locks.Retry(context.WithoutCancel(t.Context()), time.Minute)
		if err == nil {
			release()
		}
		got <- err
	}()
	release()
	if err := <-got; err != nil {
		t.Errorf("who waited got %v", err)
	}
}

func TestAPageOfJobsIsReadByTheIndexWhateverTheirNumber(t *testing.T) {
	t.Parallel()
	c := open(t, destroyed(t, dbtest.Config(t)))
	u := dbtest.User(t, c, "alice")
	database := databaseOf(t, c, u)
	run(t, database, `WITH j AS (INSERT INTO delivery_jobs (id, activity_uri, object_uri, type, body, created_at, dedupe_hash)
			SELECT ('0192d3a4-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'https://here.example/' || n, 'https://here.example/o/' || n, 'Create', '{}', $1::timestamptz, sha256(n::text::bytea) FROM generate_series(1, 5000) n RETURNING id)
		INSERT INTO deliveries (job_id, inbox, host, targets, next_at, created_at, updated_at)
		SELECT id, 'https://p.example/' || m, 'p.example', '{}', $1, $1, $1 FROM j, generate_series(1, 20) m`, now)
	var last uuid.UUID
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, f := range []user.DeliveryFilter{{}, {Hosts: []string{"p.example"}}, {Activity: "https://here.example/7"}, {Activity: "https://here.example/o/8"}, {Since: now}} {
			jobs, err := tx.Jobs.List(ctx, f, user.DeliveryPending, nil, 20, now)
			if err != nil || len(jobs) == 0 {
				t.Errorf("by %+v there are %d, %v", f, len(jobs), err)
				return err
			}
			last = jobs[0].ID
		}
		_, err := tx.Jobs.ListDeliveries(ctx, last, 0, 20, now)
		return err
	})
	c.Close() // a session publishes its counts when it ends
	var read int64
	if err := dbtest.Database(t, database).QueryRowContext(t.Context(), `SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN ('deliveries', 'delivery_jobs')`).Scan(&read); err != nil || read > 100 {
		t.Errorf("%d rows were read in scans of whole tables, %v", read, err)
	}
}
