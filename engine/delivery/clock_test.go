package delivery

import (
	"github.com/lightweb/lightweb/db/user"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// While attempts are due, the clock is set forward by an hour, then back by two hours, then right
// again. No attempt is skipped, and no host gets more attempts than planned. No wait is wrong by
// more than the clock was.
func TestAClockThatIsSetSkipsAndHammersNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays days or weeks, and other tests their first minutes")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(500))
		var ahead atomic.Int64
		b.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())).Round(0) } // Round strips the monotonic clock, so b sees the wall clock that the test sets
		place := b.m.add("Create", "p.example", 1, 0)
		b.run(t)
		began := time.Now()
		for _, step := range []time.Duration{time.Hour, -2 * time.Hour, time.Hour} {
			time.Sleep(20 * time.Minute)
			ahead.Add(int64(step))
		}
		time.Sleep(8 * day)
		synctest.Wait()
		want := []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour, day}
		posts := b.peers.all()
		if len(posts) != len(want)+1 {
			t.Fatalf("%d attempts within %v, want %d", len(posts), time.Since(began), len(want)+1)
		}
		for i, w := range want {
			got := posts[i+1].at.Sub(posts[i].at)
			if got < w*9/10-2*time.Hour || got > w*11/10+2*time.Hour {
				t.Errorf("wait %d = %v, want %v give or take what the clock was set", i+1, got, w)
			}
		}
		if r := b.m.row(place); r.status != user.DeliveryFailed || r.Attempts != 7 {
			t.Errorf("delivery is %s after %d attempts, want failed after 7", r.status, r.Attempts)
		}
	})
}
