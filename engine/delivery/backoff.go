package delivery

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
)

const (
	day = 24 * time.Hour

	lifetime     = 8 * day  // of a delivery that never gets through
	longLifetime = 30 * day // of a lasting one
	jitter       = 0.1
)

// waits are the times between the attempts at a delivery.
var waits = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour, day}

// Backoff returns how long to wait after so many attempts that failed, and whether to try again at
// all.
func Backoff(attempt int) (wait time.Duration, again bool) {
	if attempt < 1 || attempt > len(waits) {
		return 0, false
	}
	return waits[attempt-1], true
}

// backoff decides when a delivery is tried again. One of a lasting type, which takes something
// back, is tried for longer than others, daily at the end: while it is owed, a host shows a post
// that its author wants gone.
type backoff struct {
	lasting []string // types
}

// nextWait returns how long d waits after one more attempt that failed, and whether it is tried
// again at all.
func (b backoff) nextWait(d db.Delivery, now time.Time) (wait time.Duration, again bool) {
	wait, again = Backoff(d.Attempts + 1)
	if !again && b.isLasting(d) {
		wait, again = day, true
	}
	return spreadWait(wait), again && !b.isTooOld(d, now)
}

// isTooOld reports whether d has been owed for too long.
func (b backoff) isTooOld(d db.Delivery, now time.Time) bool {
	life := lifetime
	if b.isLasting(d) {
		life = longLifetime
	}
	return now.Sub(d.Created) >= life
}

func (b backoff) isLasting(d db.Delivery) bool { return slices.Contains(b.lasting, d.Type) }

// spreadWait returns wait give or take a tenth: deliveries that failed together do not come back
// together.
func spreadWait(wait time.Duration) time.Duration {
	return time.Duration(float64(wait) * (1 - jitter + 2*jitter*rand.Float64()))
}
