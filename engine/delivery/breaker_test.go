package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestTheBreakerOpensAfterFiveFailuresWithinTenMinutes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name    string
		between time.Duration // failures
		through int           // after so many failures something gets through
		want    string
	}{
		{"five within ten minutes", 2 * time.Minute, 0, HostOpen},
		{"five within more", 3 * time.Minute, 0, HostFailing},
		{"five, something got through meanwhile", time.Second, 4, HostFailing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var h breaker
			now := start
			for n := range openAfter {
				if n > 0 && n == tt.through {
					h.recordAnswer(4, now)
				}
				h.recordFailure("no answer", now)
				now = now.Add(tt.between)
			}
			if got := h.stateName(now.Add(-tt.between)); got != tt.want {
				t.Errorf("the host is %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAnOpenBreakerDoublesItsRestUpToHalfAnHour(t *testing.T) {
	t.Parallel()
	var h breaker
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range openAfter {
		h.recordFailure("no answer", now)
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		want *= time.Minute
		if got := h.closesAt().Sub(now); got < want*9/10 || got > want*11/10 {
			t.Fatalf("it rests for %v, want %v give or take a tenth", got, want)
		}
		now = h.closesAt()
		if all, retries := h.limitAttempts(4); all != 1 || retries != 1 || h.stateName(now) != HostHalfOpen {
			t.Errorf("after the rest it is %s with %d attempts at once, want half open with one", h.stateName(now), all)
		}
		h.recordFailure("no answer", now)
	}
	h.recordAnswer(4, now)
	if got := h.stateName(now); got != HostOK {
		t.Errorf("after something got through it is %s", got)
	}
}

func TestWhatIsStoredOfAHostIsWhatWasKnown(t *testing.T) {
	t.Parallel()
	var h breaker
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 2 * openAfter {
		h.recordFailure("no answer", now)
		now = now.Add(day)
	}
	again := newBreaker(h.storedHost("p.example"))
	if again.stateName(now) != HostInactive || !again.closesAt().Equal(h.closesAt()) || again.failures != h.failures || !again.since.Equal(h.since) || again.why != "no answer" {
		t.Errorf("stored and read again it is %+v, was %+v", again, h)
	}
}

func TestAHostThatIsBackIsGivenMoreAndMore(t *testing.T) {
	t.Parallel()
	var h breaker
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range openAfter {
		h.recordFailure("no answer", now)
	}
	now = h.closesAt()
	var got []int
	for range 4 * rampStep {
		h.recordAnswer(4, now)
		all, _ := h.limitAttempts(4)
		if len(got) == 0 || got[len(got)-1] != all {
			got = append(got, all)
		}
	}
	if len(got) != 4 || got[0] != 1 || got[3] != 4 {
		t.Errorf("attempts at once: %v, want 1 to 4 in steps", got)
	}
}

// dead is a host that does not answer until it is told to.
func dead(up *atomic.Bool) func(context.Context, transport.Post) (transport.Attempt, error) {
	return func(context.Context, transport.Post) (transport.Attempt, error) {
		if up.Load() {
			return transport.Attempt{Status: 202}, nil
		}
		return transport.Attempt{}, fault.New(fault.Unavailable, "connection refused")
	}
}

func TestAHostThatFailsForAWeekIsInactiveUntilSomethingGetsThroughToIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		b := newBench(t, dead(&up))
		b.m.add("Delete", "p.example", 20, 0)
		b.run(t)
		time.Sleep(9 * day)
		synctest.Wait()
		if n := b.m.in(db.DeliveryParked); n < 18 {
			t.Fatalf("%d of 20 deliveries are parked after nine days", n)
		}
		if h := b.m.hosts["p.example"]; h.InactiveAt == nil || HostState(h, time.Now()) != HostInactive {
			t.Errorf("remembered of the host: %+v, want that it is inactive", h)
		}
		if !b.m.parked[db.Parked{Host: "p.example", User: alice}] {
			t.Error("nobody remembers whose deliveries are parked")
		}
		before := b.peers.count("p.example")
		b.m.add("Create", "p.example", 1, 0) // new ones are parked at once
		b.Wake(alice)
		time.Sleep(10 * day)
		synctest.Wait()
		if n := b.peers.count("p.example") - before; n < 8 || n > 12 {
			t.Errorf("%d attempts in ten days, want one a day", n)
		}
		up.Store(true)
		time.Sleep(day * 12 / 10)
		synctest.Wait()
		if n := b.m.in(db.DeliveryDelivered); n != 21-b.m.in(db.DeliveryFailed) || n < 20 {
			t.Errorf("%d delivered and %d failed of 21 once the host was back", n, b.m.in(db.DeliveryFailed))
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
		b.m.hosts["p.example"] = db.Host{Host: "p.example", Failures: 9, FailingSince: timePointer(now.Add(-8 * day)), InactiveAt: timePointer(now.Add(-day)), ClosedUntil: timePointer(now.Add(time.Hour))}
		b.m.parked[db.Parked{Host: "p.example", User: alice}] = true
		place := b.m.add("Create", "p.example", 3, 0)
		for _, r := range b.m.rows {
			r.status = db.DeliveryParked
		}
		b.run(t)
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if n := b.peers.count("p.example"); n != 0 {
			t.Errorf("%d attempts before the day was over", n)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if r := b.m.row(place); r.status != db.DeliveryDelivered || b.m.in(db.DeliveryDelivered) != 3 {
			t.Errorf("%s, and %d delivered of 3", r.status, b.m.in(db.DeliveryDelivered))
		}
	})
}

// A process that was killed may not have resumed everything that was parked for a host that is
// back.
func TestWhatIsParkedForAHostThatIsBackIsResumedAtTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		b.m.hosts["q.example"] = db.Host{Host: "q.example", Failures: 1, FailingSince: timePointer(time.Now().Add(-time.Minute))}
		for _, host := range []string{"p.example", "q.example"} { // of the first nothing is remembered
			b.m.parked[db.Parked{Host: host, User: alice}] = true
			b.m.add("Create", host, 1, 0)
		}
		for _, r := range b.m.rows {
			r.status = db.DeliveryParked
		}
		b.run(t)
		if n := b.m.in(db.DeliveryDelivered); n != 2 {
			t.Errorf("%d of 2 parked deliveries are delivered", n)
		}
	})
}

