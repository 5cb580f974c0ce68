package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
)

func TestStopLetsAttemptsEndAndGivesTheRestBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(context.Context, transport.Post) (transport.Attempt, error) {
			time.Sleep(5 * time.Second)
			return transport.Attempt{Status: 202}, nil
		})
		b.m.add("Create", "p.example", 10, 0)
		b.run(t)
		b.stop()
		if n := b.m.in(user.DeliveryDelivered); n != 4 || b.ended != nil {
			t.Errorf("%d delivered, want the 4 under way; %v", n, b.ended)
		}
		if n := b.m.count(func(r *remembered) bool {
			return r.status == user.DeliveryPending && !r.leased && !r.next.After(time.Now())
		}); n != 6 {
			t.Errorf("%d given back, want 6", n)
		}
		if n := b.peers.count("p.example"); n != 4 {
			t.Errorf("%d attempts, want none after the stop", n)
		}
	})
}

func TestStopCutsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(ctx context.Context, _ transport.Post) (transport.Attempt, error) {
			<-ctx.Done()
			return transport.Attempt{}, fault.Wrap(fault.Busy, "given up", ctx.Err())
		})
		place := b.m.add("Create", "p.example", 1, 0)
		b.run(t)
		start := time.Now()
		b.stop()
		if took := time.Since(start); took != b.Drain || fault.KindOf(b.ended) != fault.Busy {
			t.Errorf("stopped after %v with %v, want the drain time %v and Busy", took, b.ended, b.Drain)
		}
		if r := b.m.row(place); r.status != user.DeliveryPending || r.leased || r.Attempts != 0 {
			t.Errorf("%s, leased %v, after %d attempts; want given back without one", r.status, r.leased, r.Attempts)
		}
	})
}

// During the drain one attempt gets an answer, and another one does not end. The outcome of the
// first is stored at once, because the process may be killed before the drain ends.
func TestOutcomesAreStoredDuringTheDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(ctx context.Context, p transport.Post) (transport.Attempt, error) {
			if p.Inbox.Host() == "p.example" {
				time.Sleep(5 * time.Second)
				return transport.Attempt{Status: 202}, nil
			}
			<-ctx.Done()
			return transport.Attempt{}, fault.Wrap(fault.Busy, "given up", ctx.Err())
		})
		answered, hanging := b.m.add("Create", "p.example", 1, 0), b.m.add("Create", "q.example", 1, 0)
		b.run(t)
		go b.stop()
		time.Sleep(6 * time.Second)
		if r := b.m.row(answered); r.status != user.DeliveryDelivered {
			t.Errorf("during the drain the delivery is %s, want delivered", r.status)
		}
		b.stop()
		if r := b.m.row(hanging); r.status != user.DeliveryPending || r.leased {
			t.Errorf("at the end the other one is %s, leased %v; want given back", r.status, r.leased)
		}
	})
}
