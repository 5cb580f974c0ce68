package keyspace

import (
	"sync"
	"time"
)

const (
	// breakAfter is the number of failures in a row after which a server is considered away.
	breakAfter = 3

	// tryEvery is the interval at which one call is let through to a server that is considered
	// away.
	tryEvery = 500 * time.Millisecond
)

// breaker makes calls fail immediately while the server is away. The zero breaker lets calls
// through.
type breaker struct {
	mu       sync.Mutex
	failures int
	next     time.Time // when the next call is let through
}

// admitCall reports whether a call may be made now. While the server is away, one call may be
// made in each interval of tryEvery.
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

// record records whether a call failed.
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

// isOpen reports whether the server is considered away.
func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= breakAfter
}
