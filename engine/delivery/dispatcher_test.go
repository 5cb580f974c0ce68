package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttemptsFollowTheScheduleToItsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays days or weeks, and other tests their first minutes")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(500))
		place := b.m.add("Create", "p.example", 1, 0)
		b.run(t)
		time.Sleep(8 * day)
		synctest.Wait()
		want := []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour, day}
		posts := b.peers.all()
		if len(posts) != len(want)+1 {
			t.Fatalf("%d attempts, want %d", len(posts), len(want)+1)
		}
		for i, w := range want {
			got := posts[i+1].at.Sub(posts[i].at)
			if got < w*9/10 || got > w*11/10 {
				t.Errorf("wait %d = %v, want %v give or take a tenth", i+1, got, w)
			}
		}
		if r := b.m.row(place); r.status != user.DeliveryFailed || r.Attempts != 7 {
			t.Errorf("delivery is %s after %d attempts, want failed after 7", r.status, r.Attempts)
		}
	})
}

func TestDeleteIsTriedForThirtyDays(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays days or weeks, and other tests their first minutes")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(500))
		place := b.m.add("Delete", "p.example", 1, 0)
		b.run(t)
		time.Sleep(29 * day)
		synctest.Wait()
		if r := b.m.row(place); r.status != user.DeliveryPending && r.status != user.DeliveryParked || len(b.peers.all()) < 28 {
			t.Errorf("after 29 days: %s after %d attempts, want it owed after a daily one", r.status, len(b.peers.all()))
		}
		time.Sleep(3 * day)
		synctest.Wait()
		if r := b.m.row(place); r.status != user.DeliveryFailed {
			t.Errorf("after 32 days: %s, want failed", r.status)
		}
	})
}

func TestWakeIsImmediate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		b.run(t)
		time.Sleep(time.Second)
		b.m.add("Create", "p.example", 1, 0)
		start := time.Now()
		b.wake(alice)
		synctest.Wait()
		if n := b.m.in(user.DeliveryDelivered); n != 1 || !time.Now().Equal(start) {
			t.Errorf("%d delivered %v after the wake, want 1 at once", n, time.Since(start))
		}
	})
}

func TestAStallingHostHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(ctx context.Context, p transport.Post) (transport.Attempt, error) {
			if p.Inbox.Host() == "slow.example" {
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
				}
				return transport.Attempt{}, fault.New(fault.Unavailable, "no answer in time")
			}
			return transport.Attempt{Status: 202}, nil
		})
		b.m.add("Create", "slow.example", 1000, 0)
		b.m.add("Create", "quick.example", 50, 0)
		start := time.Now()
		b.run(t)
		time.Sleep(3 * crowdedWait / 2)
		synctest.Wait()
		if n := b.m.in(user.DeliveryDelivered); n != 50 {
			t.Errorf("%d of 50 delivered to the quick host after %v", n, time.Since(start))
		}
		if n := b.peers.count("slow.example"); n != 4 {
			t.Errorf("%d attempts at the slow host at once, want 4", n)
		}
	})
}

func TestHalfOfTheAttemptsAtAHostMayBeRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(ctx context.Context, _ transport.Post) (transport.Attempt, error) {
			<-ctx.Done()
			return transport.Attempt{}, ctx.Err()
		})
		b.m.add("Create", "p.example", 10, 1)
		b.run(t)
		if n := b.peers.count("p.example"); n != 2 {
			t.Errorf("%d retries at once, want 2", n)
		}
		b.m.add("Create", "p.example", 10, 0)
		b.wake(alice)
		synctest.Wait()
		if n := b.peers.count("p.example"); n != 4 {
			t.Errorf("%d attempts at once, want 4", n)
		}
	})
}

