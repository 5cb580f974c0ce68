package policy

import (
	"math"
	"time"
)

// Quota is how much a payer has left of what a budget gives it.
type Quota struct {
	Name   string
	Limit  int
	Window time.Duration // in which so much may be used
	Left   int
	Reset  time.Duration // until all of it is there again, if nothing is used
}

// Quota returns what key has left. It takes and remembers nothing.
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

// fill returns how long so many tokens take to come, in whole seconds.
func (l *Limiter) fill(tokens float64) time.Duration {
	if l.rate.PerSecond <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(tokens/l.rate.PerSecond)) * time.Second
}
