package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/transport"
)

func TestLeasesOfATurnWhoseAnswerWasLostAreRecovered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(context.Context, transport.Post) (transport.Attempt, error) {
			return transport.Attempt{Status: 202}, nil
		})
		b.run(t)
		b.m.mu.Lock()
		b.m.unsure = 1
		b.m.mu.Unlock()
		place := b.m.add("Create", "p.example", 1, 0)
		b.wake(alice)
		time.Sleep(settleTime + 10*time.Second)
		synctest.Wait()
		if r := b.m.row(place); r.status != user.DeliveryDelivered || len(b.peers.all()) != 1 {
			t.Errorf("%s after %d attempts, want delivered after 1", r.status, len(b.peers.all()))
		}
	})
}

func TestLeasesOfACommitWhoseAnswerWasLostAreRecovered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(ctx context.Context, p transport.Post) (transport.Attempt, error) {
			if p.Inbox.Host() == "p.example" {
				time.Sleep(settleTime + 4*time.Second) // the attempt is still under way while leases are recovered
			}
			return transport.Attempt{Status: 202}, nil
		})
		running := b.m.add("Create", "p.example", 1, 0)
		b.run(t)
		time.Sleep(time.Second)
		lost := b.m.add("Create", "q.example", 1, 0)
		b.m.mu.Lock()
		b.m.rows[lost].leased, b.m.rows[lost].next = true, time.Now().Add(leaseTime)
		b.m.mu.Unlock()
		b.Committed(t.Context(), user.Commit{User: alice, Unknown: true, Owes: true})
		time.Sleep(settleTime + 15*time.Second)
		synctest.Wait()
		for place, host := range map[int]string{running: "p.example", lost: "q.example"} {
			if r := b.m.row(place); r.status != user.DeliveryDelivered || b.peers.count(host) != 1 {
				t.Errorf("%s: %s after %d attempts, want delivered after 1", host, r.status, b.peers.count(host))
			}
		}
	})
}
