package delivery

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
)

func TestWhoOwesSomethingIsRememberedForTheNextProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays days or weeks, and other tests their first minutes")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(500))
		b.run(t)
		marked := func() *time.Time { b.m.mu.Lock(); defer b.m.mu.Unlock(); return b.m.due }
		time.Sleep(time.Second)
		if m := marked(); m != nil {
			t.Errorf("due by %v although nothing is owed", m)
		}
		place := b.m.add("Create", "p.example", 1, 0)
		b.wake(alice)
		time.Sleep(time.Second)
		synctest.Wait()
		next := b.m.row(place).next
		if m := marked(); m == nil || m.After(next.Add(leaseTime)) {
			t.Errorf("due by %v, want by the next attempt at %v", m, next)
		}
		time.Sleep(9 * day)
		synctest.Wait()
		if m := marked(); m != nil {
			t.Errorf("due by %v after everything has ended", m)
		}
	})
}

func TestWhatAnotherProcessMadeDueIsFoundSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		b.m.nobody = true // so that no sweep finds the user
		b.run(t)
		time.Sleep(time.Second)
		b.m.add("Create", "p.example", 1, 0)
		now := time.Now()
		b.m.mu.Lock()
		b.m.due = &now
		b.m.mu.Unlock()
		time.Sleep(b.poll + time.Second)
		synctest.Wait()
		if n := b.m.in(user.DeliveryDelivered); n != 1 {
			t.Errorf("%d delivered, want the one", n)
		}
	})
}

func TestWhatCouldNotBeReadAtTheBeginningIsReadLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		b.m.nobody = true
		now := time.Now()
		b.m.hosts["p.example"] = instance.Host{Host: "p.example", Failures: 9, FailingSince: timePointer(now.Add(-8 * day)), FailedAt: &now, InactiveAt: timePointer(now.Add(-day)), ClosedUntil: timePointer(now)}
		b.m.parked[instance.Parked{Host: "p.example", User: alice}] = true
		b.m.add("Create", "p.example", 3, 0)
		for _, r := range b.m.rows {
			r.status = user.DeliveryParked
		}
		b.m.away = errors.New("the instance database is away")
		b.run(t)
		time.Sleep(time.Hour)
		b.m.mu.Lock()
		b.m.away = nil
		b.m.mu.Unlock()
		time.Sleep(3 * b.poll)
		synctest.Wait()
		if n := b.m.in(user.DeliveryDelivered); n != 3 {
			t.Errorf("%d of 3 parked deliveries were found", n)
		}
	})
}

func TestALostAnswerLosesNoMark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(context.Context, transport.Post) (transport.Attempt, error) {
			time.Sleep(time.Second)
			return transport.Attempt{Status: 202}, nil
		})
		b.m.nobody = true
		lose := func(err error) { b.m.mu.Lock(); defer b.m.mu.Unlock(); b.m.lost = err }
		marked := func() bool { b.m.mu.Lock(); defer b.m.mu.Unlock(); return b.m.due != nil }
		b.run(t)
		for n, answer := range []error{errors.New("connection lost"), nil} {
			b.m.add("Create", "p.example", 1, 0)
			b.wake(alice)
			time.Sleep(time.Second / 2)
			synctest.Wait()
			if !marked() {
				t.Fatalf("delivery %d is under way, and nobody would know", n+1)
			}
			lose(answer)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if marked() {
				t.Errorf("delivery %d has ended, and it is still marked", n+1)
			}
			lose(nil)
			time.Sleep(2 * b.poll)
			synctest.Wait()
		}
	})
}

func TestWhatIsLeftInMemoryOfManyHostsIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ context.Context, p transport.Post) (transport.Attempt, error) {
			if p.Inbox.Host()[0] == 'd' {
				return transport.Attempt{}, fault.New(fault.Unavailable, "connection refused")
			}
			return transport.Attempt{Status: 202}, nil
		})
		b.m.nobody = true
		b.poll = 10 * time.Minute
		known := func() (n int) { b.look(func(l *loop) { n = len(l.queues.hosts) }); return n }
		for n := range 50 {
			b.m.add("Create", fmt.Sprintf("up%d.example", n), 1, 0)
			b.m.add("Create", fmt.Sprintf("dead%d.example", n), 1, 6)
		}
		b.run(t)
		b.wake(alice)
		time.Sleep(2 * deliveredNews)
		synctest.Wait()
		if n := known(); n != 50 {
			t.Errorf("%d hosts are known after two hours, want the 50 that failed", n)
		}
		time.Sleep(longLifetime)
		synctest.Wait()
		if n := known(); n != 0 {
			t.Errorf("%d hosts are known after a month, want none", n)
		}
	})
}

func TestAUserIsMarkedAsDue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for _, tt := range []struct {
		name string
		do   func(*loop)
		want time.Time
	}{
		{"nothing is owed", func(*loop) {}, time.Time{}},
		{"a turn is due", func(l *loop) { l.requestTurn(alice, atOnce) }, now.Add(leaseTime)},
		{"a turn is due later", func(l *loop) { l.requestTurn(alice, now.Add(time.Hour)) }, now.Add(time.Hour)},
		{"a turn runs", func(l *loop) { l.requestTurn(alice, now); l.beginTurn(now) }, now.Add(leaseTime)},
		{"a delivery is leased", func(l *loop) { l.leases.add(&row{user: alice}) }, now.Add(leaseTime)},
	} {
		l := newLoop(&newBench(t, nil).Deps)
		tt.do(l)
		if got := timeAt(l.markOf(alice, now)); !got.Equal(tt.want) {
			t.Errorf("%s: marked as due by %v, want %v", tt.name, got, tt.want)
		}
	}
}
