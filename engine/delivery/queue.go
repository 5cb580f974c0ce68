package delivery

import (
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxQueued          = 256 // a host with so many own deliveries in its queue is left out of claims
	maxQueuedForwarded = 64  // with so many forwarded deliveries queued, a host gets only own ones
	localConcurrency   = 16  // attempts at the same time at inboxes of this server
)

// hostQueue is the queue of one host, behind the host's breaker. The name "" stands for this
// server.
type hostQueue struct {
	breaker
	name               string
	domain             string // the registrable domain, to which its attempts and leases are charged; empty for this server
	limit              int    // attempts at the same time
	fresh, retries     []*row // deliveries before their first attempt and after it, in the order of claiming
	forwarded          []*row // attempted when none of the users' own can be attempted
	inflight, retrying int
	forwarding         int                // attempts in flight at forwarded deliveries
	listed             map[*rotation]bool // the rotations that contain it
}

// row is a delivery that this process has leased.
type row struct {
	user.Delivery
	user   vocab.Username
	domain string
	until  time.Time // the end of the lease
}

func (h *hostQueue) push(r *row) {
	switch {
	case r.Forwarded:
		h.forwarded = append(h.forwarded, r)
	case r.Attempts == 0:
		h.fresh = append(h.fresh, r)
	default:
		h.retries = append(h.retries, r)
	}
}

func (h *hostQueue) waiting() int { return len(h.fresh) + len(h.retries) + len(h.forwarded) }

// isCrowded reports whether no more forwarded deliveries may be claimed for h.
func (h *hostQueue) isCrowded() bool { return len(h.forwarded) >= maxQueuedForwarded }

// isRefusing reports whether no deliveries may be claimed for h.
func (h *hostQueue) isRefusing(now time.Time) bool {
	return len(h.fresh)+len(h.retries) >= maxQueued || !h.isInactive() && h.isOpen(now) || h.paused
}

// isParking reports whether a claimed delivery must be parked. All deliveries to an inactive host
// are parked, except one that probes the host.
func (h *hostQueue) isParking(now time.Time) bool {
	return h.isInactive() && (h.isOpen(now) || h.waiting()+h.inflight > 0)
}

// isIdle reports whether nothing about h has to be remembered.
func (h *hostQueue) isIdle(now time.Time) bool {
	return h.waiting() == 0 && h.inflight == 0 && !h.isKnown(now)
}

// line returns the queue whose first delivery may be attempted now, or nil if there is none.
func (h *hostQueue) line() *[]*row {
	all, retries := h.limitAttempts(h.limit)
	switch mayRetry := h.retrying < retries; {
	case h.inflight >= all:
		return nil
	case len(h.retries) > 0 && mayRetry:
		return &h.retries
	case len(h.fresh) > 0:
		return &h.fresh
	case len(h.forwarded) > 0 && h.forwarding < max(1, all/2) && (mayRetry || h.forwarded[0].Attempts == 0):
		return &h.forwarded
	}
	return nil
}

// beginAttempt removes the next delivery from its queue and returns it. It returns nil if no
// attempt may begin.
func (h *hostQueue) beginAttempt() *row {
	line := h.line()
	if line == nil {
		return nil
	}
	r := (*line)[0]
	(*line)[0] = nil
	*line = (*line)[1:]
	h.countAttempt(r, 1)
	return r
}

func (h *hostQueue) endAttempt(r *row) { h.countAttempt(r, -1) }

func (h *hostQueue) countAttempt(r *row, n int) {
	h.inflight += n
	if r.Attempts > 0 {
		h.retrying += n
	}
	if r.Forwarded {
		h.forwarding += n
	}
}

// removeAll empties the queue, and returns its deliveries.
func (h *hostQueue) removeAll() []*row {
	all := slices.Concat(h.fresh, h.retries, h.forwarded)
	h.fresh, h.retries, h.forwarded = nil, nil, nil
	return all
}

// recordReaction records what an attempt shows about the state of the host, and reports whether
// the change must be written to the ledger.
func (h *hostQueue) recordReaction(res result, now time.Time) (isNews bool) {
	if h.name == "" {
		return false
	}
	switch res.reaction {
	case answered:
		return h.recordAnswer(h.limit, now)
	case silent:
		return h.recordFailure(res.outcome.Error, now)
	case deferring:
		h.askedTill = now.Add(res.pause)
		return true
	}
	return false
}
