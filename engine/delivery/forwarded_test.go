package delivery

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/transport"
)

// forward adds n deliveries to a host. They are deliveries of forwarded activities.
func (m *memory) forward(host string, n int) {
	first := m.add("Create", host, n, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows[first:] {
		r.Forwarded = true
	}
}

func (m *memory) delivered(forwarded bool) int {
	return m.count(func(r *remembered) bool { return r.Forwarded == forwarded && r.status == user.DeliveryDelivered })
}

func after(d time.Duration) func(context.Context, transport.Post) (transport.Attempt, error) {
	return func(context.Context, transport.Post) (transport.Attempt, error) {
		time.Sleep(d)
		return transport.Attempt{Status: 202}, nil
	}
}

// PAY-08: a thousand forwarded deliveries wait for a host. The user's own deliveries to the host
// go first.
func TestForwardedDeliveriesWaitBehindOnesOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, after(100*time.Millisecond))
		b.m.forward("p.example", 1000)
		b.run(t)
		time.Sleep(time.Second)
		before := b.m.delivered(true)
		b.m.add("Create", "p.example", 40, 0)
		b.wake(alice)
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
		if own, forwarded := b.m.delivered(false), b.m.delivered(true)-before; own != 40 || forwarded > 10 {
			t.Errorf("%d of 40 of one's own and %d forwarded were delivered, want one's own first", own, forwarded)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := b.m.delivered(true); n != 1000 {
			t.Errorf("%d of 1,000 forwarded were delivered in the end", n)
		}
		b.look(func(l *loop) {
			if l.leases.forwarded != 0 || l.queues.forwarding != 0 || l.leases.pool.Used() != 0 {
				t.Errorf("%d are held, %d of others, %d under way; want none", l.leases.pool.Used(), l.leases.forwarded, l.queues.forwarding)
			}
		})
	})
}

// If the hosts of followers are slow, this delays forwarded deliveries, and not the user's own.
func TestForwardedDeliveriesLeaveRoomForOnesOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, after(30*time.Second))
		for n := range 300 {
			b.m.forward(fmt.Sprintf("slow%d.example", n), 1)
		}
		b.run(t)
		time.Sleep(time.Second)
		b.look(func(l *loop) {
			if n := l.queues.attempts.Used(); n != 64 || l.leases.forwarded > maxUserForwarded {
				t.Errorf("%d attempts are under way and %d deliveries held, want half of all attempts and %d at most", n, l.leases.forwarded, maxUserForwarded)
			}
		})
		b.m.add("Create", "q.example", 1, 0)
		b.wake(alice)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := b.peers.count("q.example"); n != 1 {
			t.Errorf("%d attempts at one's own, want 1 at once", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := b.m.delivered(true); n != 300 {
			t.Errorf("%d of 300 forwarded were delivered in the end", n)
		}
	})
}
