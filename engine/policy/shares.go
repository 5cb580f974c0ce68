package policy

import (
	"sync"
	"time"
)

// Shares divide a budget of so much for a time among those who ask for it: who asks may have as much as it leaves for
// others. So one alone has half of it, and whoever comes later has something, too. It is safe for concurrent use.
type Shares struct {
	most int
	last time.Duration
	now  func() time.Time
	keys int

	mu      sync.Mutex
	budgets map[string]*divided
}

// divided is what one payee's budget was used for.
type divided struct {
	since time.Time
	left  int
	taken map[string]int
}

// NewShares returns shares of budgets of most each, which are whole again after last. Beyond so many keys all are
// forgotten.
func NewShares(most int, last time.Duration, now func() time.Time, keys int) *Shares {
	return &Shares{most: most, last: last, now: now, keys: keys, budgets: map[string]*divided{}}
}

// Take takes one of the budget of key for who asks, and reports whether it was there for it.
func (s *Shares) Take(key, who string) bool {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.budgets[key]
	if b == nil || now.Sub(b.since) >= s.last {
		if len(s.budgets) >= s.keys {
			clear(s.budgets)
		}
		b = &divided{now, s.most, map[string]int{}}
		s.budgets[key] = b
	}
	if b.taken[who] >= b.left {
		return false
	}
	b.taken[who]++
	b.left--
	return true
}
