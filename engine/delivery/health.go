package delivery

import (
	"time"

	"github.com/lightweb/lightweb/db"
)

const (
	breakAfter    = 5 // failures in a row, within breakWithin, after which a host is left alone
	breakWithin   = 10 * time.Minute
	shortestRest  = time.Minute      // until one attempt finds out whether it is back, doubled each time
	longestRest   = 30 * time.Minute // at most
	inactiveAfter = 7 * day          // of failures, after which its deliveries are parked
	inactiveRest  = day              // until one of them finds out whether it is back
	rampStep      = 8                // attempts that get through to a host that is back, until one more may be made at once
	deliveredNews = time.Hour        // how exactly it is remembered when something last got through
)

// health is what delivering to a host taught of it. Whoever holds back deliveries spends no attempt on them.
type health struct {
	failures  int       // attempts since something got through to it
	since     time.Time // the first of them
	failed    time.Time // the last
	why       string
	recent    []time.Time // the last breakAfter at most
	delivered time.Time

	closed   time.Time // nothing goes there before
	probes   int       // attempts that found it closed still; from the first on, one is made at a time
	asked    time.Time // nor before, because it asked for that
	inactive time.Time // since when its deliveries are parked; zero: they are not
	paused   bool      // by the operator
	ramp     int       // attempts that got through since it was back, plus one; 0: all that may be made are
}

// The states of a host, as metrics and the command line name them.
const (
	HostOK       = "ok"
	HostFailing  = "failing"   // some attempts failed, and more are made
	HostOpen     = "open"      // the breaker is: it is left alone for a while
	HostHalfOpen = "half_open" // one attempt at a time finds out whether it is back
	HostInactive = "inactive"
	HostPaused   = "paused"
)

// HostState names the state that a host is in.
func HostState(stored db.Host, now time.Time) string {
	h := healthOf(stored)
	return h.state(now)
}

func (h *health) state(now time.Time) string {
	switch {
	case h.paused:
		return HostPaused
	case !h.inactive.IsZero():
		return HostInactive
	case h.rests(now):
		return HostOpen
	case h.probes > 0:
		return HostHalfOpen
	case h.failures > 0:
		return HostFailing
	}
	return HostOK
}

// rests tells whether nothing may be sent now.
func (h *health) rests(now time.Time) bool { return h.paused || h.until().After(now) }

// until returns when something may be sent, unless the operator holds it back.
func (h *health) until() time.Time {
	if h.asked.After(h.closed) {
		return h.asked
	}
	return h.closed
}

// away tells whether it is left alone until an attempt shows that it is back.
func (h *health) away() bool { return h.probes > 0 || !h.inactive.IsZero() }

// parks tells whether deliveries are parked rather than queued: all but one when it is time for that.
func (h *health) parks(now time.Time, queued int) bool {
	return !h.inactive.IsZero() && (h.rests(now) || queued > 0)
}

// slots returns how many attempts, and how many retries, may be made at once of those that are allowed.
func (h *health) slots(limit int) (all, retries int) {
	switch {
	case h.away():
		return 1, 1
	case h.ramp > 0:
		limit = min(limit, 1+h.ramp/rampStep)
	}
	return limit, max(1, limit/2)
}

// through takes in that the host answered, and tells whether that is worth remembering.
func (h *health) through(limit int, now time.Time) (news bool) {
	news = h.failures > 0 || h.away() || now.Sub(h.delivered) >= deliveredNews
	switch {
	case h.away():
		h.ramp = 1
	case h.ramp > 0:
		if h.ramp++; 1+h.ramp/rampStep >= limit {
			h.ramp = 0
		}
	}
	if news {
		h.delivered = now
	}
	h.failures, h.since, h.failed, h.why, h.recent = 0, time.Time{}, time.Time{}, "", nil
	h.closed, h.probes, h.inactive = time.Time{}, 0, time.Time{}
	return news
}

// lost takes in that an attempt had no answer, or none that the software behind the host gave. One that was under way when
// the host was closed is no news.
func (h *health) lost(why string, now time.Time) (news bool) {
	if h.closed.After(now) {
		return false
	}
	if h.failures++; h.failures == 1 {
		h.since = now
	}
	h.failed, h.why = now, why
	if h.recent = append(h.recent, now); len(h.recent) > breakAfter {
		h.recent = h.recent[1:]
	}
	switch {
	case h.failures >= breakAfter && now.Sub(h.since) >= inactiveAfter:
		if h.inactive.IsZero() {
			h.inactive = now
		}
		h.closed = now.Add(spread(inactiveRest))
	case h.probes > 0 || len(h.recent) == breakAfter && now.Sub(h.recent[0]) <= breakWithin:
		h.closed = now.Add(spread(min(longestRest, shortestRest<<min(h.probes, 10))))
		h.probes++
	}
	return true
}

// remembered tells whether there is anything to remember. What nobody has tried for so long that everything owed has ended
// is as unknown as any other.
func (h *health) remembered(now time.Time) bool {
	switch {
	case h.failures > 0 || h.away():
		return h.rests(now) || now.Sub(h.failed) < longLifetime
	case h.ramp > 0:
		return h.rests(now) || now.Sub(h.delivered) < day
	}
	return h.rests(now) || now.Sub(h.delivered) < deliveredNews
}

func healthOf(h db.Host) health {
	return health{failures: h.Failures, since: at(h.FailingSince), failed: at(h.FailedAt), why: h.Failure, delivered: at(h.DeliveredAt),
		closed: at(h.ClosedUntil), probes: h.Probes, inactive: at(h.InactiveAt), paused: h.PausedAt != nil}
}

func (h *health) stored(name string) db.Host {
	return db.Host{Host: name, Failures: h.failures, FailingSince: pointer(h.since), FailedAt: pointer(h.failed), Failure: h.why, DeliveredAt: pointer(h.delivered),
		ClosedUntil: pointer(h.until()), Probes: h.probes, InactiveAt: pointer(h.inactive)}
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func pointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
