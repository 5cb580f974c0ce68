package user_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

const lease = time.Minute

// job returns a job about an object. An empty object means that the job is about none.
func job(kind string, object vocab.ID) user.Job {
	id := uuid.Must(uuid.NewV7())
	return user.Job{ID: id, Activity: vocab.ID("https://here.example/activities/" + id.String()), Object: object, Type: kind, Body: []byte(`{"type":"` + kind + `"}`)}
}

func inboxOn(host string, n int) user.Inbox {
	id := vocab.ID(fmt.Sprintf("https://%s/users/%d", host, n))
	return user.Inbox{URL: id + "/inbox", Host: host, Targets: []vocab.ID{id}}
}

func enqueue(t testing.TB, c *dbtest.Cluster, u vocab.Username, j user.Job, due time.Time, inboxes ...user.Inbox) {
	t.Helper()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.Deliveries.Enqueue(ctx, j, inboxes, due) })
}

func claim(t testing.TB, c *dbtest.Cluster, u vocab.Username, owner string, at time.Time, n int, except ...string) (rows []user.Delivery) {
	t.Helper()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
		rows, err = tx.Deliveries.Claim(ctx, owner, at, lease, user.ClaimBounds{Most: n, Forwarded: n, Except: except})
		return err
	})
	return rows
}

func finish(t testing.TB, c *dbtest.Cluster, u vocab.Username, owner string, o user.Outcome) {
	t.Helper()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Deliveries.Finish(ctx, owner, []user.Outcome{o}, now)
		return err
	})
}

func counts(t testing.TB, c *dbtest.Cluster, u vocab.Username, j user.Job) (n user.JobCounts) {
	t.Helper()
	read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) { n, err = tx.Jobs.Count(ctx, j.ID); return err })
	return n
}

// next asks Deliveries.NextAfter for the next due time. It returns how long after now that time
// is, or "never".
func next(t testing.TB, c *dbtest.Cluster, u vocab.Username, at time.Time) any {
	t.Helper()
	var later *time.Time
	read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
		later, err = tx.Deliveries.NextAfter(ctx, at)
		return err
	})
	if later == nil {
		return "never"
	}
	return later.Sub(now)
}

func TestDeliveriesToThisServerAreClaimedAlone(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	here := inboxOn("", 1)
	enqueue(t, c, u, job("Create", post), now, inboxOn("p.example", 1), here)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		rows, err := tx.Deliveries.Claim(ctx, "me", now, lease, user.ClaimBounds{Most: 10, Forwarded: 10, Local: true})
		if len(rows) != 1 || rows[0].Inbox != here.URL {
			t.Errorf("claimed %+v, want the local one alone", rows)
		}
		return err
	})
	if rows := claim(t, c, u, "me", now, 10); len(rows) != 1 || rows[0].Host != "p.example" {
		t.Errorf("then claimed %+v, want the other", rows)
	}
}

func TestForwardedDeliveriesAreClaimedWithinTheirBounds(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	forwarded := job("Create", "https://p.example/1")
	forwarded.Forwarded = true
	enqueue(t, c, u, forwarded, now, inboxOn("p.example", 1), inboxOn("q.example", 1), inboxOn("r.example", 1))
	enqueue(t, c, u, job("Create", post), now, inboxOn("p.example", 1))
	later := job("Create", "https://p.example/2")
	later.Forwarded = true
	enqueue(t, c, u, later, now.Add(time.Minute), inboxOn("p.example", 1))
	for _, tt := range []struct {
		bounds         user.ClaimBounds
		own, forwarded int
	}{
		{user.ClaimBounds{Most: 10}, 1, 0},
		{user.ClaimBounds{Most: 10, Forwarded: 1, Crowded: []string{"p.example"}}, 0, 1},
		{user.ClaimBounds{Most: 10, Forwarded: 10, Except: []string{"p.example"}}, 0, 1},
		{user.ClaimBounds{Most: 10, Forwarded: 10}, 0, 1},
	} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			rows, err := tx.Deliveries.Claim(ctx, "me", now, lease, tt.bounds)
			n := map[bool]int{}
			for _, r := range rows {
				n[r.Forwarded]++
			}
			if n[false] != tt.own || n[true] != tt.forwarded {
				t.Errorf("within %+v claimed %d of one's own and %d forwarded, want %d and %d", tt.bounds, n[false], n[true], tt.own, tt.forwarded)
			}
			return err
		})
	}
	if got := next(t, c, u, now); got != min(lease, time.Minute) {
		t.Errorf("the next is due in %v, want the first of both kinds", got)
	}
}

