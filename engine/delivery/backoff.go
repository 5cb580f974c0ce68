package delivery

import (
	"math/rand/v2"
	"time"

	"github.com/lightweb/lightweb/db"
)

const (
	day = 24 * time.Hour

	lifetime     = 8 * day  // of a delivery that never gets through
	longLifetime = 30 * day // of a retraction
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

// retractions are the types that take something back. While one is owed, a host shows a post that
// its author wants gone: it is tried for longer than others, daily at the end.
var retractions = map[string]bool{"Delete": true, "Undo": true, "Move": true}

// nextWait returns how long d waits after one more attempt that failed, and whether it is tried
// again at all.
func nextWait(d db.Delivery, now time.Time) (wait time.Duration, again bool) {
	wait, again = Backoff(d.Attempts + 1)
	if !again && retractions[d.Type] {
		wait, again = day, true
	}
	return spreadWait(wait), again && !isTooOld(d, now)
}

// isTooOld reports whether d has been owed for too long.
func isTooOld(d db.Delivery, now time.Time) bool {
	life := lifetime
	if retractions[d.Type] {
		life = longLifetime
	}
	return now.Sub(d.Created) >= life
}

// spreadWait returns wait give or take a tenth: deliveries that failed together do not come back
// together.
func spreadWait(wait time.Duration) time.Duration {
	return time.Duration(float64(wait) * (1 - jitter + 2*jitter*rand.Float64()))
}
