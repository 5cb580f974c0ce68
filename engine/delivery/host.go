package delivery

import "time"

const (
	full             = 256 // deliveries waiting for a host, from which on no more are claimed for it
	silences         = 5   // attempts in a row without an answer, after which a host is left alone
	shortestSilence  = time.Minute
	longestSilence   = time.Hour
	localConcurrency = 16 // attempts at once at inboxes of this server
)

// host is the queue of one host, "" being this server, with what was learnt of it. Deliveries to a host that does not
// answer wait in the database and spend no attempt; after a while one of them finds out whether it is back.
type host struct {
	name               string
	limit              int
	fresh, retries     []*row // first attempts and later ones, in the order of claiming
	inflight, retrying int
	silent             int       // attempts in a row without an answer
	closed             time.Time // nothing goes there before
	listed             bool      // in the round of hosts that may start an attempt
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

// idle tells whether nothing has to be remembered of h.
func (h *host) idle(now time.Time) bool {
	return h.waiting() == 0 && h.inflight == 0 && h.silent == 0 && !h.closed.After(now)
}

// slots returns how many attempts and how many retries there may be at once: one while nobody knows whether it is back.
func (h *host) slots() (all, retries int) {
	if h.silent >= silences {
		return 1, 1
	}
	return h.limit, max(1, h.limit/2)
}

// ready tells whether an attempt may start, and whether it is a retry.
func (h *host) ready() (retry, ok bool) {
	all, retries := h.slots()
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

// ended takes the end of an attempt into account.
func (h *host) ended(r *row, res result, now time.Time) {
	h.inflight--
	if r.Attempts > 0 {
		h.retrying--
	}
	switch res.heard {
	case answered:
		h.silent = 0
		if res.pause > 0 {
			h.closed = now.Add(res.pause)
		}
	case silence:
		if h.closed.After(now) {
			return // it was under way when the host was closed: that is no news
		}
		h.silent++
		if n := h.silent - silences; n >= 0 {
			h.closed = now.Add(spread(min(longestSilence, shortestSilence<<min(n, 10))))
		}
	}
}
