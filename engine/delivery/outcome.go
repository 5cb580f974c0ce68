package delivery

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
)

const (
	maxRefusals = 3               // attempts at an inbox that answers 4xx
	keysWait    = 5 * time.Minute // of a delivery whose signer's keys cannot be read
	pausedWait  = 5 * time.Minute // of a delivery while federation, or its host, is paused
)

// judgeAttempt returns what becomes of d after an attempt that had this answer, or this error in
// place of one.
func (b backoff) judgeAttempt(d db.Delivery, a transport.Attempt, err error, now time.Time) db.Outcome {
	o := db.Outcome{Delivery: d.ID, Status: db.DeliveryPending, Spent: true, HTTPStatus: a.Status, Headers: a.Headers,
		Answer: a.Excerpt, Location: a.Location, RetryAfter: a.RetryAfter, Latency: a.Took, BytesOut: a.BytesOut, BytesIn: a.BytesIn}
	if err != nil {
		b.judgeError(&o, d, err, now)
		return o
	}
	switch {
	case a.Status/100 == 2:
		o.Status, o.Location, o.RemoteID = db.DeliveryDelivered, "", a.Location
	case a.Status == http.StatusNotFound, a.Status == http.StatusGone:
		o.Status, o.Error = db.DeliverySkipped, "the inbox is gone"
	case a.Status == http.StatusTooManyRequests, a.Status == http.StatusRequestTimeout, a.Status/100 != 4:
		o.Error = "the host answered " + statusText(a.Status)
		b.retryLater(&o, d, a.RetryAfter, now)
	case d.Attempts+1 >= maxRefusals: // a clock, a key or a cache may have been wrong for a while, but not for ever
		o.Status, o.Error = db.DeliveryFailed, "the host refused it: "+statusText(a.Status)
	default:
		o.Error = "the host refused it: " + statusText(a.Status)
		b.retryLater(&o, d, a.RetryAfter, now)
	}
	return o
}

// judgeError completes the outcome of an attempt that had no answer.
func (b backoff) judgeError(o *db.Outcome, d db.Delivery, err error, now time.Time) {
	o.Error = err.Error()
	if errors.Is(err, transport.ErrPaused) { // by us: however long that lasts, nothing is lost by it
		o.Spent, o.NextAt = false, now.Add(pausedWait)
		return
	}
	switch fault.KindOf(err) {
	case fault.Forbidden: // by the gate or the guard, before anything was sent
		o.Status, o.Spent = db.DeliverySkipped, false
	case fault.Gone, fault.NotFound, fault.NoUser: // there is no such local inbox
		o.Status = db.DeliverySkipped
	case fault.Invalid: // no URL, or a body that the local inbox does not take: another try changes nothing
		o.Status = db.DeliveryFailed
	default:
		b.retryLater(o, d, 0, now)
	}
}

// statusText names a status, which may be one that nobody has given a name.
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprint(status, " ", http.StatusText(status)))
}

// retryLater sets when d is tried again, not before atLeast has passed; or that it is given up.
func (b backoff) retryLater(o *db.Outcome, d db.Delivery, atLeast time.Duration, now time.Time) {
	wait, again := b.nextWait(d, now)
	if !again {
		o.Status = db.DeliveryFailed
		return
	}
	o.NextAt = now.Add(max(wait, atLeast))
}

// parkDelivery returns the outcome of an attempt that was not made because the host is inactive.
func (b backoff) parkDelivery(d db.Delivery, since, now time.Time) db.Outcome {
	o := b.postponeDelivery(d, now, "the host has been inactive since "+since.UTC().Format(time.RFC3339), now)
	if o.Status == db.DeliveryPending {
		o.Status = db.DeliveryParked
	}
	return o
}

// postponeDelivery returns the outcome of an attempt that was not made: the delivery waits until
// then.
func (b backoff) postponeDelivery(d db.Delivery, until time.Time, why string, now time.Time) db.Outcome {
	o := db.Outcome{Delivery: d.ID, Status: db.DeliveryPending, NextAt: until, Error: why}
	if b.isTooOld(d, now) {
		o.Status = db.DeliveryFailed
	}
	return o
}