func TestADeliveryCarriesItsJob(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := job("Create", post)
	shared := user.Inbox{URL: "https://peer.example/inbox", Host: "peer.example", Targets: []vocab.ID{bob, "https://peer.example/users/dora"}}
	local := user.Inbox{URL: "https://here.example/users/eve/inbox"}
	enqueue(t, c, u, j, now, shared, local, shared) // an inbox that is named twice gets the activity once
	enqueue(t, c, u, job("Create", "https://here.example/alone"), now)
	like := job("Like", "https://here.example/likes/1") // a Like has no object of its own, so its own id orders it
	enqueue(t, c, u, like, now.Add(time.Hour), local)
	rows := claim(t, c, u, "me", now, 10)
	if len(rows) != 2 {
		t.Fatalf("claimed %+v, want two", rows)
	}
	r := rows[0]
	if r.Job != j.ID || r.Activity != j.Activity || r.Object != post || r.Type != "Create" || string(r.Body) != string(j.Body) ||
		r.Inbox != shared.URL || r.Host != shared.Host || !slices.Equal(r.Targets, shared.Targets) || r.Attempts != 0 || !r.Created.Equal(now) {
		t.Errorf("delivery %+v", r)
	}
	if r := rows[1]; r.Inbox != local.URL || r.Host != "" || len(r.Targets) != 0 {
		t.Errorf("local delivery %+v", r)
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		sent, err := tx.Deliveries.ListSentTo(ctx, post)
		if len(sent) != 2 || sent[0].URL != shared.URL || !slices.Equal(sent[0].Targets, shared.Targets) || sent[1].URL != local.URL {
			t.Errorf("Deliveries.ListSentTo = %+v", sent)
		}
		if reached, err := tx.Deliveries.ListSentTo(ctx, like.Object); err != nil || len(reached) != 1 || reached[0].URL != local.URL {
			t.Errorf("SentTo of a Like = %+v, %v", reached, err)
		}
		return err
	})
}

func TestALeaseIsHeldUntilItEnds(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	enqueue(t, c, u, job("Create", ""), now, inboxOn("peer.example", 1))
	if rows := claim(t, c, u, "one", now.Add(-time.Second), 10); len(rows) != 0 {
		t.Errorf("%d rows were claimed before they were due", len(rows))
	}
	if rows := claim(t, c, u, "one", now, 10); len(rows) != 1 {
		t.Fatalf("%d rows were claimed, want 1", len(rows))
	}
	if rows := claim(t, c, u, "two", now.Add(lease-time.Second), 10); len(rows) != 0 {
		t.Error("a leased row was claimed")
	}
	rows := claim(t, c, u, "two", now.Add(lease), 10)
	if len(rows) != 1 {
		t.Fatal("a row whose lease has ended was not claimed")
	}
	delivered := user.Outcome{Delivery: rows[0].ID, Status: user.DeliveryDelivered, Spent: true, HTTPStatus: 202}
	finish(t, c, u, "one", delivered) // "two" has the lease now, so this changes nothing
	claimed := counts(t, c, u, user.Job{ID: rows[0].Job})
	finish(t, c, u, "two", delivered)
	finish(t, c, u, "two", user.Outcome{Delivery: rows[0].ID, Status: user.DeliveryFailed})
	if after := counts(t, c, u, user.Job{ID: rows[0].Job}); claimed != (user.JobCounts{Total: 1, Pending: 1}) || after != (user.JobCounts{Total: 1, Delivered: 1}) {
		t.Errorf("counts %+v, then %+v; want one pending, then delivered for good", claimed, after)
	}
}

