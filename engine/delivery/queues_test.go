package delivery

import (
	"fmt"
	"github.com/lightweb/lightweb/db/user"
	"testing"
	"time"
)

// queue adds n deliveries to a host's queue.
func (q *queues) queue(host string, n, attempts int, forwarded bool) {
	h := q.host(host)
	for range n {
		h.push(&row{Delivery: user.Delivery{Host: host, Attempts: attempts, Forwarded: forwarded}, domain: h.domain})
	}
	q.list(h)
}

// begin begins every attempt that may begin now. It returns the rows of the attempts.
func (q *queues) begin() (rows []*row) {
	for r := q.beginAttempt(); r != nil; r = q.beginAttempt() {
		rows = append(rows, r)
	}
	return rows
}

func newTestQueues() queues { return newQueues(&Deps{Concurrency: 8, HostConcurrency: 4}) }

func TestWhichAttemptsBegin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		queue func(*queues)
		want  map[string]int // numbers of attempts: by host, and of all hosts by kind
	}{
		{"of one host its limit", func(q *queues) { q.queue("a.example", 10, 0, false) }, map[string]int{"a.example": 4, "fresh": 4}},
		{"retries first, half of the limit", func(q *queues) { q.queue("a.example", 10, 0, false); q.queue("a.example", 10, 1, false) },
			map[string]int{"a.example": 4, "retry": 2, "fresh": 2}},
		{"of forwarded ones half of the limit", func(q *queues) { q.queue("a.example", 10, 0, true) }, map[string]int{"a.example": 2, "forwarded": 2}},
		{"own ones before forwarded ones", func(q *queues) { q.queue("a.example", 10, 0, true); q.queue("a.example", 4, 0, false) },
			map[string]int{"a.example": 4, "fresh": 4}},
		{"of all hosts half of all for forwarded ones", func(q *queues) {
			for n := range 8 {
				q.queue(fmt.Sprintf("a%d.example", n), 1, 0, true)
			}
		}, map[string]int{"forwarded": 4}},
		{"to this server its own limit", func(q *queues) { q.queue("", 100, 0, false) }, map[string]int{"": localConcurrency, "fresh": localConcurrency}},
		{"to this server although others have all attempts", func(q *queues) {
			for n := range 10 {
				q.queue(fmt.Sprintf("a%d.example", n), 1, 0, false)
			}
			q.queue("", 1, 0, false)
		}, map[string]int{"": 1, "fresh": 9}},
	} {
		q := newTestQueues()
		tt.queue(&q)
		got := map[string]int{}
		for _, r := range q.begin() {
			got[r.Host]++
			switch {
			case r.Forwarded:
				got["forwarded"]++
			case r.Attempts > 0:
				got["retry"]++
			default:
				got["fresh"]++
			}
		}
		for what, want := range tt.want {
			if got[what] != want {
				t.Errorf("%s: %d of %q, want %d", tt.name, got[what], what, want)
			}
		}
	}
}

func TestAnAttemptThatEndsMakesRoom(t *testing.T) {
	t.Parallel()
	q := newTestQueues()
	q.queue("a.example", 3, 0, true)
	q.queue("b.example", 3, 1, false)
	for _, want := range []int{4, 2} { // first two attempts for each host, then one for each
		rows := q.begin()
		if len(rows) != want {
			t.Errorf("%d attempts begin, want %d", len(rows), want)
		}
		for _, r := range rows {
			q.list(q.endAttempt(r))
		}
	}
	if q.underWay != 0 || q.forwarding != 0 || q.attempts.Used() != 0 {
		t.Errorf("%d attempts, %d forwarded, %d of the pool are left over", q.underWay, q.forwarding, q.attempts.Used())
	}
}

func TestDomainsTakeTurns(t *testing.T) {
	t.Parallel()
	q := newTestQueues()
	for n := range 5 {
		q.queue(fmt.Sprintf("a%d.many.example", n), 1, 0, false)
	}
	q.queue("b.example", 1, 0, false)
	first, second := q.beginAttempt(), q.beginAttempt()
	if first.domain != "many.example" || second.domain != "b.example" {
		t.Errorf("the first attempts are at %s and %s, want one of each domain", first.Host, second.Host)
	}
}

func TestWhatAQueueTakes(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	open := func(h *hostQueue) { h.openUntil = now.Add(time.Minute) }
	away := func(h *hostQueue) { h.inactive = now.Add(-day) }
	for _, tt := range []struct {
		name                  string
		change                func(*hostQueue)
		isRefusing, isParking bool
	}{
		{"as usual", func(*hostQueue) {}, false, false},
		{"nearly full", func(h *hostQueue) { h.fresh = make([]*row, maxQueued-1) }, false, false},
		{"full", func(h *hostQueue) { h.fresh = make([]*row, maxQueued) }, true, false},
		{"full of retries", func(h *hostQueue) { h.retries = make([]*row, maxQueued) }, true, false},
		{"full of forwarded ones", func(h *hostQueue) { h.forwarded = make([]*row, maxQueued) }, false, false},
		{"paused", func(h *hostQueue) { h.paused = true }, true, false},
		{"open", open, true, false},
		{"inactive, and to be probed", away, false, false},
		{"inactive, and probed", func(h *hostQueue) { away(h); h.inflight = 1 }, false, true},
		{"inactive, the probe waits", func(h *hostQueue) { away(h); h.fresh = make([]*row, 1) }, false, true},
		{"inactive, not to be probed yet", func(h *hostQueue) { away(h); open(h) }, false, true},
	} {
		h := &hostQueue{name: "a.example", limit: 4}
		tt.change(h)
		if got := h.isRefusing(now); got != tt.isRefusing {
			t.Errorf("%s: it refuses: %t, want %t", tt.name, got, tt.isRefusing)
		}
		if got := h.isParking(now); got != tt.isParking {
			t.Errorf("%s: it parks: %t, want %t", tt.name, got, tt.isParking)
		}
	}
}

func TestForwardedDeliveriesCrowdAQueue(t *testing.T) {
	t.Parallel()
	h := &hostQueue{forwarded: make([]*row, maxQueuedForwarded-1)}
	if h.isCrowded() {
		t.Error("crowded before it is")
	}
	if h.push(&row{Delivery: user.Delivery{Forwarded: true}}); !h.isCrowded() {
		t.Errorf("not crowded with %d forwarded deliveries", len(h.forwarded))
	}
}
