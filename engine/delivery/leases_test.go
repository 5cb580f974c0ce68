package delivery

import (
	"fmt"
	"github.com/lightweb/lightweb/db/user"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

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
		b.Committed(t.Context(), user.Commit{User: alice, Owes: true, Leased: []user.Delivery{b.m.rows[place].Delivery}, LeasedUntil: l.Until})
		synctest.Wait()
		if n := b.peers.count("p.example"); n != 1 || b.m.row(place).status != user.DeliveryDelivered {
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

// Even if all deliveries of a job go to one domain, two leases in advance leave room for other
// domains. The next lease excludes the domain.
func TestNoJobIsLeasedEverything(t *testing.T) {
	t.Parallel()
	l, now := newLoop(&newBench(t, nil).Deps), time.Now()
	for round, want := range []int{6144, 768} {
		got := l.leaseInAdvance(now)
		if got.Most != want {
			t.Errorf("lease %d is of %d deliveries, want %d", round, got.Most, want)
		}
		var rows []user.Delivery
		for range got.Most {
			rows = append(rows, user.Delivery{ID: int64(len(rows) + 1 + round*10_000), Host: fmt.Sprintf("h%d.evil.example", len(rows))})
		}
		l.queueRows(alice, rows, now, got.Until)
	}
	if got := l.leaseInAdvance(now); len(got.Except) != 1 || got.Except[0] != "*.evil.example" {
		t.Errorf("the next lease leaves out %v, want the domain", got.Except)
	}
}