func TestAnOutcomeIsRecorded(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := job("Create", "")
	enqueue(t, c, u, j, now, inboxOn("a.example", 1), inboxOn("b.example", 1), inboxOn("c.example", 1), inboxOn("d.example", 1))
	rows := claim(t, c, u, "me", now, 10)
	for n, o := range []user.Outcome{
		{Status: user.DeliveryPending, NextAt: now.Add(time.Hour), Spent: true, HTTPStatus: 503, Answer: []byte("down"), Error: "busy", Latency: 20 * time.Millisecond, BytesOut: 100, BytesIn: 4},
		{Status: user.DeliveryPending, NextAt: now.Add(2 * time.Hour)},
		{Status: user.DeliveryFailed, Spent: true, Error: "refused"},
		{Status: user.DeliverySkipped, Spent: true, HTTPStatus: 410},
	} {
		o.Delivery = rows[n].ID
		finish(t, c, u, "me", o)
	}
	if got, want := counts(t, c, u, j), (user.JobCounts{Total: 4, Pending: 2, Failed: 1, Skipped: 1}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if later := next(t, c, u, now.Add(time.Hour)); later != 2*time.Hour {
		t.Errorf("next after an hour %v", later)
	}
	again := claim(t, c, u, "me", now.Add(2*time.Hour), 10)
	if len(again) != 2 || again[0].Attempts != 1 || again[1].Attempts != 0 {
		t.Errorf("claimed again %+v, want attempts 1 and 0", again)
	}
	var answer []byte
	var status, latency, out int
	err := dbtest.Database(t, databaseOf(t, c, u)).QueryRowContext(t.Context(), `SELECT last_answer, last_status, latency_ms, bytes_out FROM deliveries WHERE id = $1`, rows[0].ID).Scan(&answer, &status, &latency, &out)
	if err != nil || string(answer) != "down" || status != 503 || latency != 20 || out != 100 {
		t.Errorf("recorded %q %d %d ms %d bytes, %v", answer, status, latency, out, err)
	}
}

func TestADeleteNeverOvertakesItsCreate(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	create, remove := job("Create", post), job("Delete", post)
	enqueue(t, c, u, create, now, inboxOn("peer.example", 1), inboxOn("other.example", 1))
	enqueue(t, c, u, remove, now, inboxOn("peer.example", 1), inboxOn("other.example", 1))
	enqueue(t, c, u, job("Like", ""), now, inboxOn("peer.example", 1)) // a job about no object waits for no other job
	enqueue(t, c, u, job("Like", ""), now, inboxOn("peer.example", 1))
	rows := claim(t, c, u, "me", now, 10)
	if kinds := kindsOf(rows); !slices.Equal(kinds, []string{"Create", "Create", "Like", "Like"}) {
		t.Fatalf("claimed %v, want no Delete", kinds)
	}
	for _, r := range rows[2:] {
		finish(t, c, u, "me", user.Outcome{Delivery: r.ID, Status: user.DeliveryDelivered})
	}
	if later := next(t, c, u, now); later != lease {
		t.Errorf("next %v, want the leases' end", later)
	}
	finish(t, c, u, "me", user.Outcome{Delivery: rows[0].ID, Status: user.DeliveryPending, NextAt: now.Add(time.Hour), Spent: true})
	finish(t, c, u, "me", user.Outcome{Delivery: rows[1].ID, Status: user.DeliveryDelivered, Spent: true})
	if rows := claim(t, c, u, "me", now, 10); len(rows) != 1 || rows[0].Type != "Delete" || rows[0].Host != "other.example" {
		t.Errorf("claimed %+v, want the Delete where the Create has arrived", rows)
	}
	first := claim(t, c, u, "me", now.Add(time.Hour), 1)
	if len(first) != 1 || first[0].Type == "Delete" && first[0].Host == "peer.example" {
		t.Errorf("claimed %+v", first)
	}
	finish(t, c, u, "me", user.Outcome{Delivery: rows[0].ID, Status: user.DeliveryFailed})
	for _, r := range claim(t, c, u, "me", now.Add(2*time.Hour), 10) {
		finish(t, c, u, "me", user.Outcome{Delivery: r.ID, Status: user.DeliveryFailed}) // the Delete does not wait for deliveries that failed
	}
	if rows := claim(t, c, u, "me", now.Add(2*time.Hour), 10); len(rows) != 1 || rows[0].Type != "Delete" || rows[0].Host != "peer.example" {
		t.Errorf("claimed %+v, want the last Delete", rows)
	}
}

func kindsOf(rows []user.Delivery) (kinds []string) {
	for _, r := range rows {
		kinds = append(kinds, r.Type)
	}
	return kinds
}

func TestHostsAreLeftAloneOnRequest(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	enqueue(t, c, u, job("Create", ""), now, inboxOn("a.example", 1), inboxOn("b.example", 1), user.Inbox{URL: "https://here.example/users/eve/inbox"})
	if rows := claim(t, c, u, "me", now, 10, "a.example", ""); len(rows) != 1 || rows[0].Host != "b.example" {
		t.Errorf("claimed %+v, want b.example alone", rows)
	}
	if rows := claim(t, c, u, "me", now, 10); len(rows) != 2 {
		t.Errorf("claimed %+v, want the rest", rows)
	}
}

func TestReleasedDeliveriesAreDueAtOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, owner string
		want        int
	}{{"one's own", "one", 2}, {"nobody's", "three", 0}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u := alice(t)
			enqueue(t, c, u, job("Create", ""), now, inboxOn("a.example", 1), inboxOn("a.example", 2), inboxOn("a.example", 3), inboxOn("a.example", 4))
			claim(t, c, u, "one", now, 2)
			claim(t, c, u, "two", now, 1)
			done := claim(t, c, u, "one", now, 1)
			finish(t, c, u, "one", user.Outcome{Delivery: done[0].ID, Status: user.DeliveryPending, NextAt: now.Add(time.Hour)}) // ends the lease of this delivery
			write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
				return tx.Deliveries.Release(ctx, tt.owner, now.Add(time.Second))
			})
			if rows := claim(t, c, u, "new", now.Add(time.Second), 10); len(rows) != tt.want {
				t.Errorf("%d rows are due, want %d", len(rows), tt.want)
			}
		})
	}
}

