package user_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func event(n int) user.Event {
	return user.Event{Type: "create.received", Source: "ap", Payload: fmt.Appendf(nil, `{"n": %d}`, n), At: now}
}

func TestEventsAreReadOnFromTheLastOne(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n := range 5 {
			if err := tx.Events.Add(ctx, event(n)); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		var last int64
		for n := 0; n < 5; {
			events, err := tx.Events.List(ctx, last, 2)
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
		events, err := tx.Events.List(ctx, last, 2)
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
				write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
					if err := tx.Events.Add(ctx, event(n)); err != nil {
						return err
					}
					_, err := tx.Activities.Find(ctx, bob) // so that the transaction takes a moment before it commits
					return err
				})
			}
		})
	}
	var last int64
	for got := 0; got < writers*each && !t.Failed(); {
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			events, err := tx.Events.List(ctx, last, 10)
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

// trim drops events as the emitter does, and returns the number of transactions.
func trim(t *testing.T, c *dbtest.Cluster, u vocab.Username, emitted int64, keep int, l user.EventLimits) (n int) {
	t.Helper()
	repeat := func(work func(ctx context.Context, tx *user.Tx) (bool, error)) {
		for more := true; more; n++ {
			write(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) { more, err = work(ctx, tx); return err })
		}
	}
	repeat(func(ctx context.Context, tx *user.Tx) (bool, error) { return tx.Events.DropEmitted(ctx, emitted, keep) })
	repeat(func(ctx context.Context, tx *user.Tx) (bool, error) { return tx.Events.DropWaiting(ctx, l) })
	return n
}

// addEvents adds events. The SQL in the parameter numbers selects their numbers.
func addEvents(t *testing.T, database, numbers string) {
	t.Helper()
	run(t, database, `INSERT INTO event_outbox (seq, type, source, payload, created_at) OVERRIDING SYSTEM VALUE SELECT n, 'x', 'x', '{}', now() FROM (`+numbers+`) AS b (n)`)
}

func TestTheOldestEventsAreDroppedOnceTheyAreEmitted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		there       string // a query for the numbers of the stored events
		emitted     int64
		left, first int64
	}{
		{"few", `SELECT generate_series(1, 1000)`, 1000, 1000, 1},
		{"too many", `SELECT generate_series(1, 1100)`, 1100, 1000, 101},
		{"of which some wait", `SELECT generate_series(1, 1100)`, 50, 1050, 51},
		{"of which all wait", `SELECT generate_series(1, 1100)`, 0, 1100, 1},
		{"after a restore", `SELECT generate_series(1, 1000) UNION ALL SELECT 1000001001`, 1000001001, 1000, 2},
		{"few, with a gap", `SELECT 1 UNION ALL SELECT 1000001001`, 1000001001, 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u := alice(t)
			addEvents(t, databaseOf(t, c, u), tt.there)
			trim(t, c, u, tt.emitted, 1000, user.EventLimits{Waiting: 10_000, Bytes: 1 << 30})
			read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
				events, err := tx.Events.List(ctx, 0, 20_000)
				if int64(len(events)) != tt.left || events[0].Seq != tt.first {
					t.Errorf("%d events are left, from %d; want %d from %d", len(events), events[0].Seq, tt.left, tt.first)
				}
				return err
			})
		})
	}
}

// Trimming counts only the events that it has not counted before. The count stays right even if
// numbers are missing.
func TestTheNewestEventsAreKeptAllTheTime(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	database := databaseOf(t, c, u)
	next := int64(1)
	for round, gap := range []int64{0, 0, 1_000_000_000, 777, 0} {
		next += gap
		addEvents(t, database, fmt.Sprintf(`SELECT generate_series(%d::bigint, %d)`, next, next+249))
		next += 250
		trim(t, c, u, next, 500, user.EventLimits{Waiting: 10_000, Bytes: 1 << 30})
		var n int
		if err := dbtest.Database(t, database).QueryRowContext(t.Context(), `SELECT count(*) FROM event_outbox`).Scan(&n); err != nil || n != min(500, 250*(round+1)) {
			t.Errorf("round %d: %d events are left, %v; want %d", round, n, err, min(500, 250*(round+1)))
		}
	}
}

