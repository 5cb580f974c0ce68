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
