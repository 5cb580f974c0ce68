package policy

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate is how often something may happen: so often a second in the long run, and so often at once.
// The zero Rate is no limit.
type Rate struct {
	PerSecond float64
	Burst     int // at least 1
}

// Limiter keeps one token bucket for each key, and remembers only so many keys. It is safe for
// concurrent use.
type Limiter struct {
	rate Rate
	now  func() time.Time
	half int

	mu sync.Mutex
	// Two generations: when young is full it becomes old, and what nobody asked for since is
	// forgotten. A flood of new keys can thus make the limiter forget, which gives back at most one
	// burst, but cannot make it grow.
	young, old map[string]*rate.Limiter
}

// NewLimiter returns a limiter of r that remembers so many of the keys used last, and at least half
// as many.
func NewLimiter(r Rate, now func() time.Time, keys int) *Limiter {
	r.Burst = max(r.Burst, 1)
	return &Limiter{rate: r, now: now, half: max(keys/2, 1), young: map[string]*rate.Limiter{}}
}

// Allow takes a token for key and reports whether there was one, or else after how long there will
// be.
func (l *Limiter) Allow(key string) (ok bool, retryAfter time.Duration) {
	if l.rate.PerSecond <= 0 {
		return true, 0
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucketOf(key)
	if b.AllowN(now, 1) {
		return true, 0
	}
	return false, l.waitUntil(b, now)
}

// Ready reports what Allow would, and takes and remembers nothing.
func (l *Limiter) Ready(key string) (ok bool, retryAfter time.Duration) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.remembered(key)
	if b == nil || b.TokensAt(now) >= 1 {
		return true, 0
	}
	return false, l.waitUntil(b, now)
}

// Spend takes n tokens for key, up to a burst, whether they are there or not: key may owe them
// then.
func (l *Limiter) Spend(key string, n int) {
	if l.rate.PerSecond <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucketOf(key).ReserveN(l.now(), min(n, l.rate.Burst))
}

// waitUntil returns after how long there will be a token. It is never too early by a rounding
// error.
func (l *Limiter) waitUntil(b *rate.Limiter, now time.Time) time.Duration {
	wait := time.Duration((1 - b.TokensAt(now)) / l.rate.PerSecond * float64(time.Second))
	return wait.Truncate(time.Millisecond) + time.Millisecond
}

// remembered returns the bucket of key, nil when there is none. The caller holds mu.
func (l *Limiter) remembered(key string) *rate.Limiter {
	if b := l.young[key]; b != nil {
		return b
	}
	return l.old[key]
}

func (l *Limiter) bucketOf(key string) *rate.Limiter {
	if b := l.young[key]; b != nil {
		return b
	}
	b := l.old[key]
	if b == nil {
		b = rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst)
	}
	if len(l.young) >= l.half {
		l.young, l.old = make(map[string]*rate.Limiter, l.half), l.young
	}
	l.young[key] = b
	return b
}