func TestNextDeliveryAfter(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	if later := next(t, c, u, now); later != "never" {
		t.Errorf("next %v of an empty queue", later)
	}
	enqueue(t, c, u, job("Create", ""), now.Add(time.Minute), inboxOn("a.example", 1))
	enqueue(t, c, u, job("Create", ""), now.Add(time.Second), inboxOn("a.example", 1))
	if later := next(t, c, u, now.Add(time.Second)); later != time.Minute {
		t.Errorf("next %v, want what is not due yet", later)
	}
}

func TestTwoClaimersNeverGetTheSameDelivery(t *testing.T) {
	t.Parallel()
	const jobs, inboxes = 10, 40
	c, u := alice(t)
	for range jobs {
		var all []user.Inbox
		for n := range inboxes {
			all = append(all, inboxOn("peer.example", n))
		}
		enqueue(t, c, u, job("Create", ""), now, all...)
	}
	var mu sync.Mutex
	taken := map[int64]string{}
	var all sync.WaitGroup
	for n := range 6 {
		owner := fmt.Sprint("claimer", n)
		all.Go(func() {
			for {
				rows := claim(t, c, u, owner, now, 7)
				mu.Lock()
				for _, r := range rows {
					if other, twice := taken[r.ID]; twice {
						t.Errorf("%s and %s claimed delivery %d", other, owner, r.ID)
					}
					taken[r.ID] = owner
				}
				done := len(taken) == jobs*inboxes || t.Failed()
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	all.Wait()
}

func TestADomainIsLeftOutWithAllItsHosts(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	except := []string{"p.example", user.AllHostsOf + "e_il.example"}
	all := []user.Inbox{inboxOn("e_il.example", 1), inboxOn("a.e_il.example", 1), inboxOn("b.a.e_il.example", 1), inboxOn("p.example", 1),
		inboxOn("evil.example", 1), inboxOn("a.evil.example", 1), inboxOn("note_il.example", 1), inboxOn("sub.p.example", 1)}
	want := []string{"a.evil.example", "evil.example", "note_il.example", "sub.p.example"}
	if got := leased(t, c, u, job("Create", "https://here.example/1"), user.DeliveryLeases{Most: 9, Except: except}, all...); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("leased for %v, want %v", got, want)
	}
	leased(t, c, u, job("Create", "https://here.example/2"), user.DeliveryLeases{}, all...)
	var got []string
	for _, r := range claim(t, c, u, "other", now, 20, except...) {
		got = append(got, r.Host)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("claimed for %v, want %v", got, want)
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		due, err := tx.Deliveries.ListDueHosts(ctx, now, append(except, "q.example", user.AllHostsOf+"q.example"))
		if want := []string{"*.e_il.example", "p.example"}; !slices.Equal(due, want) {
			t.Errorf("something is due for %v, want %v", due, want)
		}
		return err
	})
}

// leased stores a job and at once leases its deliveries for "me". It returns the hosts of the
// leased deliveries.
func leased(t *testing.T, c *dbtest.Cluster, u vocab.Username, j user.Job, l user.DeliveryLeases, inboxes ...user.Inbox) (hosts []string) {
	t.Helper()
	commit := committed(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		l.Owner, l.Until = "me", now.Add(lease)
		return tx.Deliveries.EnqueueLeased(ctx, j, inboxes, now, l)
	})
	for _, r := range commit.Leased {
		if r.ID == 0 || r.Job != j.ID || r.Type != j.Type || string(r.Body) != string(j.Body) || r.Inbox.Host() != r.Host || r.Attempts != 0 || r.Created.IsZero() {
			t.Errorf("leased %+v", r)
		}
		hosts = append(hosts, r.Host)
	}
	return hosts
}

func TestWhatIsStoredCanBeLeasedAtOnce(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	all := []user.Inbox{inboxOn("a.example", 1), inboxOn("b.example", 2), inboxOn("c.example", 3)}
	first := job("Create", "https://here.example/1")
	if got := leased(t, c, u, first, user.DeliveryLeases{Most: 2, Except: []string{"a.example"}}, all...); !slices.Equal(got, []string{"b.example"}) {
		t.Errorf("leased for %v, want for the second: the first is excepted, and two are the most", got)
	}
	if rows := claim(t, c, u, "other", now, 10); len(rows) != 2 {
		t.Errorf("somebody else claims %d, want the two others", len(rows))
	}
	// The Update is about the same object as the Create. It waits on the hosts of the Create,
	// and starts at once on other hosts.
	update := job("Update", "https://here.example/1")
	if got := leased(t, c, u, update, user.DeliveryLeases{Most: 9}, inboxOn("b.example", 7), inboxOn("d.example", 1)); !slices.Equal(got, []string{"d.example"}) {
		t.Errorf("leased for %v, want for the host that nothing else is owed to", got)
	}
	if got := leased(t, c, u, job("Create", "https://here.example/2"), user.DeliveryLeases{Most: 9}, user.Inbox{URL: "https://b.example/1", Host: "b.example", Skip: "blocked"}); got != nil {
		t.Errorf("leased for %v although it is skipped", got)
	}
}

func TestTheSameFanOutHappensOnce(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	first := job("Create", "https://here.example/1")
	again := first
	again.ID = uuid.New()
	enqueue(t, c, u, first, now, inboxOn("a.example", 1), inboxOn("b.example", 2))
	enqueue(t, c, u, again, now, inboxOn("b.example", 2), inboxOn("a.example", 1))
	enqueue(t, c, u, again, now, inboxOn("c.example", 3)) // with other inboxes it is another fan-out
	if n := counts(t, c, u, first).Total; n != 2 {
		t.Errorf("%d deliveries of the first, want 2", n)
	}
	if n := counts(t, c, u, again).Total; n != 1 {
		t.Errorf("%d deliveries of the other, want 1", n)
	}
}

func TestWhatIsSkippedAtOnceIsShown(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := job("Create", "https://here.example/1")
	enqueue(t, c, u, j, now, inboxOn("a.example", 1), user.Inbox{URL: "https://b.example/1", Host: "b.example", Skip: "the host is blocked"})
	if got, want := counts(t, c, u, j), (user.JobCounts{Total: 2, Pending: 1, Skipped: 1}); got != want {
		t.Errorf("counts = %+v, want %+v", got, want)
	}
	if rows := claim(t, c, u, "me", now, 10); len(rows) != 1 || rows[0].Host != "a.example" {
		t.Errorf("claimed %+v", rows)
	}
}

// A stranger chooses the object of an activity that is forwarded for it. So a delivery of the
// user's own waits for no forwarded one. Forwarded ones keep their order, and wait for the user's
// own.
func TestOnesOwnDeliveriesWaitForNoForwardedOnes(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	for _, tt := range []struct {
		name  string
		first string // "own" or "forwarded"
		then  string
		waits bool
	}{
		{"own after forwarded", "forwarded", "own", false},
		{"own after own", "own", "own", true},
		{"forwarded after forwarded", "forwarded", "forwarded", true},
		{"forwarded after own", "own", "forwarded", true},
	} {
		for way, takes := range map[string]func(later user.Job, to user.Inbox) []string{
			"claimed": func(later user.Job, to user.Inbox) []string {
				enqueue(t, c, u, later, now, to)
				return kindsOf(claim(t, c, u, "me", now, 10))
			},
			"chosen": func(later user.Job, to user.Inbox) (kinds []string) {
				enqueue(t, c, u, later, now, to)
				write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
					rows, err := tx.Deliveries.ClaimChosen(ctx, choice(user.DeliveryPending), false, "me", lease, 10, now)
					kinds = kindsOf(rows)
					return err
				})
				return kinds
			},
			"leased at once": func(later user.Job, to user.Inbox) (kinds []string) {
				if len(leased(t, c, u, later, user.DeliveryLeases{Most: 9}, to)) > 0 {
					kinds = []string{later.Type}
				}
				return kinds
			},
		} {
			for place, inbox := range []user.Inbox{inboxOn("a.example", 1), inboxOn("a.example", 2)} { // the same inbox, and another one of an untried host
				t.Run(fmt.Sprint(tt.name, " ", way, " ", place), func(t *testing.T) {
					run(t, databaseOf(t, c, u), `TRUNCATE delivery_jobs CASCADE`)
					object := vocab.ID("https://here.example/" + uuid.NewString())
					first, then := job("View", object), job("Delete", object)
					first.Forwarded, then.Forwarded = tt.first == "forwarded", tt.then == "forwarded"
					enqueue(t, c, u, first, now, inboxOn("a.example", 1))
					if got := takes(then, inbox); slices.Contains(got, "Delete") == tt.waits {
						t.Errorf("%v may be attempted; whether the Delete waits should be %t", got, tt.waits)
					}
				})
			}
		}
	}
}

