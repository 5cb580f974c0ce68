package delivery

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	young := user.Delivery{Type: "Create", Created: now}
	tried := func(n int) user.Delivery { d := young; d.Attempts = n; return d }
	old := tried(3)
	old.Created = now.Add(-lifetime)
	undo := tried(9)
	undo.Type, undo.Created = "Undo", now.Add(-lifetime)
	for _, c := range []struct {
		name string
		d    user.Delivery
		a    transport.Attempt
		err  error
		want string
		wait time.Duration // if the delivery stays pending, the wait until the next attempt
	}{
		{name: "accepted", d: young, a: transport.Attempt{Status: 202}, want: user.DeliveryDelivered},
		{name: "created", d: young, a: transport.Attempt{Status: 201}, want: user.DeliveryDelivered},
		{name: "no such inbox", d: young, a: transport.Attempt{Status: 404}, want: user.DeliverySkipped},
		{name: "inbox gone", d: young, a: transport.Attempt{Status: 410}, want: user.DeliverySkipped},
		{name: "unauthorized once", d: young, a: transport.Attempt{Status: 401}, want: user.DeliveryPending, wait: time.Minute},
		{name: "unauthorized twice", d: tried(1), a: transport.Attempt{Status: 401}, want: user.DeliveryPending, wait: 5 * time.Minute},
		{name: "unauthorized three times", d: tried(2), a: transport.Attempt{Status: 401}, want: user.DeliveryFailed},
		{name: "forbidden by the peer three times", d: tried(2), a: transport.Attempt{Status: 403}, want: user.DeliveryFailed},
		{name: "bad request three times", d: tried(2), a: transport.Attempt{Status: 400}, want: user.DeliveryFailed},
		{name: "a Delete that is refused", d: undo, a: transport.Attempt{Status: 400}, want: user.DeliveryFailed},
		{name: "too many requests", d: tried(2), a: transport.Attempt{Status: 429}, want: user.DeliveryPending, wait: 30 * time.Minute},
		{name: "too many requests for a while", d: young, a: transport.Attempt{Status: 429, RetryAfter: 3 * time.Hour}, want: user.DeliveryPending, wait: 3 * time.Hour},
		{name: "unavailable for less than our wait", d: tried(3), a: transport.Attempt{Status: 503, RetryAfter: time.Second}, want: user.DeliveryPending, wait: 2 * time.Hour},
		{name: "internal error", d: young, a: transport.Attempt{Status: 500}, want: user.DeliveryPending, wait: time.Minute},
		{name: "a type that the peer does not have", d: young, a: transport.Attempt{Status: 501}, want: user.DeliveryFailed},
		{name: "a redirect that is not followed", d: young, a: transport.Attempt{Status: 302}, want: user.DeliveryPending, wait: time.Minute},
		{name: "no answer", d: tried(5), err: fault.New(fault.Unavailable, "timeout"), want: user.DeliveryPending, wait: 24 * time.Hour},
		{name: "no such host", d: young, err: fault.New(fault.NoHost, "no such host"), want: user.DeliveryPending, wait: time.Minute},
		{name: "an error of ours", d: young, err: errors.New("odd"), want: user.DeliveryPending, wait: time.Minute},
		{name: "no answer seven times", d: tried(6), err: fault.New(fault.Unavailable, "timeout"), want: user.DeliveryFailed},
		{name: "an Undo without answer after that", d: undo, err: fault.New(fault.Unavailable, "timeout"), want: user.DeliveryPending, wait: 24 * time.Hour},
		{name: "owed for eight days", d: old, err: fault.New(fault.Unavailable, "timeout"), want: user.DeliveryFailed},
		{name: "blocked", d: young, err: fault.New(fault.Forbidden, "blocked"), want: user.DeliverySkipped},
		{name: "federation is paused, however long", d: old, err: fmt.Errorf("fetch: %w", fault.Wrap(fault.Unavailable, "no answer", transport.ErrPaused)), want: user.DeliveryPending, wait: pausedWait},
		{name: "no URL", d: young, err: fault.New(fault.Invalid, "no URL"), want: user.DeliveryFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := backoff{lastingTypes}.judgeAttempt(c.d, c.a, c.err, now)
			if got.Status != c.want {
				t.Fatalf("status = %s, want %s", got.Status, c.want)
			}
			wait := got.NextAt.Sub(now)
			if c.want == user.DeliveryPending && (wait < c.wait*9/10 || wait > c.wait*11/10) {
				t.Errorf("wait = %v, want %v give or take a tenth", wait, c.wait)
			}
			if (got.Error == "") != (c.want == user.DeliveryDelivered) {
				t.Errorf("error = %q for %s", got.Error, got.Status)
			}
		})
	}
}

