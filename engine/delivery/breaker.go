package delivery

import (
	"time"

	"github.com/lightweb/lightweb/db/instance"
)

const (
	openAfter     = 5 // failures in a row, within openWithin, that open the breaker
	openWithin    = 10 * time.Minute
	shortestRest  = time.Minute      // until one attempt probes the host, doubled each time
	longestRest   = 30 * time.Minute // at most
	inactiveAfter = 7 * day          // of failures, after which the host's deliveries are parked
	inactiveRest  = day              // between two probes of an inactive host
	rampStep      = 8                // answers of a host that is back, until one more attempt may be made at once
	deliveredNews = time.Hour        // precision with which the last answer is stored
)

// breaker decides whether a host may be sent anything, from how earlier attempts at it ended. It
// is open while the host is left alone: a delivery that waits for an open breaker spends no
// attempt.
type breaker struct {
	failures  int       // attempts since the host answered
	since     time.Time // the first of them
	failed    time.Time // the last
	why       string
	recent    []time.Time // the last openAfter at most
	delivered time.Time

	openUntil time.Time // nothing is sent before, because attempts failed
	probes    int       // attempts that found the host still away; from the first on, one is made at a time
	askedTill time.Time // nothing is sent before, because the host asked for that
	inactive  time.Time // since when the host's deliveries are parked; zero: they are not
	paused    bool      // by the operator
	ramp      int       // answers since the host was back, plus one; 0: no limit beyond the usual
}

// The states of a host, as metrics and the command line name them.
const (
	HostOK       = "ok"
	HostFailing  = "failing"   // some attempts failed, and more are made
	HostOpen     = "open"      // its breaker is open
	HostHalfOpen = "half_open" // one attempt at a time probes it
	HostInactive = "inactive"
	HostPaused   = "paused"
)

// HostState names the state that a host is in.
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

// isOpen reports whether nothing may be sent now.
func (b *breaker) isOpen(now time.Time) bool { return b.paused || b.closesAt().After(now) }

// closesAt returns when something may be sent, unless the operator has paused the host.
func (b *breaker) closesAt() time.Time {
	if b.askedTill.After(b.openUntil) {
		return b.askedTill
	}
	return b.openUntil
}

func (b *breaker) isInactive() bool { return !b.inactive.IsZero() }

// isAway reports whether the host is left alone until a probe finds it back.
func (b *breaker) isAway() bool { return b.probes > 0 || b.isInactive() }

// limitAttempts returns how many attempts, and how many of them retries, may be made at once when
// the usual limit is limit.
func (b *breaker) limitAttempts(limit int) (all, retries int) {
	switch {
	case b.isAway():
		return 1, 1
	case b.ramp > 0:
		limit = min(limit, 1+b.ramp/rampStep)
	}
	return limit, max(1, limit/2)
}

// recordAnswer closes the breaker, and reports whether the ledger has to know.
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

// recordFailure counts an attempt without an answer, or with one that only broken software gives,
// and reports whether the ledger has to know. An attempt that was under way when the breaker
// opened does not count.
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

// isKnown reports whether there is anything to remember of the host. A host that nobody has tried
// for so long that every delivery to it has ended is as unknown as any other.
func (b *breaker) isKnown(now time.Time) bool {
	switch {
	case b.failures > 0 || b.isAway():
		return b.isOpen(now) || now.Sub(b.failed) < longLifetime
	case b.ramp > 0:
		return b.isOpen(now) || now.Sub(b.delivered) < day
	}
	return b.isOpen(now) || now.Sub(b.delivered) < deliveredNews
}

// newBreaker returns the breaker of a host as it was stored.
func newBreaker(h instance.Host) breaker {
	return breaker{failures: h.Failures, since: timeAt(h.FailingSince), failed: timeAt(h.FailedAt), why: h.Failure,
		delivered: timeAt(h.DeliveredAt), openUntil: timeAt(h.ClosedUntil), probes: h.Probes, inactive: timeAt(h.InactiveAt),
		paused: h.PausedAt != nil}
}

// storedHost returns what is stored of the host with this name.
func (b *breaker) storedHost(name string) instance.Host {
	return instance.Host{Host: name, Failures: b.failures, FailingSince: timePointer(b.since), FailedAt: timePointer(b.failed), Failure: b.why,
		DeliveredAt: timePointer(b.delivered), ClosedUntil: timePointer(b.closesAt()), Probes: b.probes, InactiveAt: timePointer(b.inactive)}
}

// timeAt returns the time that t points to, the zero time for nil.
func timeAt(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// timePointer returns nil for the zero time.
func timePointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
