package delivery

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/transport"
)

// slowDomain answers after nine seconds for every host below evil.example. For other hosts it
// answers at once.
func slowDomain(ctx context.Context, p transport.Post) (transport.Attempt, error) {
	if strings.HasSuffix(p.Inbox.Host(), ".evil.example") {
		select {
		case <-time.After(9 * time.Second):
		case <-ctx.Done():
			return transport.Attempt{}, ctx.Err()
		}
	}
	return transport.Attempt{Status: 202}, nil
}

// addWildcard adds deliveries to n hosts below evil.example, one to each host.
func (b *bench) addWildcard(n int) {
	for i := range n {
		b.m.add("Create", fmt.Sprintf("h%d.evil.example", i), 1, 0)
	}
}

func TestAWildcardDomainHoldsUpNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays days or weeks, and other tests their first minutes")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, slowDomain)
		b.addWildcard(9000)
		honest, local := b.m.add("Create", "honest.example", 1, 0), b.m.add("Create", "", 1, 0)
		b.run(t)
		delivered := func(when string, places ...int) {
			t.Helper()
			time.Sleep(2 * time.Second) // a turn waits at most this long
			synctest.Wait()
			for _, place := range places {
				if r := b.m.row(place); r.status != user.DeliveryDelivered {
					t.Errorf("%s, the delivery to %s is %s while another domain is slow", when, r.Inbox, r.status)
				}
			}
		}
		delivered("at first", honest, local)
		if n := b.loop.queues.attempts.Used(); n < 90 || n > 96 {
			t.Errorf("%d attempts are under way, want three quarters of 128: nobody else asks for them", n)
		}
		if n := b.loop.leases.pool.Used(); n < 4096 || n > 6144 {
			t.Errorf("%d deliveries are in memory, want more than half and less than three quarters of 8,192", n)
		}
		time.Sleep(time.Minute)
		honest, local = b.m.add("Create", "other.example", 1, 0), b.m.add("Create", "", 1, 0)
		b.wake(alice)
		delivered("a minute later", honest, local)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if n := b.m.in(user.DeliveryDelivered); n != 9004 {
			t.Errorf("%d are delivered in the end, want all 9,004", n)
		}
		b.look(func(l *loop) {
			if attempts, rows := l.queues.attempts.Used(), l.leases.pool.Used(); attempts != 0 || rows != 0 || len(l.queues.own.domains) != 0 {
				t.Errorf("%d attempts, %d rows and %d domains are left over", attempts, rows, len(l.queues.own.domains))
			}
		})
	})
}
