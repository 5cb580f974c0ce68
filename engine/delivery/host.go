package delivery

import "time"

const (
	full             = 256 // deliveries waiting for a host, from which on no more are claimed for it
	localConcurrency = 16  // attempts at once at inboxes of this server
)

// host is the queue of one host, "" being this server, with what was learnt of it.
type host struct {
	health
	name               string
	limit              int
	fresh, retries     []*row // first attempts and later ones, in the order of claiming
	inflight, retrying int
	listed             bool           // in the round of hosts that may start an attempt
	waiters            map[*user]bool // whose deliveries wait until it is no longer left alone
}

func newHost(name string, limit int) *host {
	if name == "" {
		limit = localConcurrency
	}
	return &host{name: name, limit: limit}
}

func (h *host) push(r *row) {
	if r.Attempts == 0 {
		h.fresh = append(h.fresh, r)
	} else {
		h.retries = append(h.retries, r)
	}
}

func (h *host) waiting() int { return len(h.fresh) + len(h.retries) }

// refuses tells whether no more may be claimed for h.
func (h *host) refuses(now time.Time) bool {
	return h.waiting() >= full || h.inactive.IsZero() && h.rests(now) || h.paused
}

// idle tells whether nothing has to be remembered of h.
func (h *host) idle(now time.Time) bool {
	return h.waiting() == 0 && h.inflight == 0 && !h.remembered(now)
}

// ready tells whether an attempt may start, and whether it is a retry.
func (h *host) ready() (retry, ok bool) {
	all, retries := h.slots(h.limit)
	if h.inflight >= all {
		return false, false
	}
	if len(h.retries) > 0 && h.retrying < retries {
		return true, true
	}
	return false, len(h.fresh) > 0
}

// pop starts an attempt at the next delivery, nil when none may start.
func (h *host) pop() *row {
	retry, ok := h.ready()
	if !ok {
		return nil
	}
	from := &h.fresh
	if retry {
		from = &h.retries
		h.retrying++
	}
	r := (*from)[0]
	(*from)[0] = nil
	*from = (*from)[1:]
	h.inflight++
	return r
}

// flush returns everything that waits, and forgets it.
func (h *host) flush() []*row {
	all := append(h.fresh, h.retries...)
	h.fresh, h.retries = nil, nil
	return all
}

// ended takes the end of an attempt into account, and tells whether it taught something worth remembering.
func (h *host) ended(r *row, res result, now time.Time) (news bool) {
	h.inflight--
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
