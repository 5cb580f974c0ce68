package delivery

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
)

func dead(up *atomic.Bool) func(context.Context, transport.Post) (transport.Attempt, error) {
	return func(context.Context, transport.Post) (transport.Attempt, error) {
		if up.Load() {
			return transport.Attempt{Status: 202}, nil
		}
		return transport.Attempt{}, fault.New(fault.Unavailable, "connection refused")
	}
}

func TestAHostThatFailsForAWeekIsInactiveUntilSomethingGetsThroughToIt(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays days or weeks, and other tests their first minutes")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		b := newBench(t, dead(&up))
		b.m.add("Delete", "p.example", 20, 0)
		b.run(t)
		time.Sleep(9 * day)
		synctest.Wait()
		if n := b.m.in(user.DeliveryParked); n < 18 {
			t.Fatalf("%d of 20 deliveries are parked after nine days", n)
		}
		if h := b.m.hosts["p.example"]; h.InactiveAt == nil || HostState(h, time.Now()) != HostInactive {
			t.Errorf("remembered of the host: %+v, want that it is inactive", h)
		}
		if !b.m.parked[instance.Parked{Host: "p.example", User: alice}] {
			t.Error("nobody remembers whose deliveries are parked")
		}
		before := b.peers.count("p.example")
		b.m.add("Create", "p.example", 1, 0) // a new delivery to an inactive host is parked at once
		b.wake(alice)
		time.Sleep(10 * day)
		synctest.Wait()
		if n := b.peers.count("p.example") - before; n < 8 || n > 12 {
			t.Errorf("%d attempts in ten days, want one a day", n)
		}
		up.Store(true)
		time.Sleep(day * 12 / 10)
		synctest.Wait()
		if n := b.m.in(user.DeliveryDelivered); n != 21-b.m.in(user.DeliveryFailed) || n < 20 {
			t.Errorf("%d delivered and %d failed of 21 once the host was back", n, b.m.in(user.DeliveryFailed))
		}
		if len(b.m.parked) != 0 || b.m.hosts["p.example"].InactiveAt != nil {
			t.Errorf("remembered: %v, %+v, want nothing parked and the host active", b.m.parked, b.m.hosts["p.example"])
		}
	})
}

func TestParkedDeliveriesAreResumedByTheNextProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		now := time.Now()
		b.m.hosts["p.example"] = instance.Host{Host: "p.example", Failures: 9, FailingSince: timePointer(now.Add(-8 * day)), InactiveAt: timePointer(now.Add(-day)), ClosedUntil: timePointer(now.Add(time.Hour))}
		b.m.parked[instance.Parked{Host: "p.example", User: alice}] = true
		place := b.m.add("Create", "p.example", 3, 0)
		for _, r := range b.m.rows {
			r.status = user.DeliveryParked
		}
		b.run(t)
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if n := b.peers.count("p.example"); n != 0 {
			t.Errorf("%d attempts before the day was over", n)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if r := b.m.row(place); r.status != user.DeliveryDelivered || b.m.in(user.DeliveryDelivered) != 3 {
			t.Errorf("%s, and %d delivered of 3", r.status, b.m.in(user.DeliveryDelivered))
		}
	})
}

func TestWhatIsParkedForAHostThatIsBackIsResumedAtTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		b.m.hosts["q.example"] = instance.Host{Host: "q.example", Failures: 1, FailingSince: timePointer(time.Now().Add(-time.Minute))}
		for _, host := range []string{"p.example", "q.example"} { // p.example has no stored state
			b.m.parked[instance.Parked{Host: host, User: alice}] = true
			b.m.add("Create", host, 1, 0)
		}
		for _, r := range b.m.rows {
			r.status = user.DeliveryParked
		}
		b.run(t)
		if n := b.m.in(user.DeliveryDelivered); n != 2 {
			t.Errorf("%d of 2 parked deliveries are delivered", n)
		}
	})
}

func TestTheOperatorHoldsAHostBackAndResumesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		now := time.Now()
		b.m.hosts["p.example"] = instance.Host{Host: "p.example", PausedAt: &now, ChangedAt: &now}
		b.m.add("Create", "p.example", 3, 0)
		b.run(t)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := b.peers.count("p.example"); n != 0 || b.m.count(func(r *remembered) bool { return r.leased }) != 0 {
			t.Fatalf("%d attempts while the host is held back", n)
		}
		changed := time.Now()
		b.m.mu.Lock()
		b.m.hosts["p.example"] = instance.Host{Host: "p.example", ChangedAt: &changed}
		b.m.mu.Unlock()
		time.Sleep(2 * b.poll)
		synctest.Wait()
		if n := b.m.in(user.DeliveryDelivered); n != 3 {
			t.Errorf("%d of 3 delivered once it was resumed", n)
		}
	})
}