// At most a number of events may wait to be emitted. Events above that number are dropped. One
// event in their place says how many are missing, and its count rises when more are dropped.
func TestEventsThatWaitForTooLongLeaveAGap(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	database := databaseOf(t, c, u)
	limits := user.EventLimits{Waiting: 100, Bytes: 1 << 30}
	first := func() (e user.Event, all int) {
		t.Helper()
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			events, err := tx.Events.List(ctx, 0, 1000)
			e, all = events[0], len(events)
			return err
		})
		return e, all
	}
	addEvents(t, database, `SELECT generate_series(1, 150)`)
	trim(t, c, u, 20, 10, limits) // events 1 to 20 are emitted and dropped; 30 of the other events are too many
	e, all := first()
	if all != 100 || e.Seq != 51 || e.Type != "stream.gap" || !strings.Contains(string(e.Payload), `"missing": 31`) {
		t.Errorf("%d events are left, from %d: %s %s", all, e.Seq, e.Type, e.Payload)
	}
	addEvents(t, database, `SELECT generate_series(151, 160)`)
	trim(t, c, u, 20, 10, limits)
	if e, all = first(); all != 100 || e.Seq != 61 || !strings.Contains(string(e.Payload), `"missing": 41`) {
		t.Errorf("%d events are left, from %d: %s %s", all, e.Seq, e.Type, e.Payload)
	}
	limits.Bytes = 1
	trim(t, c, u, 20, 10, limits)
	if e, all = first(); all != 90 || e.Seq != 71 || !strings.Contains(string(e.Payload), `"missing": 51`) {
		t.Errorf("when they are too large: %d events are left, from %d: %s %s", all, e.Seq, e.Type, e.Payload)
	}
}

// A commit with events waits while events are dropped. So one transaction drops at most 10,000.
func TestManyEventsAreDroppedInSeveralTransactions(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	addEvents(t, databaseOf(t, c, u), `SELECT generate_series(1, 45000)`)
	if n := trim(t, c, u, 20_000, 10, user.EventLimits{Waiting: 1000, Bytes: 1 << 30}); n != 3+3 {
		t.Errorf("%d transactions, want 3 that drop the emitted events, and 3 that drop others", n)
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		events, err := tx.Events.List(ctx, 0, 20_000)
		if e := events[0]; len(events) != 1000 || e.Seq != 44_001 || e.Type != "stream.gap" || !strings.Contains(string(e.Payload), `"missing": 24001`) {
			t.Errorf("%d events are left, from %d: %s %s", len(events), e.Seq, e.Type, e.Payload)
		}
		return err
	})
}

// The window of events counts more events than there are. The dropping ends all the same.
func TestDroppingEndsIfTooManyEventsAreCounted(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	addEvents(t, databaseOf(t, c, u), `SELECT generate_series(1, 5)`)
	limits := user.EventLimits{Waiting: 1000, Bytes: 1 << 30}
	trim(t, c, u, 0, 10, limits)
	run(t, databaseOf(t, c, u), `UPDATE event_window SET kept = 1000000`)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		more, err := tx.Events.DropWaiting(ctx, limits)
		if more {
			t.Error("there is more to drop, but nothing was dropped")
		}
		return err
	})
}

func TestIDsOfEventsNeverFall(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	for _, at := range []time.Duration{0, -time.Hour, time.Millisecond} { // the clock steps back
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			for _, later := range []time.Duration{0, -time.Minute} {
				e := event(1)
				e.At = now.Add(at + later)
				if err := tx.Events.Add(ctx, e); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var ids []int64
	list := func(ctx context.Context, tx *user.Tx) error {
		ids = nil
		events, err := tx.Events.List(ctx, 0, 10)
		for _, e := range events {
			ids = append(ids, e.Milli-now.UnixMilli())
		}
		return err
	}
	read(t, c, u, list)
	if want := []int64{0, 0, 0, 0, 1, 1}; !slices.Equal(ids, want) {
		t.Errorf("milliseconds are %v, want %v", ids, want)
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		more, err := tx.Events.Raise(ctx, 4, now.UnixMilli()+7)
		if more {
			t.Error("two events are not all")
		}
		return err
	})
	read(t, c, u, list)
	if want := []int64{0, 0, 0, 0, 7, 7}; !slices.Equal(ids, want) {
		t.Errorf("raised after the fourth: %v, want %v", ids, want)
	}
}

func TestWithheldEventsAreAddedAnewOnceTheirHourIsOver(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	at := time.Now().UTC().Truncate(time.Second)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		tx.Events.Withhold(user.Event{Type: "events.withheld", Source: "ap", Payload: []byte(`{"count":1}`), At: at})
		return tx.Events.Add(ctx, event(1))
	})
	numbers := func() (seqs []int64, w user.EventWindow) {
		t.Helper()
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			events, err := tx.Events.List(ctx, 0, 10)
			for _, e := range events {
				seqs = append(seqs, e.Seq)
			}
			if err == nil {
				w, err = tx.Events.FindWindow(ctx)
			}
			return err
		})
		return seqs, w
	}
	closeAt := func(when time.Time) {
		t.Helper()
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.Events.CloseWithheld(ctx, when) })
	}
	closeAt(at.Add(59 * time.Minute))
	if seqs, w := numbers(); !slices.Equal(seqs, []int64{1, 2}) || w.Withheld == nil || *w.Withheld != 2 || !w.WithheldAt.Equal(at) || w.Given != 2 {
		t.Errorf("within the hour: events %v, %+v", seqs, w)
	}
	closeAt(at.Add(time.Hour))
	closeAt(at.Add(time.Hour))
	if seqs, w := numbers(); !slices.Equal(seqs, []int64{1, 3}) || w.Withheld != nil || w.Given != 3 {
		t.Errorf("after it: events %v, %+v", seqs, w)
	}
}

