package policy

import (
	"cmp"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate is the rate of a token bucket: tokens per second, and the size of the bucket. The zero
// Rate is no limit.
type Rate struct {
	PerSecond float64
	Burst     int // at least 1
}

// Limiter has one token bucket for each key, for a limited number of keys. It is safe for
// concurrent use.
type Limiter struct {
	rate Rate
	now  func() time.Time

	mu sync.Mutex
	buckets[rate.Limiter]
}

// NewLimiter returns a limiter with the rate r. The parameter keys is the highest number of keys
// that the limiter remembers. It remembers at least the keys/2 keys that were used last.
func NewLimiter(r Rate, now func() time.Time, keys int) *Limiter {
	r.Burst = max(r.Burst, 1)
	return &Limiter{rate: r, now: now, buckets: newBuckets[rate.Limiter](keys)}
}

// Allow takes a token for key. The result ok is true if there was a token. Otherwise the result
// retryAfter is the time until there is one.
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

// Ready returns the same results as Allow, but takes no token and does not remember the key.
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

// Spend takes n tokens for key, but at most a burst. It takes them even if the bucket has fewer.
// Then the bucket's balance is below zero, and Allow finds no token until the balance has risen
// to one.
func (l *Limiter) Spend(key string, n int) {
	if l.rate.PerSecond <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucketOf(key).ReserveN(l.now(), min(n, l.rate.Burst))
}

// waitUntil returns the time until there is a token. It rounds the time up to a millisecond, so
// that a retry is never too early.
func (l *Limiter) waitUntil(b *rate.Limiter, now time.Time) time.Duration {
	wait := time.Duration((1 - b.TokensAt(now)) / l.rate.PerSecond * float64(time.Second))
	return wait.Truncate(time.Millisecond) + time.Millisecond
}

func (l *Limiter) bucketOf(key string) *rate.Limiter {
	return l.use(key, func() *rate.Limiter { return rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst) })
}

// buckets has the buckets of a limited number of keys, in two generations. When a bucket in the
// map old is used, it moves to the map young. When young is full, it replaces old, and the buckets
// that are left in old are dropped. So a flood of new keys cannot make a limiter grow. A flood can
// make it forget keys, but a forgotten key gets at most one more burst.
type buckets[T any] struct {
	half       int
	young, old map[string]*T
}

func newBuckets[T any](keys int) buckets[T] {
	return buckets[T]{half: max(keys/2, 1), young: map[string]*T{}}
}

// remembered returns the bucket of key, or nil if there is none.
func (b *buckets[T]) remembered(key string) *T { return cmp.Or(b.young[key], b.old[key]) }

// use returns the bucket of key. If there is none, it adds the one that the function fresh makes.
func (b *buckets[T]) use(key string, fresh func() *T) *T {
	if found := b.young[key]; found != nil {
		return found
	}
	found := b.old[key]
	if found == nil {
		found = fresh()
	}
	if len(b.young) >= b.half {
		b.young, b.old = make(map[string]*T, b.half), b.young
	}
	b.young[key] = found
	return found
}
