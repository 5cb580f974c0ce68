package token

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/fault"
)

// atOnce is the greatest number of passwords that are hashed at the same time. It is small because
// hashing a password takes 19 MiB and a core.
const atOnce = 2

// Hasher hashes passwords, at most atOnce of them at the same time. The caller limits how many
// wait. A Hasher is safe for concurrent use.
type Hasher struct {
	slots   chan struct{}
	counter prometheus.Counter // counts hashings
}

// NewHasher returns a hasher that counts its hashings in counter.
func NewHasher(counter prometheus.Counter) *Hasher {
	return &Hasher{make(chan struct{}, atOnce), counter}
}

// run runs work when a slot is free. The fault is Busy if ctx ends first.
func (h *Hasher) run(ctx context.Context, work func()) error {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return fault.Wrap(fault.Busy, "too many passwords are checked at once", ctx.Err()).After(10 * time.Second)
	}
	defer func() { <-h.slots }()
	h.counter.Inc()
	work()
	return nil
}

// Hash runs HashPassword when a slot is free.
func (h *Hasher) Hash(ctx context.Context, password string) (stored string, err error) {
	err = h.run(ctx, func() { stored = HashPassword(password) })
	return stored, err
}

// Verify reports whether a password is the stored one, and whether the stored hash has other
// costs than new hashes. If stored is not a hash, Verify does the same work, and both answers
// are false.
func (h *Hasher) Verify(ctx context.Context, stored, password string) (right, outdated bool, err error) {
	err = h.run(ctx, func() { right, outdated = matches(stored, password) })
	return right, outdated, err
}
