package delivery

import (
	"github.com/lightweb/lightweb/db/user"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	day = 24 * time.Hour

	lifetime     = 8 * day  // of a delivery that never succeeds
	longLifetime = 30 * day // of a delivery of a lasting type
	jitter       = 0.1
)

// waits are the times between the attempts at a delivery.
var waits = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour, day}

// Backoff returns how long to wait after the given number of failed attempts, and whether to try
// again at all.
func Backoff(attempt int) (wait time.Duration, again bool) {
	if attempt < 1 || attempt > len(waits) {
		return 0, false
	}
	return waits[attempt-1], true
}

// backoff decides when a delivery is tried again. A delivery of a lasting type takes something
// back. It is tried for longer than other deliveries, in the end daily, because until it arrives,
// the host shows a post that the author has withdrawn.
type backoff struct {
	lasting []string // the lasting types of activities
}

// nextWait returns how long d waits after one more failed attempt, and whether it is tried again
// at all.
func (b backoff) nextWait(d user.Delivery, now time.Time) (wait time.Duration, again bool) {
	wait, again = Backoff(d.Attempts + 1)
	if !again && b.isLasting(d) {
		wait, again = day, true
	}
	return spreadWait(wait), again && !b.isTooOld(d, now)
}

// isTooOld reports whether d has reached the end of its lifetime.
func (b backoff) isTooOld(d user.Delivery, now time.Time) bool {
	life := lifetime
	if b.isLasting(d) {
		life = longLifetime
	}
	return now.Sub(d.Created) >= life
}

func (b backoff) isLasting(d user.Delivery) bool { return slices.Contains(b.lasting, d.Type) }

// spreadWait returns wait, changed at random by up to a tenth, so that deliveries that failed
// together are not retried together.
func spreadWait(wait time.Duration) time.Duration {
	return time.Duration(float64(wait) * (1 - jitter + 2*jitter*rand.Float64()))
}
