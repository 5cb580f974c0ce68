package db_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
)

func event(n int) db.Event {
	return db.Event{Type: "create.received", Source: "ap", Payload: fmt.Appendf(nil, `{"n": %d}`, n), At: now}
}

func TestEventsAreReadOnFromTheLastOne(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for n := range 5 {
			if err := tx.AddEvent(ctx, event(n)); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		var last int64
		for n := 0; n < 5; {
			events, err := tx.Events(ctx, last, 2)
			if err != nil || len(events) == 0 {
				t.Fatalf("after %d events: %v, %v", n, events, err)
			}
			for _, e := range events {
				if e.Type != "create.received" || e.Source != "ap" || !e.At.Equal(now) {
					t.Errorf("event %+v", e)
				}
				sameJSON(t, e.Payload, event(n).Payload)
				last = e.Seq
				n++
			}
		}
		events, err := tx.Events(ctx, last, 2)
		if len(events) != 0 {
			t.Errorf("events after the last: %v", events)
		}
		return err
	})
}

func TestWhoFollowsEventsMissesNone(t *testing.T) {
	t.Parallel()
	const writers, each = 6, 25
	c, u := alice(t)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for n := range each {
				write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
					if err := tx.AddEvent(ctx, event(n)); err != nil {
						return err
					}
					_, err := tx.Activity(ctx, bob) // takes a moment before it commits
					return err
				})
			}
		})
	}
	var last int64
	for got := 0; got < writers*each && !t.Failed(); {
		read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			events, err := tx.Events(ctx, last, 10)
			for _, e := range events {
				if got++; e.Seq != last+1 {
					t.Errorf("event %d came after %d", e.Seq, last)
				}
				last = e.Seq
			}
			return err
		})
	}
	all.Wait()
}

func TestTheOldestEventsAreDropped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		before      string // the numbers that are there
		next        int64
		left, first int64
	}{
		{"too many", `SELECT generate_series(1, 10998)`, 10999, 10_999, 1},
		{"too many, at the time to count", `SELECT generate_series(1, 10999)`, 11_000, 10_000, 1001},
		{"after a restore", `SELECT generate_series(1, 10000)`, 1_000_001_000, 10_000, 2},
		{"few, with a gap", `SELECT 1`, 1_000_001_000, 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u := alice(t)
			database := databaseOf(t, c, u)
			run(t, database, `INSERT INTO event_outbox (seq, type, source, payload, created_at) OVERRIDING SYSTEM VALUE SELECT n, 'x', 'x', '{}', now() FROM (`+tt.before+`) AS b (n)`)
			run(t, database, fmt.Sprintf(`ALTER TABLE event_outbox ALTER COLUMN seq RESTART WITH %d`, tt.next))
			write(t, c, u, func(ctx context.Context, tx *db.Tx) error { return tx.AddEvent(ctx, event(1)) })
			read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
				events, err := tx.Events(ctx, 0, 20_000)
				if int64(len(events)) != tt.left || events[0].Seq != tt.first {
					t.Errorf("%d events are left, from %d; want %d from %d", len(events), events[0].Seq, tt.left, tt.first)
				}
				return err
			})
		})
	}
}

// What was counted once is not counted again, and stays right over gaps.
func TestTheNewestEventsAreKeptAllTheTime(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	database := databaseOf(t, c, u)
	run(t, database, `INSERT INTO event_outbox (type, source, payload, created_at) SELECT 'x', 'x', '{}', now() FROM generate_series(1, 9500)`)
	for round, gap := range []int{0, 0, 1_000_000_000, 777, 0} {
		run(t, database, fmt.Sprintf(`SELECT setval('event_outbox_seq_seq', nextval('event_outbox_seq_seq') + %d)`, gap))
		for range 4 {
			write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
				for n := range 250 {
					if err := tx.AddEvent(ctx, event(n)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		var n int
		if err := dbtest.Database(t, database).QueryRowContext(t.Context(), `SELECT count(*) FROM event_outbox`).Scan(&n); err != nil || n < 10_000 || n > 11_000 {
			t.Errorf("round %d: %d events are left, %v; want 10,000 to 11,000", round, n, err)
		}
	}
}

func TestWithheldEventsAreCountedInOne(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	now := time.Now().UTC().Truncate(time.Second)
	withhold := func(at time.Time, times int) {
		write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			for range times {
				tx.WithholdEvent(db.Event{Type: "events.withheld", Source: "ap", Payload: []byte(`{"count":1}`), At: at})
			}
			return tx.AddEvent(ctx, event(1))
		})
	}
	withhold(now, 1)
	withhold(now.Add(time.Minute), 30)
	withhold(now.Add(2*time.Hour), 2)
	withhold(now.Add(3*time.Hour-time.Second), 1)
	var counts []string
	read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		events, err := tx.Events(ctx, 0, 100)
		for _, e := range events {
			if e.Type == "events.withheld" {
				counts = append(counts, string(e.Payload))
			}
		}
		return err
	})
	if want := []string{`{"count": 31}`, `{"count": 3}`}; !slices.Equal(counts, want) {
		t.Errorf("withheld %v, want %v", counts, want)
	}
}

