package delivery

import (
	"time"

	"github.com/lightweb/lightweb/db/instance"
)

const (
	openAfter     = 5 // consecutive failures within openWithin that open the breaker
	openWithin    = 10 * time.Minute
	shortestRest  = time.Minute      // the wait before one attempt probes the host, doubled after each failed probe
	longestRest   = 30 * time.Minute // the longest such wait
	inactiveAfter = 7 * day          // attempts must fail for so long before the host's deliveries are parked
	inactiveRest  = day              // the time between two probes of an inactive host
	// rampStep is the number of answers after which a host that is back gets one more attempt
	// at the same time.
	rampStep = 8
	// deliveredNews is the least age of the stored time of the last answer at which a newer
	// time is stored.
	deliveredNews = time.Hour
)

// breaker decides whether anything may be sent to a host, from the results of earlier attempts.
// While it is open, nothing is sent, and a delivery that waits for it uses up no attempt.
type breaker struct {
	failures  int       // attempts that recordFailure has counted since the host's last answer
	since     time.Time // time of the first of these failures
	failed    time.Time // time of the last of these failures
	why       string
	recent    []time.Time // times of the last failures; it has at most openAfter entries
	delivered time.Time

	openUntil time.Time // nothing is sent before this time, because attempts failed
	probes    int       // how often the breaker opened since the last answer; when above 0, one attempt is made at a time
	askedTill time.Time // nothing is sent before this time, because the host asked for that
	inactive  time.Time // since when the host's deliveries are parked; zero if they are not
	paused    bool      // the operator has paused the host
	ramp      int       // one plus the number of answers since the host came back; 0 if only the usual limit holds
}

// The states of a host, as metrics and the command line name them.
const (
	HostOK       = "ok"
	HostFailing  = "failing"   // some attempts failed, but its breaker is closed
	HostOpen     = "open"      // its breaker is open
	HostHalfOpen = "half_open" // one attempt at a time probes it
	HostInactive = "inactive"
	HostPaused   = "paused"
)

// HostState returns the name of the state of a stored host.
func HostState(stored instance.Host, now time.Time) string {
	b := newBreaker(stored)
	return b.stateName(now)
}

func (b *breaker) stateName(now time.Time) string {
	switch {
	case b.paused:
		return HostPaused
	case b.isInactive():
		return HostInactive
	case b.isOpen(now):
		return HostOpen
	case b.probes > 0:
		return HostHalfOpen
	case b.failures > 0:
		return HostFailing
	}
	return HostOK
}

// isOpen reports whether nothing may be sent to the host now.
func (b *breaker) isOpen(now time.Time) bool { return b.paused || b.closesAt().After(now) }

// closesAt returns the time from which deliveries may be sent to the host again, unless the
// operator has paused the host.
func (b *breaker) closesAt() time.Time {
	if b.askedTill.After(b.openUntil) {
		return b.askedTill
	}
	return b.openUntil
}

func (b *breaker) isInactive() bool { return !b.inactive.IsZero() }

// isAway reports whether the host is considered unavailable until it answers a probe.
func (b *breaker) isAway() bool { return b.probes > 0 || b.isInactive() }

// limitAttempts returns how many attempts may be made at the same time, and how many of them may
// be retries. The parameter limit is the usual limit of attempts.
func (b *breaker) limitAttempts(limit int) (all, retries int) {
	switch {
	case b.isAway():
		return 1, 1
	case b.ramp > 0:
		limit = min(limit, 1+b.ramp/rampStep)
	}
	return limit, max(1, limit/2)
}

// recordAnswer closes the breaker, and reports whether the change must be written to the ledger.
func (b *breaker) recordAnswer(limit int, now time.Time) (isNews bool) {
	isNews = b.failures > 0 || b.isAway() || now.Sub(b.delivered) >= deliveredNews
	switch {
	case b.isAway():
		b.ramp = 1
	case b.ramp > 0:
		if b.ramp++; 1+b.ramp/rampStep >= limit {
			b.ramp = 0
		}
	}
	if isNews {
		b.delivered = now
	}
	b.failures, b.since, b.failed, b.why, b.recent = 0, time.Time{}, time.Time{}, "", nil
	b.openUntil, b.probes, b.inactive = time.Time{}, 0, time.Time{}
	return isNews
}

// recordFailure counts an attempt that got no answer, or a 5xx answer other than 501. It
// reports whether the change must be written to the ledger. An attempt that ends before openUntil
// does not count, because it began before earlier failures opened the breaker.
func (b *breaker) recordFailure(why string, now time.Time) (isNews bool) {
	if b.openUntil.After(now) {
		return false
	}
	if b.failures++; b.failures == 1 {
		b.since = now
	}
	b.failed, b.why = now, why
	if b.recent = append(b.recent, now); len(b.recent) > openAfter {
		b.recent = b.recent[1:]
	}
	switch {
	case b.failures >= openAfter && now.Sub(b.since) >= inactiveAfter:
		if !b.isInactive() {
			b.inactive = now
		}
		b.openUntil = now.Add(spreadWait(inactiveRest))
	case b.probes > 0 || len(b.recent) == openAfter && now.Sub(b.recent[0]) <= openWithin:
		b.openUntil = now.Add(spreadWait(min(longestRest, shortestRest<<min(b.probes, 10))))
		b.probes++
	}
	return true
}

// isKnown reports whether anything about the host must be remembered. A failure is remembered
// until every delivery that was open at the time of the failure has ended. An answer is remembered
// for a shorter time.
func (b *breaker) isKnown(now time.Time) bool {
	switch {
	case b.failures > 0 || b.isAway():
		return b.isOpen(now) || now.Sub(b.failed) < longLifetime
	case b.ramp > 0:
		return b.isOpen(now) || now.Sub(b.delivered) < day
	}
	return b.isOpen(now) || now.Sub(b.delivered) < deliveredNews
}

// newBreaker returns the breaker of a stored host.
func newBreaker(h instance.Host) breaker {
	return breaker{failures: h.Failures, since: timeAt(h.FailingSince), failed: timeAt(h.FailedAt), why: h.Failure,
		delivered: timeAt(h.DeliveredAt), openUntil: timeAt(h.ClosedUntil), probes: h.Probes, inactive: timeAt(h.InactiveAt),
		paused: h.PausedAt != nil}
}

// storedHost returns the row that stores b for the host in the parameter name.
func (b *breaker) storedHost(name string) instance.Host {
	return instance.Host{Host: name, Failures: b.failures, FailingSince: timePointer(b.since), FailedAt: timePointer(b.failed), Failure: b.why,
		DeliveredAt: timePointer(b.delivered), ClosedUntil: timePointer(b.closesAt()), Probes: b.probes, InactiveAt: timePointer(b.inactive)}
}

// timeAt returns the time that t points to, or the zero time if t is nil.
func timeAt(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// timePointer returns a pointer to a copy of t, or nil if t is the zero time.
func timePointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