// A dead inbox delays the later deliveries to the same inbox. Deliveries to other inboxes of the
// host wait only until the dead inbox was tried once.
func TestTheOrderHoldsPerObjectAndHostAsLongAsThatHoldsUpNobody(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	enqueue(t, c, u, job("Create", "https://here.example/1"), now, inboxOn("a.example", 1))
	enqueue(t, c, u, job("Delete", "https://here.example/1"), now, inboxOn("a.example", 2), inboxOn("b.example", 1))
	enqueue(t, c, u, job("Delete", "https://here.example/1"), now, inboxOn("a.example", 1))
	rows := claim(t, c, u, "me", now, 10)
	if len(rows) != 2 || rows[0].Type != "Create" || rows[1].Host != "b.example" {
		t.Fatalf("claimed %+v, want the Create, and the Delete on the other host", rows)
	}
	finish(t, c, u, "me", user.Outcome{Delivery: rows[0].ID, Status: user.DeliveryPending, NextAt: now.Add(time.Hour), Spent: true})
	if rows = claim(t, c, u, "me", now, 10); len(rows) != 1 || rows[0].Inbox != inboxOn("a.example", 2).URL {
		t.Errorf("claimed %+v, want the Delete for the neighbour", rows)
	}
}

func TestAnOutcomeSaysEverything(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := job("Create", "https://here.example/1")
	enqueue(t, c, u, j, now, inboxOn("a.example", 1), inboxOn("a.example", 2), inboxOn("b.example", 1))
	rows := claim(t, c, u, "me", now, 10)
	var finished []user.Finished
	write(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
		finished, err = tx.Deliveries.Finish(ctx, "me", []user.Outcome{
			{Delivery: rows[0].ID, Status: user.DeliveryPending, NextAt: now.Add(time.Hour), Spent: true, HTTPStatus: 503, Answer: []byte("busy"), RetryAfter: time.Minute, Location: "https://a.example/else", Error: "busy\x00"},
			{Delivery: rows[1].ID, Status: user.DeliveryPending, NextAt: now, Inbox: inboxOn("b.example", 1).URL}, // moves to an inbox that another delivery of the job goes to
			{Delivery: rows[2].ID, Status: user.DeliveryDelivered, Spent: true, HTTPStatus: 201, Headers: "Server: b\n", Answer: []byte("thanks"), RemoteID: "https://b.example/inbox/7", BytesOut: 5, BytesIn: 2, Latency: 3 * time.Millisecond},
			{Delivery: 4711, Status: user.DeliveryDelivered},
		}, now.Add(time.Second))
		return err
	})
	if len(finished) != 3 {
		t.Fatalf("finished %+v, want the three that were leased", finished)
	}
	for _, f := range finished {
		if (f.Waited != nil) != (f.Delivery == rows[2].ID) || f.Waited != nil && !f.Waited.Equal(now) {
			t.Errorf("%+v, want that the job had waited for the third since it was stored", f)
		}
	}
	database := databaseOf(t, c, u)
	for query, want := range map[string]int64{
		`SELECT count(*) FROM deliveries WHERE status = 'pending' AND attempts = 1 AND last_status = 503 AND last_answer = 'busy' AND retry_after_s = 60 AND last_location = 'https://a.example/else'`:                              1,
		`SELECT count(*) FROM deliveries WHERE status = 'skipped' AND attempts = 0 AND host = 'a.example' AND last_error LIKE '%another delivery'`:                                                                                  1,
		`SELECT count(*) FROM deliveries WHERE status = 'delivered' AND remote_id = 'https://b.example/inbox/7' AND bytes_out = 5 AND bytes_in = 2 AND latency_ms = 3 AND last_answer = 'thanks' AND last_headers = E'Server: b\n'`: 1,
		`SELECT count(*) FROM delivery_jobs WHERE first_at IS NOT NULL`: 1,
	} {
		if got := number(t, database, query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	// A delivery that is redirected to another inbox is retried at that inbox.
	enqueue(t, c, u, job("Create", "https://here.example/2"), now, inboxOn("c.example", 1))
	moved := claim(t, c, u, "me", now, 10)
	finish(t, c, u, "me", user.Outcome{Delivery: moved[0].ID, Status: user.DeliveryPending, NextAt: now, Inbox: inboxOn("d.example", 5).URL})
	if again := claim(t, c, u, "me", now, 10); len(again) != 1 || again[0].Host != "d.example" || again[0].Inbox != inboxOn("d.example", 5).URL {
		t.Errorf("claimed %+v, want it at the new inbox", again)
	}
}

func TestOfTwoDeliveriesOfAJobThatMoveToOneInboxOneStays(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	enqueue(t, c, u, job("Create", "https://here.example/1"), now, inboxOn("a.example", 1), inboxOn("a.example", 2), inboxOn("a.example", 3))
	enqueue(t, c, u, job("Create", "https://here.example/2"), now, inboxOn("a.example", 1))
	rows := claim(t, c, u, "me", now, 10)
	shared := inboxOn("a.example", 9).URL
	moved := make([]user.Outcome, len(rows))
	for n, r := range rows {
		moved[n] = user.Outcome{Delivery: r.ID, Status: user.DeliveryPending, NextAt: now, Inbox: shared}
	}
	database := databaseOf(t, c, u)
	run(t, database, `UPDATE deliveries SET lease_owner = 'another' WHERE id = (SELECT min(id) FROM deliveries)`)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Deliveries.Finish(ctx, "me", moved, now)
		return err
	})
	for query, want := range map[string]int64{
		`SELECT count(*) FROM deliveries WHERE lease_owner = 'another' AND status = 'pending' AND inbox = 'https://a.example/users/1/inbox'`: 1,
		`SELECT count(*) FROM deliveries WHERE status = 'pending' AND inbox = 'https://a.example/users/9/inbox'`:                             2,
		`SELECT count(*) FROM deliveries WHERE status = 'skipped' AND last_error LIKE '%another delivery'`:                                   1,
	} {
		if got := number(t, database, query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}

func TestParkedDeliveriesWaitUntilTheyComeBack(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	enqueue(t, c, u, job("Create", ""), now, inboxOn("a.example", 1), inboxOn("a.example", 2), inboxOn("a.example", 3))
	for _, r := range claim(t, c, u, "me", now, 10) {
		finish(t, c, u, "me", user.Outcome{Delivery: r.ID, Status: user.DeliveryParked})
	}
	if rows := claim(t, c, u, "me", now.Add(time.Hour), 10); len(rows) != 0 {
		t.Errorf("claimed %+v while they are parked", rows)
	}
	unpark := func(host string, n, want int) {
		t.Helper()
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			got, err := tx.Deliveries.Resume(ctx, host, n, n > 1, now)
			if got != want {
				t.Errorf("%d came back, want %d", got, want)
			}
			return err
		})
	}
	unpark("b.example", 9, 0)
	unpark("a.example", 1, 1)
	unpark("a.example", 9, 2)
	if rows := claim(t, c, u, "me", now, 10); len(rows) != 3 {
		t.Errorf("claimed %d, want all 3", len(rows))
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		open, err := tx.Deliveries.CountOpen(ctx)
		if len(open) != 1 || open[0].Status != user.DeliveryPending || open[0].Count != 3 || !open[0].Oldest.Equal(now) {
			t.Errorf("open: %+v", open)
		}
		return err
	})
}