func TestWithheldEventsAreCountedInOne(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	now := time.Now().UTC().Truncate(time.Second)
	withhold := func(at time.Time, times int) {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			for range times {
				tx.Events.Withhold(user.Event{Type: "events.withheld", Source: "ap", Payload: []byte(`{"count":1}`), At: at})
			}
			return tx.Events.Add(ctx, event(1))
		})
	}
	withhold(now, 1)
	withhold(now.Add(time.Minute), 30)
	withhold(now.Add(2*time.Hour), 2) // the count that began two hours before is still open
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Events.CloseWithheld(ctx, now.Add(2*time.Hour))
	})
	withhold(now.Add(2*time.Hour+time.Minute), 1)
	var counts []string
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		events, err := tx.Events.List(ctx, 0, 100)
		for _, e := range events {
			if e.Type == "events.withheld" {
				counts = append(counts, string(e.Payload))
			}
		}
		return err
	})
	if want := []string{`{"count": 33}`, `{"count": 1}`}; !slices.Equal(counts, want) {
		t.Errorf("withheld %v, want %v", counts, want)
	}
}

func TestTheSecondUseOfAKeyWaitsAndIsTold(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	answer := user.Answer{Digest: []byte("digest"), Answer: []byte(`{"ok": true}`)}
	inside := make(chan struct{})
	second := make(chan error, 1)
	var all sync.WaitGroup
	all.Go(func() {
		<-inside
		second <- c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
			tx.Answers.Add("key", user.Answer{Digest: []byte("other"), Answer: []byte(`{}`)}, now)
			return nil
		})
	})
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if a, err := tx.Answers.Find(ctx, "key", now); a != nil || err != nil {
			t.Errorf("StoredAnswer of a new key = %v, %v", a, err)
		}
		tx.Answers.Add("key", answer, now)
		if a, err := tx.Answers.Find(ctx, "key", now); a == nil || err != nil {
			t.Errorf("the answer just added = %v, %v", a, err)
		}
		close(inside)
		dbtest.AwaitLock(t, c, u, second)
		return nil
	})
	all.Wait()
	if err := <-second; !user.TakenKey(err) {
		t.Errorf("the second use = %v, want TakenKey", err)
	}
	if user.TakenKey(nil) || user.TakenKey(context.Canceled) {
		t.Error("TakenKey of other errors")
	}
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {24 * time.Hour, true}, {24*time.Hour + time.Second, false}} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			a, err := tx.Answers.Find(ctx, "key", now.Add(tt.after))
			if (a != nil) != tt.want || a != nil && string(a.Digest) != "digest" {
				t.Errorf("StoredAnswer after %v = %+v", tt.after, a)
			}
			return err
		})
	}
}

func TestAnAnswerIsForgottenOnceItIsNotReplayed(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	today := time.Now()
	count := func() (n int) {
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			var err error
			n, err = user.CountAnswers(ctx, tx)
			return err
		})
		return n
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		tx.Answers.Add("old", user.Answer{Digest: []byte("digest"), Answer: []byte(`{}`)}, today.Add(-25*time.Hour))
		tx.Answers.Add("older", user.Answer{Digest: []byte("digest"), Answer: []byte(`{}`)}, today.Add(-26*time.Hour))
		tx.Answers.Add("new", user.Answer{Digest: []byte("digest"), Answer: []byte(`{}`)}, today.Add(-23*time.Hour))
		return nil
	})
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		a, err := tx.Answers.Find(ctx, "old", today)
		tx.Answers.Add("old", user.Answer{Digest: []byte("other"), Answer: []byte(`{}`)}, today)
		if a != nil {
			t.Errorf("an answer of yesterday = %v", a)
		}
		return err
	})
	if n := count(); n != 3 {
		t.Errorf("%d answers are stored, want 3", n)
	}
	if _, err := c.Prune(t.Context(), u, user.Pruning{Me: dbtest.AliceActor}); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 2 {
		t.Errorf("%d answers are stored after the pruning, want 2", n)
	}
}

func TestPoisonIsSetAsideForItsLatestReasonAndItsIDTaken(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	raw := []byte("{\"not\": json")
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, reason := range []string{"first", "second"} {
			if err := tx.Poison.Add(ctx, user.Poisoned{URI: bob, Actor: bob, Raw: raw, Reason: reason}); err != nil {
				return err
			}
		}
		fresh, err := tx.Activities.Claim(ctx, by(bob, bob))
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
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Poison.Add(ctx, user.Poisoned{URI: bob, Actor: bob, Raw: []byte("a\x00b\xffc"), Reason: "reason\x00\xff"})
	})
}