func TestTheOperatorHoldsAHostBackAndResumesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		now := time.Now()
		b.m.hosts["p.example"] = db.Host{Host: "p.example", PausedAt: &now, ChangedAt: &now}
		b.m.add("Create", "p.example", 3, 0)
		b.run(t)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := b.peers.count("p.example"); n != 0 || b.m.count(func(r *remembered) bool { return r.leased }) != 0 {
			t.Fatalf("%d attempts while the host is held back", n)
		}
		changed := time.Now()
		b.m.mu.Lock()
		b.m.hosts["p.example"] = db.Host{Host: "p.example", ChangedAt: &changed}
		b.m.mu.Unlock()
		time.Sleep(2 * b.poll)
		synctest.Wait()
		if n := b.m.in(db.DeliveryDelivered); n != 3 {
			t.Errorf("%d of 3 delivered once it was resumed", n)
		}
	})
}

func TestWhoOwesSomethingIsRememberedForTheNextProcess(t *testing.T) {
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
		b.Wake(alice)
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
		b.m.nobody = true // no sweep finds anybody
		b.run(t)
		time.Sleep(time.Second)
		b.m.add("Create", "p.example", 1, 0)
		now := time.Now()
		b.m.mu.Lock()
		b.m.due = &now
		b.m.mu.Unlock()
		time.Sleep(b.poll + time.Second)
		synctest.Wait()
		if n := b.m.in(db.DeliveryDelivered); n != 1 {
			t.Errorf("%d delivered, want the one", n)
		}
	})
}

func TestWhatIsStoredUnderALeaseBeginsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		b.m.nobody = true
		b.run(t)
		time.Sleep(time.Second)
		l := b.Leases()
		if l.Owner != "me" || l.Most == 0 || !l.Until.Equal(time.Now().Add(leaseTime)) {
			t.Fatalf("leases %+v", l)
		}
		place := b.m.add("Create", "p.example", 1, 0)
		b.m.rows[place].leased, b.m.rows[place].next = true, l.Until
		b.Take(t.Context(), alice, []db.Delivery{b.m.rows[place].Delivery}, l.Until)
		synctest.Wait()
		if n := b.peers.count("p.example"); n != 1 || b.m.row(place).status != db.DeliveryDelivered {
			t.Errorf("%d attempts, and it is %s", n, b.m.row(place).status)
		}
		b.stop()
		if l := b.Leases(); l.Owner != "" {
			t.Errorf("leases %+v after the end", l)
		}
	})
}

func TestNothingIsLeasedForAHostThatIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		b := newBench(t, dead(&up))
		b.m.add("Create", "p.example", 10, 0)
		b.run(t)
		if l := b.Leases(); len(l.Except) != 1 || l.Except[0] != "p.example" {
			t.Errorf("leases %+v, want none for the host whose breaker is open", l)
		}
	})
}

func TestAnInboxThatMovedIsFoundAfterThreeFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ context.Context, p transport.Post) (transport.Attempt, error) {
			if p.Inbox == "https://p.example/new" {
				return transport.Attempt{Status: 202}, nil
			}
			return transport.Attempt{Status: 500}, nil
		})
		b.deps.known.Store(&vocab.Actor{ID: "https://p.example/u", Inbox: "https://p.example/new"})
		place := b.m.add("Create", "p.example", 1, 0)
		b.run(t)
		time.Sleep(time.Hour)
		synctest.Wait()
		if r := b.m.row(place); r.status != db.DeliveryDelivered || r.Inbox != "https://p.example/new" || b.peers.count("p.example") != 4 {
			t.Errorf("%s at %s after %d attempts, want delivered at the new inbox by the fourth", r.status, r.Inbox, b.peers.count("p.example"))
		}
	})
}