// PostgreSQL is down for a day, so every hand-over to bob, a user of this server, fails. No attempt
// counts, and bob has the post within about a minute after the outage.
func TestAnOutageOfThisServerUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	down := fmt.Errorf("find users: %w", fault.New(fault.Unavailable, "the database cannot be reached").WithCode("database_unavailable"))
	full := fault.New(fault.Unavailable, "the engine is overloaded").After(5 * time.Second)
	for _, c := range []struct {
		name  string
		err   error
		spent bool
	}{
		{"PostgreSQL is down", down, false},
		{"there is no room", full, false},
		{"time ran out", fault.New(fault.Busy, "time ran out"), false},
		{"a bug", errors.New("odd"), true},
		{"another server does not answer", fault.New(fault.Unavailable, "the object's server does not answer"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, status(202))
				b.deps.local.Store(&c.err)
				place := b.m.add("Create", "", 1, 0)
				b.run(t)
				time.Sleep(day)
				synctest.Wait()
				if r := b.m.row(place); r.status != user.DeliveryPending || (r.Attempts > 0) != c.spent {
					t.Fatalf("during the outage: %s after %d attempts; attempts count: want %t", r.status, r.Attempts, c.spent)
				}
				b.deps.local.Store(nil)
				time.Sleep(2 * longestRecovery)
				synctest.Wait()
				if r := b.m.row(place); (r.status == user.DeliveryDelivered) == c.spent {
					t.Errorf("after the outage: %s, want delivered: %t", r.status, !c.spent)
				}
			})
		})
	}
}

// A hand-over gets no answer from a database. It ends, counts as no attempt, and is made again.
func TestAHandOverWithoutAnAnswerEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		b.deps.hangs.Store(true)
		place := b.m.add("Create", "", 1, 0)
		b.run(t)
		time.Sleep(leaseTime)
		synctest.Wait()
		b.deps.hangs.Store(false)
		time.Sleep(2 * longestRecovery)
		synctest.Wait()
		if r := b.m.row(place); r.status != user.DeliveryDelivered || r.Attempts != 1 {
			t.Errorf("%s after %d attempts, want delivered with the first that counts", r.status, r.Attempts)
		}
	})
}

// This process is stopped and continued again and again, so every attempt at a host that is well
// runs out of time. None of the attempts counts, and the host is not left alone.
func TestAHaltOfThisProcessUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		halts := 3 * openAfter
		long := time.Duration(halts) * 2 * longestRecovery
		b := newBench(t, func(context.Context, transport.Post) (transport.Attempt, error) {
			if halts--; halts >= 0 {
				return transport.Attempt{}, fmt.Errorf("post: %w: %w", transport.ErrHalted, fault.New(fault.Unavailable, "the peer did not answer in time"))
			}
			return transport.Attempt{Status: 202}, nil
		})
		place := b.m.add("Create", "p.example", 1, 0)
		b.run(t)
		time.Sleep(long)
		synctest.Wait()
		if r := b.m.row(place); r.status != user.DeliveryDelivered || r.Attempts != 1 {
			t.Errorf("%s after %d attempts that count, want delivered after 1", r.status, r.Attempts)
		}
	})
}
