package token

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/fault"
)

// atOnce is how many passwords are hashed at a time: each takes 19 MiB and a core.
const atOnce = 2

// Hasher hashes passwords, few at a time. The caller bounds how many wait. It is safe for
// concurrent use.
type Hasher struct {
	slots   chan struct{}
	counter prometheus.Counter // of hashings
}

// NewHasher returns a hasher that counts what it does.
func NewHasher(counter prometheus.Counter) *Hasher {
	return &Hasher{make(chan struct{}, atOnce), counter}
}

// run hashes when it is its turn. The fault is Busy when ctx ends before.
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

// Hash is HashPassword, when it is its turn.
func (h *Hasher) Hash(ctx context.Context, password string) (stored string, err error) {
	err = h.run(ctx, func() { stored = HashPassword(password) })
	return stored, err
}

// Verify reports whether a password is the one that is stored, and whether it is stored with other
// costs than new ones are. Where nothing is stored it does the same work and says no.
func (h *Hasher) Verify(ctx context.Context, stored, password string) (right, outdated bool, err error) {
	err = h.run(ctx, func() { right, outdated = matches(stored, password) })
	return right, outdated, err
}
