package keyspace

import (
	"sync"
	"time"
)

const (
	// breakAfter is after how many failures in a row a server counts as away.
	breakAfter = 3

	// tryEvery is how often one call is let through to a server that is away.
	tryEvery = 500 * time.Millisecond
)

// breaker lets calls fail at once while the server is away. The zero breaker lets them through.
type breaker struct {
	mu       sync.Mutex
	failures int
	next     time.Time // when a call is let through again
}

// admitCall reports whether a call is let through now. While the server is away, that is one call
// in tryEvery.
func (b *breaker) admitCall(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakAfter {
		return true
	}
	if now.Before(b.next) {
		return false
	}
	b.next = now.Add(tryEvery)
	return true
}

// record counts how a call ended.
func (b *breaker) record(now time.Time, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !failed {
		b.failures = 0
		return
	}
	if b.failures++; b.failures >= breakAfter {
		b.next = now.Add(tryEvery)
	}
}

// isOpen reports whether the server counts as away.
func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= breakAfter
}