func TestWhatAHostSaysDecidesItsHealth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		a    transport.Attempt
		err  error
		want reaction
	}{
		{"taken", transport.Attempt{Status: 202}, nil, answered},
		{"refused", transport.Attempt{Status: 403}, nil, answered},
		{"gone", transport.Attempt{Status: 410}, nil, answered},
		{"too many, without a time", transport.Attempt{Status: 429}, nil, answered},
		{"too many", transport.Attempt{Status: 429, RetryAfter: time.Hour}, nil, deferring},
		{"unavailable, with a time", transport.Attempt{Status: 503, RetryAfter: time.Hour}, nil, deferring},
		{"unavailable", transport.Attempt{Status: 503}, nil, silent},
		{"broken", transport.Attempt{Status: 500}, nil, silent},
		{"no answer", transport.Attempt{}, fault.New(fault.Unavailable, "timeout"), silent},
		{"no such host", transport.Attempt{}, fault.New(fault.NoHost, "no such host"), silent},
		{"blocked by us", transport.Attempt{}, fault.New(fault.Forbidden, "blocked"), noReaction},
		{"paused by us", transport.Attempt{}, transport.ErrPaused, noReaction},
	} {
		if got := judgeHost(tt.a, tt.err); got != tt.want {
			t.Errorf("%s: heard %d, want %d", tt.name, got, tt.want)
		}
	}
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
		b.Wake(alice)
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

// One of the deliveries finds a host back while another turn brings back the one that was to find
// it out.
func TestWhatIsResumedDuringATurnIsNotForgotten(t *testing.T) {
	t.Parallel()
	l := newLoop(&newBench(t, status(202)).Deps)
	now := time.Now()
	h := l.queues.host("p.example")
	h.inactive, h.failures, h.failed = now.Add(-day), 9, now.Add(-day)
	l.parking.addParked(h.name, alice)
	l.resumeForUser(h.name, alice)
	u, turn := l.beginTurn(now)
	if turn.resume[h.name] != 1 {
		t.Fatalf("the turn brings back %v, want one", turn.resume)
	}
	h.recordAnswer(4, now)
	l.resumeHost(h.name)
	l.endTurn(alice, turn, turnResult{resumed: map[string]int{h.name: 1}}, nil, now)
	if u, turn = l.beginTurn(now); turn.resume[h.name] != resumeBatch {
		t.Errorf("the next turn brings back %v, want all", turn.resume)
	}
	l.ledger.addEntry(alice, entry{delivery: db.Delivery{Host: h.name}, outcome: db.Outcome{Status: db.DeliveryParked}})
	l.recordResumed(u, turn, turnResult{})
	if !l.parking.parked[h.name][alice] {
		t.Error("that something is parked is forgotten while it is about to be")
	}
}

func TestWhatCouldNotBeReadAtTheBeginningIsReadLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		b.m.nobody = true
		now := time.Now()
		b.m.hosts["p.example"] = db.Host{Host: "p.example", Failures: 9, FailingSince: timePointer(now.Add(-8 * day)), FailedAt: &now, InactiveAt: timePointer(now.Add(-day)), ClosedUntil: timePointer(now)}
		b.m.parked[db.Parked{Host: "p.example", User: alice}] = true
		b.m.add("Create", "p.example", 3, 0)
		for _, r := range b.m.rows {
			r.status = db.DeliveryParked
		}
		b.m.away = errors.New("the instance database is away")
		b.run(t)
		time.Sleep(time.Hour)
		b.m.mu.Lock()
		b.m.away = nil
		b.m.mu.Unlock()
		time.Sleep(3 * b.poll)
		synctest.Wait()
		if n := b.m.in(db.DeliveryDelivered); n != 3 {
			t.Errorf("%d of 3 parked deliveries were found", n)
		}
	})
}

// A mark was stored, but its answer lost. What is marked later counts all the same.
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
			b.Wake(alice)
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

func TestTheFirstRoundAfterAStartIsQuick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		for n := range 600 {
			u, err := vocab.ParseUsername(fmt.Sprint("user", n))
			if err != nil {
				t.Fatal(err)
			}
			b.m.others = append(b.m.others, u)
		}
		b.run(t)
		time.Sleep(600*firstPace + time.Second)
		synctest.Wait()
		if n := b.m.taken(); n < 601 {
			t.Errorf("%d of 601 users had a turn", n)
		}
		time.Sleep(100 * sweepPace)
		synctest.Wait()
		if n := b.m.taken(); n > 601+120 {
			t.Errorf("%d turns, want the second round to cost next to nothing", n)
		}
	})
}

func TestAHostThatTheOperatorLetsGoOnDoesSoAtOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*db.Host)
	}{
		{"probed", func(h *db.Host) { h.ClosedUntil = timePointer(time.Now()) }},
		{"resumed", func(h *db.Host) { *h = db.Host{Host: h.Host} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var up atomic.Bool
				b := newBench(t, dead(&up))
				b.m.add("Create", "p.example", 20, 0)
				b.run(t)
				for range 100 { // in the middle of a long rest
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
				if n := b.m.in(db.DeliveryDelivered); n != 20 {
					t.Errorf("%d of 20 delivered", n)
				}
			})
		})
	}
}