func TestAHostThatDoesNotAnswerIsProbedByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		b := newBench(t, func(context.Context, transport.Post) (transport.Attempt, error) {
			if up.Load() {
				return transport.Attempt{Status: 202}, nil
			}
			return transport.Attempt{}, fault.New(fault.Unavailable, "connection refused")
		})
		b.m.add("Create", "p.example", 100, 0)
		b.run(t)
		if n := b.peers.count("p.example"); n > openAfter+3 {
			t.Errorf("%d attempts before the host was left alone, want about %d", n, openAfter)
		}
		if n := b.m.count(func(r *remembered) bool { return r.Attempts == 0 }); n < 90 {
			t.Errorf("%d deliveries spent no attempt, want more than 90", n)
		}
		before := b.peers.count("p.example")
		time.Sleep(shortestRest * 12 / 10)
		synctest.Wait()
		if n := b.peers.count("p.example") - before; n < 1 || n > 2 {
			t.Errorf("%d probes, want one", n)
		}
		up.Store(true)
		time.Sleep(longestRest)
		synctest.Wait()
		if n := b.m.in(user.DeliveryDelivered); n != 100 {
			t.Errorf("%d of 100 delivered once the host was back", n)
		}
	})
}

func TestAHostThatAsksForItIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(context.Context, transport.Post) (transport.Attempt, error) {
			return transport.Attempt{Status: 429, RetryAfter: time.Hour}, nil
		})
		b.m.add("Create", "p.example", 100, 0)
		b.run(t)
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if n := b.peers.count("p.example"); n > 4 {
			t.Errorf("%d attempts within the hour, want no more than were under way", n)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := b.peers.count("p.example"); n < 5 {
			t.Error("no attempt after the hour")
		}
	})
}

func TestUnreadableKeysSpendNoAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		unreadable := errors.New("permission denied")
		b.deps.keys.Store(&unreadable)
		places := map[string]int{"another server": b.m.add("Create", "p.example", 1, 0), "a user of this server": b.m.add("Create", "", 1, 0)}
		b.run(t)
		time.Sleep(2 * 24 * time.Hour) // all attempts would have been made by then
		synctest.Wait()
		for to, place := range places {
			if r := b.m.row(place); r.Attempts != 0 || r.status != user.DeliveryPending || len(b.peers.all()) != 0 {
				t.Errorf("to %s: %s after %d attempts, want pending after none", to, r.status, r.Attempts)
			}
		}
		b.deps.keys.Store(nil)
		time.Sleep(keysWait)
		synctest.Wait()
		for to, place := range places {
			if r := b.m.row(place); r.status != user.DeliveryDelivered {
				t.Errorf("to %s: %s once the keys could be read, want delivered", to, r.status)
			}
		}
	})
}

// Every delivery reads the keys again, and the log has one line for each state of the keys.
func TestKeysThatAreMissingAreLoggedOncePerState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		var log bytes.Buffer
		b.Log = slog.New(slog.NewTextHandler(&log, nil))
		for n := range 3 {
			b.m.add("Create", fmt.Sprintf("p%d.example", n), 1, 0)
		}
		missing, closed := errors.New("no such file"), errors.New("permission denied")
		b.deps.keys.Store(&missing)
		b.run(t)
		for n, err := range []*error{&missing, &closed, nil} {
			b.deps.keys.Store(err)
			time.Sleep(3 * keysWait)
			synctest.Wait()
			if got, want := strings.Count(log.String(), "keys could not be read"), min(n+1, 2); got != want {
				t.Errorf("the log tells of the keys %d times in %d states, want %d:\n%s", got, n+1, want, &log)
			}
		}
		b.deps.keys.Store(&closed)
		b.m.add("Create", "q.example", 1, 0)
		b.wake(alice)
		synctest.Wait()
		if got := strings.Count(log.String(), "keys could not be read"); got != 3 {
			t.Errorf("keys that were read in between are told of %d times, want 3:\n%s", got, &log)
		}
	})
}

// A user's deliveries need the instance's keys and the user's keys. The two kinds of keys have
// separate states.
func TestKeysOfTheInstanceAreNotTheUsers(t *testing.T) {
	t.Parallel()
	var n unsigned
	missing := errors.New("no such file")
	user, instance := &row{user: alice}, &row{user: alice}
	instance.Instance = true
	for i, want := range []bool{true, false, false} {
		n.record(signerOf(instance), nil)
		if got := n.record(signerOf(user), missing); got != want {
			t.Errorf("time %d: news %t, want %t", i+1, got, want)
		}
	}
	if n.count() != 1 {
		t.Errorf("%d have keys that cannot be read, want 1", n.count())
	}
}

func TestABlockedHostIsSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		blocked := error(fault.New(fault.Forbidden, "blocked"))
		b.deps.gate.Store(&blocked)
		place := b.m.add("Create", "p.example", 1, 0)
		b.run(t)
		if r := b.m.row(place); r.status != user.DeliverySkipped || len(b.peers.all()) != 0 {
			t.Errorf("%s after %d posts, want skipped after none", r.status, len(b.peers.all()))
		}
	})
}

func TestASuspendedActorIsSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		troll, bob := vocab.ID("https://p.example/users/troll"), vocab.ID("https://p.example/users/bob")
		b.deps.suspended.Store(&troll)
		own, first, last := b.m.add("Create", "p.example", 1, 0), b.m.add("Create", "p.example", 1, 0), b.m.add("Create", "p.example", 1, 0)
		b.m.rows[own].Targets, b.m.rows[first].Targets, b.m.rows[last].Targets = []vocab.ID{troll}, []vocab.ID{troll, bob}, []vocab.ID{bob, troll}
		b.run(t)
		if r := b.m.row(own); r.status != user.DeliverySkipped || len(b.peers.all()) != 2 {
			t.Errorf("to it alone: %s after %d posts, want skipped after those of the other deliveries", r.status, len(b.peers.all()))
		}
		for _, shared := range []int{first, last} {
			if r := b.m.row(shared); r.status != user.DeliveryDelivered {
				t.Errorf("to it and others behind one inbox, %v: %s, want delivered", r.Targets, r.status)
			}
		}
	})
}

func TestWhileFederationIsPausedDeliveriesWait(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays days or weeks, and other tests their first minutes")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		b.Paused = true
		away, here := b.m.add("Create", "p.example", 1, 0), b.m.add("Create", "", 1, 0)
		b.run(t)
		time.Sleep(longLifetime)
		synctest.Wait()
		if r := b.m.row(away); r.status != user.DeliveryPending || r.leased || r.Attempts != 0 || len(b.peers.all()) != 0 {
			t.Errorf("to another server: %s, leased: %v, after %d attempts, want pending and untouched", r.status, r.leased, r.Attempts)
		}
		if r := b.m.row(here); r.status != user.DeliveryDelivered {
			t.Errorf("to a user of this server: %s, want delivered", r.status)
		}
	})
}

func TestLocalRecipientsAreHandedTheActivity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"taken", nil, user.DeliveryDelivered},
		{"no such user any more", fault.New(fault.Gone, "gone"), user.DeliverySkipped},
		{"database down", fault.New(fault.Unavailable, "down"), user.DeliveryPending},
		{"not an activity that is taken", fault.New(fault.Invalid, "bad"), user.DeliveryFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, status(202))
				if c.err != nil {
					b.deps.local.Store(&c.err)
				}
				place := b.m.add("Create", "", 1, 0)
				b.run(t)
				if r := b.m.row(place); r.status != c.want || len(b.peers.all()) != 0 {
					t.Errorf("%s after %d posts, want %s after none", r.status, len(b.peers.all()), c.want)
				}
			})
		})
	}
}

func TestAPanicEndsOneDeliveryOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := true
		b := newBench(t, func(context.Context, transport.Post) (transport.Attempt, error) {
			if first {
				first = false
				panic("poison")
			}
			return transport.Attempt{Status: 202}, nil
		})
		b.HostConcurrency = 1
		b.m.add("Create", "p.example", 3, 0)
		b.run(t)
		if failed, delivered := b.m.in(user.DeliveryFailed), b.m.in(user.DeliveryDelivered); failed != 1 || delivered != 2 {
			t.Errorf("%d failed and %d delivered, want 1 and 2", failed, delivered)
		}
	})
}

func TestAFailingDatabaseLosesNoOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.peers.answer = func(context.Context, transport.Post) (transport.Attempt, error) {
			b.m.breakWith(fault.New(fault.Unavailable, "down"))
			return transport.Attempt{Status: 202}, nil
		}
		place := b.m.add("Create", "p.example", 1, 0)
		b.run(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		if r := b.m.row(place); r.status != user.DeliveryPending {
			t.Fatalf("%s although nothing can be stored", r.status)
		}
		b.m.breakWith(nil)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if r := b.m.row(place); r.status != user.DeliveryDelivered || len(b.peers.all()) != 1 {
			t.Errorf("%s after %d attempts, want delivered after 1", r.status, len(b.peers.all()))
		}
	})
}
