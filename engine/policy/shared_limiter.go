package policy

import (
	"sync"
	"time"
)

// SharedLimiter keeps one token bucket for each key, whose tokens payers share. Tokens that come
// back into a bucket come back to all payers who took some, so that each of several eager payers
// gets the same share in the long run. It is safe for concurrent use, and remembers only so many
// keys.
type SharedLimiter struct {
	rate Rate
	now  func() time.Time
	half int

	mu         sync.Mutex
	young, old map[string]*sharedBucket // two generations, as of a Limiter
}

// sharedBucket is what payers have taken and did not get back yet.
type sharedBucket struct {
	at time.Time
	stock
}

func newSharedLimiter(r Rate, now func() time.Time, keys int) *SharedLimiter {
	r.Burst = max(r.Burst, 1)
	return &SharedLimiter{rate: r, now: now, half: max(keys/2, 1), young: map[string]*sharedBucket{}}
}

// Allow takes a token of key's for a payer and reports whether there was one for it, or else after
// how long there may be. kept is the part of the bucket that is not for this payer. The empty payer
// is this server itself, which is held to no share.
func (l *SharedLimiter) Allow(key, payer string, kept float64) (ok bool, retryAfter time.Duration) {
	return l.AllowMany(key, payer, 1, kept)
}

// AllowMany is Allow for n tokens at once, all or none.
func (l *SharedLimiter) AllowMany(key, payer string, n int, kept float64) (ok bool, retryAfter time.Duration) {
	if l.rate.PerSecond <= 0 {
		return true, 0
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucketOf(key, now)
	b.refillBucket(l.rate.PerSecond*now.Sub(b.at).Seconds(), now)
	take, size := float64(n), float64(l.rate.Burst-int(kept*float64(l.rate.Burst)))
	if b.mayTake(payer, take, size) {
		b.addUse(payer, take)
		return true, 0
	}
	return false, max(time.Duration(b.lackOf(take, size)/l.rate.PerSecond*float64(time.Second)), time.Millisecond)
}

// lackOf returns how much must come back until everybody may have n more of a bucket of that size:
// so much that half of it is left then, or else all.
func (b *sharedBucket) lackOf(n, size float64) float64 {
	return b.root.held - max(size-n-freely*size, 0)
}

// crumb is how little a payer may owe and still be forgotten.
const crumb = 0.05

// refillBucket gives n tokens back to those who took them, each according to what it took.
func (b *sharedBucket) refillBucket(n float64, now time.Time) {
	b.at = now
	if used := b.root.held; used > 0 {
		b.scaleShares(max(used-n, 0)/used, crumb)
	}
}

func (l *SharedLimiter) bucketOf(key string, now time.Time) *sharedBucket {
	if b := l.young[key]; b != nil {
		return b
	}
	b := l.old[key]
	if b == nil {
		b = &sharedBucket{at: now, stock: newStock()}
	}
	if len(l.young) >= l.half {
		l.young, l.old = make(map[string]*sharedBucket, l.half), l.young
	}
	l.young[key] = b
	return b
}
