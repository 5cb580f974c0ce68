package delivery

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// owe stores a job of u's about an object, with one delivery.
func owe(t *testing.T, c *db.Cluster, u vocab.Username, kind, object, host string, now time.Time) uuid.UUID {
	t.Helper()
	job := uuid.Must(uuid.NewV7())
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Deliveries.Enqueue(ctx, user.Job{ID: job, Activity: vocab.ID("https://here.example/" + job.String()), Object: vocab.ID(object), Type: kind, Body: []byte(kind + " " + object)},
			[]user.Inbox{{URL: vocab.ID("https://" + host + "/inbox"), Host: host, Targets: []vocab.ID{vocab.ID("https://" + host + "/u")}}}, now)
	})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func counts(t *testing.T, c *db.Cluster, u vocab.Username, job uuid.UUID) (n user.JobCounts) {
	t.Helper()
	err := dbtest.SQL(t, c, u).QueryRowContext(t.Context(), `SELECT count(*), count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'delivered'),
		count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE status = 'skipped') FROM deliveries WHERE job_id = $1`, job).
		Scan(&n.Total, &n.Pending, &n.Delivered, &n.Failed, &n.Skipped)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sink records the posted bodies in order. The test decides when it answers each of them.
type sink struct {
	answers chan transport.Attempt

	mu     sync.Mutex
	bodies []string
	posted chan string
}

func newSink() *sink {
	return &sink{answers: make(chan transport.Attempt), posted: make(chan string, 100)}
}

func (s *sink) Post(ctx context.Context, p transport.Post) (transport.Attempt, error) {
	s.mu.Lock()
	s.bodies = append(s.bodies, string(p.Body))
	s.mu.Unlock()
	s.posted <- string(p.Body)
	select {
	case a := <-s.answers:
		return a, nil
	case <-ctx.Done():
		return transport.Attempt{}, fault.Wrap(fault.Busy, "given up", ctx.Err())
	}
}

func start(t *testing.T, c *db.Cluster, owner string, p Poster) (stop func()) {
	t.Helper()
	d := New(Deps{Store: c, Users: c.Instance.Users, Hosts: c.Instance.Hosts, Due: c.Instance.Deliveries, Poster: p, Keys: &deps{}, Actors: &deps{}, Gate: &deps{}, Local: &deps{}, Owner: owner,
		InboxOwner: func(vocab.ID) (vocab.Username, bool) { return vocab.Username{}, false },
		Now:        time.Now, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.Run(ctx); err != nil && fault.KindOf(err) != fault.Busy { // Busy: the test ended during an attempt
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func TestADeleteNeverOvertakesItsCreate(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	s := newSink()
	now := time.Now()
	create := owe(t, c, u, "Create", "https://here.example/1", "p.example", now)
	remove := owe(t, c, u, "Delete", "https://here.example/1", "p.example", now)
	other := owe(t, c, u, "Delete", "https://here.example/2", "p.example", now)
	stop := start(t, c, "one", s)
	first := []string{<-s.posted, <-s.posted}
	slices.Sort(first)
	if want := []string{"Create https://here.example/1", "Delete https://here.example/2"}; !slices.Equal(first, want) {
		t.Fatalf("posted %q first, want %q", first, want)
	}
	s.answers <- transport.Attempt{Status: 202}
	s.answers <- transport.Attempt{Status: 202}
	if got := <-s.posted; got != "Delete https://here.example/1" {
		t.Errorf("posted %q then", got)
	}
	s.answers <- transport.Attempt{Status: 410}
	stop()
	for _, x := range []struct {
		job  uuid.UUID
		want user.JobCounts
	}{{create, user.JobCounts{Total: 1, Delivered: 1}}, {remove, user.JobCounts{Total: 1, Skipped: 1}}, {other, user.JobCounts{Total: 1, Delivered: 1}}} {
		if got := counts(t, c, u, x.job); got != x.want {
			t.Errorf("counts = %+v, want %+v", got, x.want)
		}
	}
}

func TestARestartTakesBackWhatAKilledProcessHeld(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	now := time.Now()
	owe(t, c, u, "Create", "https://here.example/1", "p.example", now)
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		rows, err := tx.Deliveries.Claim(ctx, Serving+"killed", now, leaseTime, user.ClaimBounds{Most: 10, Forwarded: 10})
		if len(rows) != 1 {
			t.Errorf("the first process claimed %d deliveries, want 1", len(rows))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newSink()
	stop := start(t, c, Serving+"next", s)
	if got := <-s.posted; got != "Create https://here.example/1" {
		t.Errorf("posted %q", got)
	}
	s.answers <- transport.Attempt{Status: 202}
	stop()
}

func TestStopGivesBackLeasesAtOnce(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	job := owe(t, c, u, "Create", "https://here.example/1", "p.example", time.Now())
	s := newSink()
	stop := start(t, c, "one", s)
	<-s.posted
	stop()
	if got := counts(t, c, u, job); got.Pending != 1 {
		t.Fatalf("counts = %+v, want 1 pending", got)
	}
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		rows, err := tx.Deliveries.Claim(ctx, "other", time.Now(), leaseTime, user.ClaimBounds{Most: 10, Forwarded: 10})
		if len(rows) != 1 || rows[0].Attempts != 0 {
			t.Errorf("claimed %+v after the stop, want the delivery without an attempt", rows)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatFailsIsTriedAgainAndAtLastReported(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	now := time.Now()
	job := owe(t, c, u, "Create", "https://here.example/1", "p.example", now)
	q := postgres{c, c.Instance.Users, "one", slog.New(slog.DiscardHandler)}
	var done []entry
	for attempt := range maxRefusals {
		got, err := q.runTurn(t.Context(), u, turn{now: now, entries: done, claim: user.ClaimBounds{Most: 10}})
		if err != nil {
			t.Fatal(err)
		}
		rows := got.rows
		if len(rows) != 1 || rows[0].Attempts != attempt {
			t.Fatalf("claimed %+v, want the delivery after %d attempts", rows, attempt)
		}
		done = []entry{{delivery: rows[0], outcome: backoff{lastingTypes}.judgeAttempt(rows[0], transport.Attempt{Status: 401, Excerpt: []byte("who are you?")}, nil, now)}}
		now = now.Add(time.Hour)
	}
	if err := q.release(t.Context(), u, done, now); err != nil {
		t.Fatal(err)
	}
	wantFailed(t, c, u, job)
}

// wantFailed fails the test unless a job's only delivery has failed and u got one event about it.
func wantFailed(t *testing.T, c *db.Cluster, u vocab.Username, job uuid.UUID) {
	t.Helper()
	if got, want := counts(t, c, u, job), (user.JobCounts{Total: 1, Failed: 1}); got != want {
		t.Errorf("counts = %+v, want %+v", got, want)
	}
	err := c.Read(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		events, err := tx.Events.List(ctx, 0, 10)
		if len(events) != 1 || events[0].Type != "delivery.failed" {
			t.Errorf("events = %+v, want one delivery.failed", events)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhoLostItsLeaseReportsNothing(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	now := time.Now()
	job := owe(t, c, u, "Create", "https://here.example/1", "p.example", now)
	late := postgres{c, c.Instance.Users, "late", slog.New(slog.DiscardHandler)}
	got, err := late.runTurn(t.Context(), u, turn{now: now, claim: user.ClaimBounds{Most: 10}})
	if err != nil || len(got.rows) != 1 {
		t.Fatalf("claimed %+v, %v", got.rows, err)
	}
	now = now.Add(2 * leaseTime)
	if again, err := (postgres{c, c.Instance.Users, "next", slog.New(slog.DiscardHandler)}).runTurn(t.Context(), u, turn{now: now, claim: user.ClaimBounds{Most: 10}}); err != nil || len(again.rows) != 1 {
		t.Fatalf("claimed %+v after the lease, %v", again.rows, err)
	}
	failed := entry{delivery: got.rows[0], outcome: user.Outcome{Delivery: got.rows[0].ID, Status: user.DeliveryFailed, Spent: true}}
	if _, err := late.runTurn(t.Context(), u, turn{now: now, entries: []entry{failed}}); err != nil {
		t.Fatal(err)
	}
	if got := counts(t, c, u, job); got.Pending != 1 {
		t.Errorf("counts = %+v, want 1 pending", got)
	}
	err = c.Read(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		events, err := tx.Events.List(ctx, 0, 10)
		if len(events) != 0 {
			t.Errorf("events = %+v, want none", events)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHostsThatAreExceptedAreNotClaimed(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	now := time.Now()
	owe(t, c, u, "Create", "https://here.example/1", "p.example", now)
	owe(t, c, u, "Create", "https://here.example/2", "q.example", now)
	q := postgres{c, c.Instance.Users, "one", slog.New(slog.DiscardHandler)}
	got, err := q.runTurn(t.Context(), u, turn{now: now, claim: user.ClaimBounds{Most: 10, Except: []string{"p.example", "r.example"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.rows) != 1 || got.rows[0].Host != "q.example" {
		t.Errorf("claimed %+v, want only q.example's", got.rows)
	}
	if !slices.Equal(got.passed, []string{"p.example"}) {
		t.Errorf("passed over %v, want p.example, for which something is due", got.passed)
	}
	if want := now.Add(leaseTime); got.next == nil || got.next.Sub(want).Abs() > time.Millisecond {
		t.Errorf("next turn at %v, want the end of the lease %v", got.next, want)
	}
}

func TestItIsOverWithWhoIsGone(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	now := time.Now()
	job := owe(t, c, u, "Create", "https://here.example/1", "p.example", now)
	gone := vocab.ID("https://p.example/u")
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		friends := user.Group{ID: uuid.New(), Name: "friends", URI: "https://here.example/users/alice/groups/1"}
		if err := tx.Groups.Add(ctx, friends, now); err != nil {
			return err
		}
		hosted := user.JoinedConversation{ID: uuid.New(), URI: gone + "/conversations/1", Host: gone, GroupID: "g", Status: user.StatusActive}
		if err := tx.Joined.Add(ctx, hosted, now); err != nil {
			return err
		}
		if err := tx.Relationships.Set(ctx, user.Relationship{Type: user.Following, Actor: gone, Status: user.Accepted, Activity: "https://here.example/users/alice/activities/2"}, now); err != nil {
			return err
		}
		if err := tx.Groups.AddMember(ctx, friends.ID, gone, "https://here.example/users/alice/activities/1", now); err != nil {
			return err
		}
		return tx.Relationships.Set(ctx, user.Relationship{Type: user.Follower, Actor: gone, Status: user.Accepted, Activity: "https://p.example/follows/1"}, now)
	})
	if err != nil {
		t.Fatal(err)
	}
	q := postgres{c, c.Instance.Users, "one", slog.New(slog.DiscardHandler)}
	got, err := q.runTurn(t.Context(), u, turn{now: now, claim: user.ClaimBounds{Most: 10}})
	if err != nil || len(got.rows) != 1 {
		t.Fatalf("claimed %+v, %v", got.rows, err)
	}
	done := entry{delivery: got.rows[0], outcome: backoff{lastingTypes}.judgeAttempt(got.rows[0], transport.Attempt{Status: 410}, nil, now), gone: []vocab.ID{gone, "https://p.example/stranger"}}
	if _, err := q.runTurn(t.Context(), u, turn{now: now, entries: []entry{done}}); err != nil {
		t.Fatal(err)
	}
	if got, want := counts(t, c, u, job), (user.JobCounts{Total: 1, Skipped: 1}); got != want {
		t.Errorf("counts = %+v, want %+v", got, want)
	}
	err = c.Read(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		if r, err := tx.Relationships.Find(ctx, user.Follower, gone); err != nil || r != nil {
			t.Errorf("still a follower: %+v, %v", r, err)
		}
		if g, err := tx.Groups.Find(ctx, "friends"); err != nil || len(g.Members) != 0 {
			t.Errorf("still in a group: %+v, %v", g, err)
		}
		if j, err := tx.Joined.FindAt(ctx, gone+"/conversations/1"); err != nil || j.Status != user.StatusClosed {
			t.Errorf("its conversation is %+v, %v", j, err)
		}
		events, err := tx.Events.List(ctx, 0, 10)
		if len(events) != 2 || events[0].Type != "conversation.closed" || events[1].Type != "relationship.changed" {
			t.Errorf("events = %+v, want conversation.closed and relationship.changed", events)
		}
		if len(events) > 0 && !strings.Contains(string(events[0].Payload), `"trust":"contact"`) && !strings.Contains(string(events[0].Payload), `"trust": "contact"`) {
			t.Errorf("the end is told with %s, want the trust of a contact", events[0].Payload)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
