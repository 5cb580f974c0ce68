package delivery

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
)

const (
	// maxRefusals is the number of the first attempt at which a 4xx answer makes a delivery
	// fail. 404, 410 and 501 end a delivery at any attempt. 408 and 429 do not count as refusals.
	maxRefusals = 3
	keysWait    = 5 * time.Minute // the wait of a delivery whose signer's keys cannot be read
	pausedWait  = 5 * time.Minute // the wait of a delivery while federation, or its host, is paused

	// shortestRecovery and longestRecovery are the bounds of the wait after an attempt that failed
	// because of an outage of this server.
	shortestRecovery = 5 * time.Second
	longestRecovery  = time.Minute
)

// judgeAttempt returns the outcome of an attempt at d, which ended with the answer a or with the
// error err.
func (b backoff) judgeAttempt(d user.Delivery, a transport.Attempt, err error, now time.Time) user.Outcome {
	o := user.Outcome{Delivery: d.ID, Status: user.DeliveryPending, Spent: true, HTTPStatus: a.Status, Headers: a.Headers,
		Answer: a.Excerpt, Location: a.Location, RetryAfter: a.RetryAfter, Latency: a.Took, BytesOut: a.BytesOut, BytesIn: a.BytesIn}
	if err != nil {
		b.judgeError(&o, d, err, now)
		return o
	}
	switch {
	case a.Status/100 == 2:
		o.Status, o.Location, o.RemoteID = user.DeliveryDelivered, "", a.Location
	case a.Status == http.StatusNotFound, a.Status == http.StatusGone:
		o.Status, o.Error = user.DeliverySkipped, "the inbox is gone"
	// Castopod answers so to a type that it does not do, such as a post that is no answer.
	case a.Status == http.StatusNotImplemented:
		o.Status, o.Error = user.DeliveryFailed, "the host does not do that: "+statusText(a.Status)
	case a.Status == http.StatusTooManyRequests, a.Status == http.StatusRequestTimeout, a.Status/100 != 4:
		o.Error = "the host answered " + statusText(a.Status)
		b.retryLater(&o, d, a.RetryAfter, now)
	// A clock, a key or a cache that is wrong for a while can cause refusals, but not so many.
	case d.Attempts+1 >= maxRefusals:
		o.Status, o.Error = user.DeliveryFailed, "the host refused it: "+statusText(a.Status)
	default:
		o.Error = "the host refused it: " + statusText(a.Status)
		b.retryLater(&o, d, a.RetryAfter, now)
	}
	return o
}

// judgeError completes the outcome of an attempt that got no answer.
func (b backoff) judgeError(o *user.Outcome, d user.Delivery, err error, now time.Time) {
	o.Error = err.Error()
	// This server is paused. The attempt does not count, so that no pause can end the delivery.
	if errors.Is(err, transport.ErrPaused) {
		o.Spent, o.NextAt = false, now.Add(pausedWait)
		return
	}
	if errors.Is(err, transport.ErrHalted) {
		*o = b.awaitRecovery(d, err, now)
		return
	}
	switch fault.KindOf(err) {
	case fault.Forbidden: // refused by the gate or the guard, before anything was sent
		o.Status, o.Spent = user.DeliverySkipped, false
	case fault.Gone, fault.NotFound, fault.NoUser: // there is no such local inbox
		o.Status = user.DeliverySkipped
	case fault.Invalid: // no URL, or a local inbox that refuses the body; a retry would not help
		o.Status = user.DeliveryFailed
	default:
		b.retryLater(o, d, 0, now)
	}
}

// isOwnOutage reports whether a hand-over to a user of this server failed because this server
// cannot take the activity now. A failure to reach another server, of which the activity names
// something, does not count. Neither does a bug, because it may fail each attempt. ErrPaused has a
// wait of its own (see judgeError).
func isOwnOutage(err error) bool {
	if errors.Is(err, transport.ErrPaused) || fault.KindOf(err) == fault.Internal {
		return false
	}
	return fault.IsOurs(err) || fault.IsPassing(err) && fault.Of(err).RetryAfter > 0
}

// awaitRecovery returns the outcome of an attempt that failed because of err, which is an outage of
// this server. The attempt does not count, so that only an outage of eight days ends the delivery
// (see postponeDelivery). The waits are short, because nothing wakes the delivery when the outage
// is over. They grow with the age of the delivery, so that a long outage costs few attempts.
func (b backoff) awaitRecovery(d user.Delivery, err error, now time.Time) user.Outcome {
	wait := min(max(now.Sub(d.Created)/4, shortestRecovery), longestRecovery)
	if e := fault.Of(err); e != nil {
		wait = max(wait, e.RetryAfter)
	}
	return b.postponeDelivery(d, now.Add(spreadWait(wait)), err.Error(), now)
}

// statusText returns a status code with its name, if it has one.
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprint(status, " ", http.StatusText(status)))
}

// retryLater sets the time at which d is tried again. The wait until then is the wait of the
// backoff, or atLeast if that is longer. If no retry is left, d fails.
func (b backoff) retryLater(o *user.Outcome, d user.Delivery, atLeast time.Duration, now time.Time) {
	wait, again := b.nextWait(d, now)
	if !again {
		o.Status = user.DeliveryFailed
		return
	}
	o.NextAt = now.Add(max(wait, atLeast))
}

// parkDelivery returns the outcome of a delivery at which no attempt was made, because the host is
// inactive. The parameter since is the time from which the host has been inactive.
func (b backoff) parkDelivery(d user.Delivery, since, now time.Time) user.Outcome {
	o := b.postponeDelivery(d, now, "the host has been inactive since "+since.UTC().Format(time.RFC3339), now)
	if o.Status == user.DeliveryPending {
		o.Status = user.DeliveryParked
	}
	return o
}

// postponeDelivery returns the outcome of a delivery at which no attempt was made. The delivery
// waits until the time in the parameter until, or fails if it is too old. The parameter why is the
// reason.
func (b backoff) postponeDelivery(d user.Delivery, until time.Time, why string, now time.Time) user.Outcome {
	o := user.Outcome{Delivery: d.ID, Status: user.DeliveryPending, NextAt: until, Error: why}
	if b.isTooOld(d, now) {
		o.Status = user.DeliveryFailed
	}
	return o
}
