package policy

import (
	"math"
	"time"
)

// Quota says how much a payer has left of its share of a budget.
type Quota struct {
	Name   string
	Limit  int
	Window time.Duration // the time in which a share that is used up is refilled to Limit
	Left   int
	Reset  time.Duration // how long it takes until Left equals Limit again, if nothing is used
}

// Quota returns the quota of key. It takes no token, and does not remember the key.
func (l *Limiter) Quota(name, key string) Quota {
	q := Quota{Name: name, Limit: l.rate.Burst, Window: l.fill(float64(l.rate.Burst)), Left: l.rate.Burst}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.remembered(key); b != nil {
		left := b.TokensAt(now)
		q.Left, q.Reset = max(int(left), 0), l.fill(float64(l.rate.Burst)-left)
	}
	return q
}

// fill returns how long it takes to refill so many tokens, in whole seconds.
func (l *Limiter) fill(tokens float64) time.Duration {
	if l.rate.PerSecond <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(tokens/l.rate.PerSecond)) * time.Second
}