func TestOnlyWhatItsOwnKindHeldIsTakenOver(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	enqueue(t, c, u, job("Create", ""), now, inboxOn("a.example", 1), inboxOn("a.example", 2), inboxOn("a.example", 3))
	claim(t, c, u, "serve:gone", now, 1)
	claim(t, c, u, "serve:me", now, 1)
	claim(t, c, u, "cli:busy", now, 1)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Deliveries.TakeOver(ctx, "serve:", "serve:me", now)
	})
	if rows := claim(t, c, u, "serve:me", now, 10); len(rows) != 1 {
		t.Errorf("%d are free, want what the one held that is gone", len(rows))
	}
}

func TestLeasesThatTheirOwnerDoesNotKnowAreRecovered(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	enqueue(t, c, u, job("Create", ""), now, inboxOn("a.example", 1), inboxOn("a.example", 2), inboxOn("a.example", 3), inboxOn("a.example", 4))
	held := claim(t, c, u, "serve:me", now, 1)
	lost := claim(t, c, u, "serve:me", now, 1)
	claim(t, c, u, "cli:busy", now, 1)
	claim(t, c, u, "serve:me", now.Add(time.Second), 1)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Deliveries.RecoverLeases(ctx, "serve:me", []int64{held[0].ID}, now.Add(lease), now.Add(time.Second))
	})
	if rows := claim(t, c, u, "serve:me", now.Add(time.Second), 10); len(rows) != 1 || rows[0].ID != lost[0].ID {
		t.Errorf("%+v are free, want the old one that is not held", rows)
	}
}

