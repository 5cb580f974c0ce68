package delivery

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
)

const (
	day = 24 * time.Hour

	lifetime      = 8 * day  // of a delivery that never gets through
	longLifetime  = 30 * day // of one that takes something back
	maxRefusals   = 3        // attempts at an inbox that answers 4xx
	keysWait      = 5 * time.Minute
	pausedWait    = 5 * time.Minute
	jitter        = 0.1
	deliveryLease = 90 * time.Second
)

// waits are the times between the attempts at a delivery.
var waits = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour, day}

// Backoff returns how long to wait after so many attempts that failed, and whether to try again at all.
func Backoff(attempt int) (wait time.Duration, again bool) {
	if attempt < 1 || attempt > len(waits) {
		return 0, false
	}
	return waits[attempt-1], true
}

// lasting are the types that take something back. While one is owed, a host shows what its author wants gone, so it is
// tried for longer than others, daily at the end.
var lasting = map[string]bool{"Delete": true, "Undo": true, "Move": true}

// lapsed tells whether d has been owed for too long.
func lapsed(d db.Delivery, now time.Time) bool {
	life := lifetime
	if lasting[d.Type] {
		life = longLifetime
	}
	return now.Sub(d.Created) >= life
}

// judge says what becomes of d after an attempt that had this answer, or this error in place of one.
func judge(d db.Delivery, a transport.Attempt, err error, now time.Time) db.Outcome {
	o := db.Outcome{Delivery: d.ID, Status: db.DeliveryPending, Spent: true, HTTPStatus: a.Status, Headers: a.Headers, Answer: a.Excerpt,
		Location: a.Location, RetryAfter: a.RetryAfter, Latency: a.Took, BytesOut: a.BytesOut, BytesIn: a.BytesIn}
	if err != nil {
		o.Error = err.Error()
		if errors.Is(err, transport.ErrPaused) { // by us: however long that lasts, nothing is lost by it
			o.Spent, o.NextAt = false, now.Add(pausedWait)
			return o
		}
		switch fault.KindOf(err) {
		case fault.Forbidden: // by the gate or the guard, before anything was sent
			o.Status, o.Spent = db.DeliverySkipped, false
		case fault.Gone, fault.NotFound, fault.NoUser: // there is no such local inbox
			o.Status = db.DeliverySkipped
		case fault.Invalid: // no URL, or a body that the local inbox does not take: another try changes nothing
			o.Status = db.DeliveryFailed
		default:
			retry(&o, d, 0, now)
		}
		return o
	}
	switch {
	case a.Status/100 == 2:
		o.Status, o.Location, o.RemoteID = db.DeliveryDelivered, "", a.Location
	case a.Status == http.StatusNotFound, a.Status == http.StatusGone:
		o.Status, o.Error = db.DeliverySkipped, "the inbox is gone"
	case a.Status == http.StatusTooManyRequests, a.Status == http.StatusRequestTimeout, a.Status/100 != 4:
		o.Error = "the host answered " + spell(a.Status)
		retry(&o, d, a.RetryAfter, now)
	case d.Attempts+1 >= maxRefusals: // a clock, a key or a cache may have been wrong for a while, but not for ever
		o.Status, o.Error = db.DeliveryFailed, "the host refused it: "+spell(a.Status)
	default:
		o.Error = "the host refused it: " + spell(a.Status)
		retry(&o, d, a.RetryAfter, now)
	}
	return o
}

// spell names a status, which may be one that nobody has given a name.
func spell(status int) string {
	return strings.TrimSpace(fmt.Sprint(status, " ", http.StatusText(status)))
}

// retry sets when d is tried again, not before atLeast has passed; or that it is given up.
func retry(o *db.Outcome, d db.Delivery, atLeast time.Duration, now time.Time) {
	wait, again := Backoff(d.Attempts + 1)
	if !again && lasting[d.Type] {
		wait, again = day, true
	}
	if !again || lapsed(d, now) {
		o.Status = db.DeliveryFailed
		return
	}
	o.NextAt = now.Add(max(spread(wait), atLeast))
}

// spread returns d give or take a tenth, so that what failed together does not come back together.
func spread(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - jitter + 2*jitter*rand.Float64()))
}

// parked returns the outcome of an attempt that was not made at a host that is inactive.
func parked(d db.Delivery, since, now time.Time) db.Outcome {
	o := put(d, now, "the host has been inactive since "+since.UTC().Format(time.RFC3339), now)
	if o.Status == db.DeliveryPending {
		o.Status = db.DeliveryParked
	}
	return o
}

// put returns the outcome of an attempt that was not made: the delivery waits until then.
func put(d db.Delivery, until time.Time, why string, now time.Time) db.Outcome {
	o := db.Outcome{Delivery: d.ID, Status: db.DeliveryPending, NextAt: until, Error: why}
	if lapsed(d, now) {
		o.Status = db.DeliveryFailed
	}
	return o
}
