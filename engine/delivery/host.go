package delivery

import (
	"slices"
	"time"
)

const (
	full             = 256 // deliveries waiting for a host, from which on no more are claimed for it
	fullForwarded    = 64  // of them of what others said
	localConcurrency = 16  // attempts at once at inboxes of this server
)

// host is the queue of one host, "" being this server, with what was learnt of it.
type host struct {
	health
	name               string
	domain             string // registrable, which its attempts and rows are counted for; empty for this server
	limit              int
	fresh, retries     []*row // first attempts and later ones, in the order of claiming
	forwarded          []*row // of what others said: attempted when nothing of users' own can be
	inflight, retrying int
	forwarding         int                // of those in flight, of what others said
	listed             map[*rotation]bool // in which rounds of hosts that may start an attempt
	waiters            map[*user]bool     // whose deliveries wait until it is no longer left alone
}

func (h *host) push(r *row) {
	switch {
	case r.Forwarded:
		h.forwarded = append(h.forwarded, r)
	case r.Attempts == 0:
		h.fresh = append(h.fresh, r)
	default:
		h.retries = append(h.retries, r)
	}
}

func (h *host) waiting() int { return len(h.fresh) + len(h.retries) + len(h.forwarded) }

// crowded tells whether no more of what others said may be claimed for h.
func (h *host) crowded() bool { return len(h.forwarded) >= fullForwarded }

// refuses tells whether no more may be claimed for h.
func (h *host) refuses(now time.Time) bool {
	return len(h.fresh)+len(h.retries) >= full || h.inactive.IsZero() && h.rests(now) || h.paused
}

// idle tells whether nothing has to be remembered of h.
func (h *host) idle(now time.Time) bool {
	return h.waiting() == 0 && h.inflight == 0 && !h.remembered(now)
}

// ready returns the queue whose first delivery may be attempted, nil when none may.
func (h *host) ready() *[]*row {
	all, retries := h.slots(h.limit)
	switch again := h.retrying < retries; {
	case h.inflight >= all:
		return nil
	case len(h.retries) > 0 && again:
		return &h.retries
	case len(h.fresh) > 0:
		return &h.fresh
	case len(h.forwarded) > 0 && h.forwarding < max(1, all/2) && (again || h.forwarded[0].Attempts == 0):
		return &h.forwarded
	}
	return nil
}

// pop starts an attempt at the next delivery, nil when none may start.
func (h *host) pop() *row {
	from := h.ready()
	if from == nil {
		return nil
	}
	r := (*from)[0]
	(*from)[0] = nil
	*from = (*from)[1:]
	h.inflight++
	if r.Attempts > 0 {
		h.retrying++
	}
	if r.Forwarded {
		h.forwarding++
	}
	return r
}

// flush returns everything that waits, and forgets it.
func (h *host) flush() []*row {
	all := slices.Concat(h.fresh, h.retries, h.forwarded)
	h.fresh, h.retries, h.forwarded = nil, nil, nil
	return all
}

// ended takes the end of an attempt into account, and tells whether it taught something worth remembering.
func (h *host) ended(r *row, res result, now time.Time) (news bool) {
	h.inflight--
	if r.Forwarded {
		h.forwarding--
	}
	if r.Attempts > 0 {
		h.retrying--
	}
	if h.name == "" {
		return false
	}
	switch res.heard {
	case answered:
		return h.through(h.limit, now)
	case silence:
		return h.lost(res.outcome.Error, now)
	case asked:
		h.asked = now.Add(res.pause)
		return true
	}
	return false
}