func TestWhatWaitsForAHostThatIsBackIsDueAtOnce(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	enqueue(t, c, u, job("Create", ""), now, inboxOn("a.example", 1), inboxOn("a.example", 2), inboxOn("b.example", 1))
	for _, r := range claim(t, c, u, "me", now, 10) {
		finish(t, c, u, "me", user.Outcome{Delivery: r.ID, Status: user.DeliveryPending, NextAt: now.Add(time.Hour)})
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		n, err := tx.Deliveries.Resume(ctx, "a.example", 10, true, now)
		if n != 2 {
			t.Errorf("%d are due, want 2", n)
		}
		return err
	})
	if rows := claim(t, c, u, "me", now, 10); len(rows) != 2 {
		t.Errorf("claimed %d, want the two for the host", len(rows))
	}
}

// A host is not tried at present, and many deliveries to it wait. These deliveries are put off, so
// that claims do not have to read past them.
func TestMuchThatWaitsForAHostIsPutOff(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	putOff := func() {
		t.Helper()
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			return tx.Deliveries.PutOff(ctx, "a.example", now.Add(time.Hour), 1000, now)
		})
	}
	due := func() int64 {
		t.Helper()
		return number(t, databaseOf(t, c, u), `SELECT count(*) FROM deliveries WHERE host = 'a.example' AND next_at <= '`+now.Format(time.RFC3339Nano)+`'`)
	}
	var few, many []user.Inbox
	for n := range 600 {
		if n < 10 {
			few = append(few, inboxOn("a.example", n))
		}
		many = append(many, inboxOn("a.example", 1000+n))
	}
	enqueue(t, c, u, job("Create", ""), now, few...)
	putOff()
	if n := due(); n != 10 {
		t.Errorf("%d of a few are due, want all", n)
	}
	enqueue(t, c, u, job("Create", ""), now, many...)
	putOff()
	if n := due(); n != 0 {
		t.Errorf("%d of many are due, want none", n)
	}
}