func TestTheSecondUseOfAKeyWaitsAndIsTold(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	answer := db.Answer{Digest: []byte("digest"), Answer: []byte(`{"ok": true}`)}
	inside := make(chan struct{})
	second := make(chan error, 1)
	var all sync.WaitGroup
	all.Go(func() {
		<-inside
		second <- c.Write(t.Context(), u, func(ctx context.Context, tx *db.Tx) error {
			return tx.StoreAnswer(ctx, "key", db.Answer{Digest: []byte("other"), Answer: []byte(`{}`)}, now)
		})
	})
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		if a, err := tx.StoredAnswer(ctx, "key", now); a != nil || err != nil {
			t.Errorf("StoredAnswer of a new key = %v, %v", a, err)
		}
		if err := tx.StoreAnswer(ctx, "key", answer, now); err != nil {
			return err
		}
		close(inside)
		return db.AwaitLock(ctx, tx, `SELECT 1`) // the second waits for this transaction
	})
	all.Wait()
	if err := <-second; !db.TakenKey(err) {
		t.Errorf("the second use = %v, want TakenKey", err)
	}
	if db.TakenKey(nil) || db.TakenKey(context.Canceled) {
		t.Error("TakenKey of other errors")
	}
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {24 * time.Hour, true}, {24*time.Hour + time.Second, false}} {
		write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			a, err := tx.StoredAnswer(ctx, "key", now.Add(tt.after))
			if (a != nil) != tt.want || a != nil && string(a.Digest) != "digest" {
				t.Errorf("StoredAnswer after %v = %+v", tt.after, a)
			}
			return err
		})
	}
}

func TestPoisonIsSetAsideForItsLatestReasonAndItsIDTaken(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	raw := []byte("{\"not\": json")
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for _, reason := range []string{"first", "second"} {
			if err := tx.Poison(ctx, db.Poisoned{URI: bob, Actor: bob, Raw: raw, Reason: reason}); err != nil {
				return err
			}
		}
		fresh, err := tx.Claim(ctx, by(bob, bob))
		if len(fresh) != 0 {
			t.Error("the id can be claimed again")
		}
		return err
	})
	var reason string
	var kept []byte
	if err := dbtest.Database(t, databaseOf(t, c, u)).QueryRowContext(t.Context(), `SELECT reason, raw FROM poison`).Scan(&reason, &kept); err != nil || reason != "second" || string(kept) != string(raw) {
		t.Errorf("set aside %q for %q, %v", kept, reason, err)
	}
}

func TestPoisonThatNoTextCanHoldIsSetAsideToo(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		return tx.Poison(ctx, db.Poisoned{URI: bob, Actor: bob, Raw: []byte("a\x00b\xffc"), Reason: "reason\x00\xff"})
	})
}

func TestAnActionIsRecorded(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	token := uuid.New()
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.AddAudit(ctx, db.Audit{At: now, Token: token, Action: "create", Params: []byte(`{}`), Outcome: "ok", Activity: bob}); err != nil {
			return err
		}
		return tx.AddAudit(ctx, db.Audit{At: now, Action: "create", Params: []byte(`{}`), Outcome: "invalid"})
	})
	var tokens, activities int
	if err := dbtest.Database(t, databaseOf(t, c, u)).QueryRowContext(t.Context(), `SELECT count(token_id), count(activity_uri) FROM audit`).Scan(&tokens, &activities); err != nil || tokens != 1 || activities != 1 {
		t.Errorf("%d tokens and %d activities recorded, %v; want one each", tokens, activities, err)
	}
}
