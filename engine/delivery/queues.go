package delivery

import (
	"time"

	"github.com/lightweb/lightweb/engine/policy"
)

// queues decides which delivery is attempted next. Each host has a queue, so that a host that
// fails delays no other host's deliveries. Registrable domains share the attempts, and users'
// own deliveries go before forwarded ones.
type queues struct {
	deps       *Deps
	hosts      map[string]*hostQueue
	own        *rotation    // hosts with a delivery of a user's own that may be attempted
	passing    *rotation    // hosts with a forwarded delivery that may be attempted
	attempts   *policy.Pool // attempts in progress at inboxes of other servers, by registrable domain
	underWay   int          // all attempts in progress
	forwarding int          // attempts in progress at forwarded deliveries
}

func newQueues(deps *Deps) queues {
	return queues{deps: deps, hosts: map[string]*hostQueue{}, own: newRotation(), passing: newRotation(),
		attempts: policy.DeliveryAttempts.PoolOf(int64(deps.Concurrency))}
}

// host returns the queue of a host.
func (q *queues) host(name string) *hostQueue {
	h := q.hosts[name]
	if h == nil {
		h = &hostQueue{name: name, domain: policy.RegistrableDomain(name), limit: q.deps.HostConcurrency, listed: map[*rotation]bool{}}
		if name == "" {
			h.limit = localConcurrency
		}
		q.hosts[name] = h
	}
	return h
}

// beginAttempt returns the delivery to attempt next, or nil if no attempt may begin. Deliveries to
// users of this server come first, then those to the host whose turn it is. Forwarded deliveries
// come last, and may have at most half of the attempts.
func (q *queues) beginAttempt() *row {
	r := q.nextDelivery()
	if r != nil {
		q.underWay++
		if r.Forwarded {
			q.forwarding++
		}
	}
	return r
}

func (q *queues) nextDelivery() *row {
	if h := q.hosts[""]; h != nil {
		if r := h.beginAttempt(); r != nil {
			return r
		}
	}
	if q.attempts.Used() >= int64(q.deps.Concurrency) {
		return nil
	}
	if r := q.nextOf(q.own); r != nil || q.forwarding >= max(1, q.deps.Concurrency/2) {
		return r
	}
	return q.nextOf(q.passing)
}

// nextOf returns the next delivery to one of the hosts in a rotation, or nil if no attempt may
// begin.
func (q *queues) nextOf(hosts *rotation) *row {
	for h := hosts.next(q.attempts); h != nil; h = hosts.next(q.attempts) {
		r := h.beginAttempt()
		q.list(h)
		if r != nil {
			return r
		}
		q.attempts.Give(h.domain, 1)
	}
	return nil
}

// endAttempt makes room for another attempt, and returns the host's queue. The caller must pass
// this queue to the method list after it has recorded the result.
func (q *queues) endAttempt(r *row) *hostQueue {
	h := q.hosts[r.Host]
	h.endAttempt(r)
	q.underWay--
	if r.Forwarded {
		q.forwarding--
	}
	if h.name != "" {
		q.attempts.Give(h.domain, 1)
	}
	return h
}

// list puts h into a rotation if an attempt at a delivery in h may begin. The queue of this server
// is in no rotation.
func (q *queues) list(h *hostQueue) {
	switch line := h.line(); {
	case line == nil || h.name == "":
	case line == &h.forwarded:
		q.passing.add(h)
	default:
		q.own.add(h)
	}
}

// unavailable returns the hosts for which nothing is leased in advance.
func (q *queues) unavailable(now time.Time) (names []string) {
	for _, h := range q.hosts {
		if h.isRefusing(now) || h.isInactive() {
			names = append(names, h.name)
		}
	}
	return names
}