func TestAHostThatTheOperatorLetsGoOnDoesSoAtOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*instance.Host)
	}{
		{"probed", func(h *instance.Host) { h.ClosedUntil = timePointer(time.Now()) }},
		{"resumed", func(h *instance.Host) { *h = instance.Host{Host: h.Host} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var up atomic.Bool
				b := newBench(t, dead(&up))
				b.m.add("Create", "p.example", 20, 0)
				b.run(t)
				for range 100 { // until the breaker has a long rest before it
					time.Sleep(5 * time.Minute)
					synctest.Wait()
					if h := b.m.host("p.example"); h.ClosedUntil != nil && h.ClosedUntil.After(time.Now().Add(20*time.Minute)) {
						break
					}
				}
				up.Store(true)
				h := b.m.host("p.example")
				tt.change(&h)
				h.ChangedAt = timePointer(time.Now())
				b.m.mu.Lock()
				b.m.hosts["p.example"] = h
				b.m.mu.Unlock()
				time.Sleep(3 * b.poll)
				synctest.Wait()
				if n := b.m.in(user.DeliveryDelivered); n != 20 {
					t.Errorf("%d of 20 delivered", n)
				}
			})
		})
	}
}

func TestWhatIsResumedDuringATurnIsNotForgotten(t *testing.T) {
	t.Parallel()
	l := newLoop(&newBench(t, status(202)).Deps)
	now := time.Now()
	h := l.queues.host("p.example")
	h.inactive, h.failures, h.failed = now.Add(-day), 9, now.Add(-day)
	l.parking.addParked(h.name, alice)
	l.resumeForUser(h.name, alice)
	_, turn := l.beginTurn(now)
	if turn.resume[h.name] != 1 {
		t.Fatalf("the turn brings back %v, want one", turn.resume)
	}
	h.recordAnswer(4, now)
	l.resumeHost(h.name)
	l.endTurn(alice, turn, turnResult{resumed: map[string]int{h.name: 1}}, nil, now)
	u, turn := l.beginTurn(now)
	if turn.resume[h.name] != resumeBatch {
		t.Errorf("the next turn brings back %v, want all", turn.resume)
	}
	l.ledger.addEntry(alice, entry{delivery: user.Delivery{Host: h.name}, outcome: user.Outcome{Status: user.DeliveryParked}})
	l.recordResumed(u, turn, turnResult{})
	if !l.parking.parked[h.name][alice] {
		t.Error("that something is parked is forgotten while it is about to be")
	}
}

// A host that has failed for long is probed by one delivery. There is no probe while the host's
// breaker is open, or while another probe is under way.
func TestAnInactiveHostIsProbedByOneDelivery(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		change func(*loop, *hostQueue)
		want   int
	}{
		"inactive":           {func(*loop, *hostQueue) {}, 1},
		"not known":          {func(l *loop, h *hostQueue) { delete(l.queues.hosts, h.name) }, 0},
		"active":             {func(_ *loop, h *hostQueue) { h.inactive = time.Time{} }, 0},
		"open":               {func(_ *loop, h *hostQueue) { h.recordFailure("no answer", now) }, 0},
		"with one that runs": {func(_ *loop, h *hostQueue) { h.inflight = 1 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(&newBench(t, status(202)).Deps)
			h := l.queues.host("p.example")
			h.inactive, h.failures, h.failed = now.Add(-day), 9, now.Add(-day)
			l.parking.addParked(h.name, alice)
			tt.change(l, h)
			l.probeInactiveHosts(now)
			if got := l.planResume(alice, now)[h.name]; got != tt.want {
				t.Errorf("%d deliveries are to come back, want %d", got, tt.want)
			}
		})
	}
}

func TestDeliveriesBeyondABatchComeBackInTheNextTurn(t *testing.T) {
	t.Parallel()
	l, now := newLoop(&newBench(t, nil).Deps), time.Now()
	l.resumeForUser("p.example", alice)
	for _, found := range []int{resumeBatch, resumeBatch, 7} {
		_, turn := l.beginTurn(now)
		if turn.resume["p.example"] != resumeBatch {
			t.Fatalf("a turn brings back %v, want a batch", turn.resume)
		}
		l.endTurn(alice, turn, turnResult{resumed: map[string]int{"p.example": found}}, nil, now)
		now = now.Add(crowdedWait)
	}
	if u, turn := l.beginTurn(now); u != nil {
		t.Errorf("a turn brings back %v after the last one", turn.resume)
	}
}

func TestDeliveriesThatATurnPassedOverComeBackWithTheirHost(t *testing.T) {
	t.Parallel()
	for _, isOpen := range []bool{true, false} {
		l, now := newLoop(&newBench(t, nil).Deps), time.Now()
		h := l.queues.host("p.example")
		if isOpen {
			h.probes, h.openUntil = 1, now.Add(time.Hour)
		}
		l.requestTurn(alice, now)
		_, turn := l.beginTurn(now)
		l.endTurn(alice, turn, turnResult{passed: []string{h.name}}, nil, now)
		if got := l.parking.waiting[h.name][alice]; got != isOpen {
			t.Errorf("breaker open: %t; the user waits for the host: %t", isOpen, got)
		}
		h.recordAnswer(4, now)
		l.resumeHost(h.name)
		if _, turn = l.beginTurn(now); (turn.resume[h.name] == resumeBatch) != isOpen {
			t.Errorf("breaker open: %t; once the host is back a turn brings back %v", isOpen, turn.resume)
		}
	}
}
