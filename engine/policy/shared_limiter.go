package policy

import (
	"sync"
	"time"
)

// SharedLimiter has one token bucket for each key, whose tokens the payers share. Tokens that
// refill a bucket are credited to all payers that took some. So in the long run, payers that
// always want more tokens get equal shares. A SharedLimiter remembers a limited number of keys,
// and is safe for concurrent use.
type SharedLimiter struct {
	rate Rate
	now  func() time.Time

	mu sync.Mutex
	buckets[sharedBucket]
}

// sharedBucket counts the tokens that payers have taken from a bucket and that have not been
// refilled yet.
type sharedBucket struct {
	at time.Time
	stock
}

func newSharedLimiter(r Rate, now func() time.Time, keys int) *SharedLimiter {
	r.Burst = max(r.Burst, 1)
	return &SharedLimiter{rate: r, now: now, buckets: newBuckets[sharedBucket](keys)}
}

// Allow takes a token from the bucket of key for a payer. The result ok is true if there was a
// token for the payer. Otherwise the result retryAfter is the time until there may be one. The
// parameter kept is the part of the bucket, from 0 to 1, that is reserved for others. The empty
// payer is this server itself, which no share limits.
func (l *SharedLimiter) Allow(key, payer string, kept float64) (ok bool, retryAfter time.Duration) {
	return l.AllowMany(key, payer, 1, kept)
}

// AllowMany is Allow for n tokens. It takes all of them or none.
func (l *SharedLimiter) AllowMany(key, payer string, n int, kept float64) (ok bool, retryAfter time.Duration) {
	if l.rate.PerSecond <= 0 {
		return true, 0
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.use(key, func() *sharedBucket { return &sharedBucket{at: now, stock: newStock()} })
	b.refillBucket(l.rate.PerSecond*now.Sub(b.at).Seconds(), now)
	take, size := float64(n), float64(l.rate.Burst-int(kept*float64(l.rate.Burst)))
	if b.mayTake(payer, take, size) {
		b.addUse(payer, take)
		return true, 0
	}
	return false, max(time.Duration(b.lackOf(take, size)/l.rate.PerSecond*float64(time.Second)), time.Millisecond)
}

// lackOf returns how many tokens must be refilled until any payer may take n from a bucket of
// this size. Any payer may take n if half of the bucket is left afterwards. If n is too large for
// that, all tokens must be refilled.
func (b *sharedBucket) lackOf(n, size float64) float64 {
	return b.root.held - max(size-n-freely*size, 0)
}

// crumb is the number of tokens below which a payer is forgotten.
const crumb = 0.05

// refillBucket refills n tokens. It credits them to the payers in proportion to what they took.
func (b *sharedBucket) refillBucket(n float64, now time.Time) {
	b.at = now
	if used := b.root.held; used > 0 {
		b.scaleShares(max(used-n, 0)/used, crumb)
	}
}
