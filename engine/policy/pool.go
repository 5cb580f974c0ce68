package policy

import (
	"sync"
	"time"
)

// generosity is how many times what would be left over one payer may hold: alone three quarters of a pool, which nobody
// else asks for, two payers three sevenths each, and so on. Something is thus always left for the next payer (dynamic
// thresholds, Choudhury and Hahne 1998).
const generosity = 3

// mayTake reports whether a payer who holds mine may have n more of what is free.
func mayTake(mine, n, free float64) bool {
	return n <= free && (mine <= 0 || mine+n <= generosity*(free-n))
}

// Pool is a stock that payers share: each has what it took until it gives that back. A share that nobody else asks for may
// be used. It is safe for concurrent use.
type Pool struct {
	all int64

	mu     sync.Mutex
	used   int64
	payers map[string]int64
}

// NewPool returns a pool of that size of which nothing is taken.
func NewPool(all int64) *Pool { return &Pool{all: all, payers: map[string]int64{}} }

// Take takes n for a payer, and reports whether it was there for it. The empty payer is this server itself, which is held
// to no share.
func (p *Pool) Take(payer string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := p.payers[payer]
	if payer == "" {
		mine = 0
	}
	if !mayTake(float64(mine), float64(n), float64(p.all-p.used)) {
		return false
	}
	p.add(payer, n)
	return true
}

// Spend takes n for a payer whether it is there or not.
func (p *Pool) Spend(payer string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(payer, n)
}

// Give gives n of a payer's back.
func (p *Pool) Give(payer string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(payer, -min(n, p.payers[payer]))
}

// Used returns how much is taken.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Share returns how much a payer who holds nothing may have. It is never all that is free.
func (p *Pool) Share() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.all-p.used, 0) * generosity / (generosity + 1)
}

// Full returns the payers who hold something and may not have n more.
func (p *Pool) Full(n int64) (payers []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := float64(p.all - p.used)
	if mayTake(float64(p.used), float64(n), free) { // as nobody holds more than all do
		return nil
	}
	for payer, mine := range p.payers {
		if payer != "" && !mayTake(float64(mine), float64(n), free) {
			payers = append(payers, payer)
		}
	}
	return payers
}

func (p *Pool) add(payer string, n int64) {
	p.used += n
	if p.payers[payer] += n; p.payers[payer] == 0 {
		delete(p.payers, payer)
	}
}

// SharedLimiter keeps one token bucket for each key, whose tokens payers share. What comes back into a bucket comes back to
// all who took of it, so that each of several eager payers gets the same of it in the long run. It is safe for concurrent
// use, and remembers only so many keys.
type SharedLimiter struct {
	rate Rate
	now  func() time.Time
	half int

	mu         sync.Mutex
	young, old map[string]*sharedBucket // two generations, as of a Limiter
}

// sharedBucket is what payers have taken and did not get back yet.
type sharedBucket struct {
	at     time.Time
	used   float64
	payers map[string]float64
}

func newSharedLimiter(r Rate, now func() time.Time, keys int) *SharedLimiter {
	r.Burst = max(r.Burst, 1)
	return &SharedLimiter{rate: r, now: now, half: max(keys/2, 1), young: map[string]*sharedBucket{}}
}

// Allow takes a token of key's for a payer and reports whether there was one for it, or else after how long there may be.
// kept is the part of the bucket that is not for this payer. The empty payer is this server itself, which is held to no
// share.
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
	b := l.bucket(key, now)
	b.refill(l.rate.PerSecond*now.Sub(b.at).Seconds(), now)
	mine := b.payers[payer]
	if payer == "" {
		mine = 0
	}
	free := float64(l.rate.Burst) - b.used - float64(int(kept*float64(l.rate.Burst)))
	take := float64(n)
	if mayTake(mine, take, free) {
		b.used += take
		b.payers[payer] += take
		return true, 0
	}
	lacks := max(take-free, min((mine+take-generosity*(free-take))/generosity, mine))
	return false, max(time.Duration(lacks/l.rate.PerSecond*float64(time.Second)), time.Millisecond)
}

// crumb is how little a payer may owe and still be forgotten.
const crumb = 0.05

// refill gives n tokens back to those who took them, each according to what it took.
func (b *sharedBucket) refill(n float64, now time.Time) {
	b.at = now
	left := max(b.used-n, 0)
	part := 0.0
	if b.used > 0 {
		part = left / b.used
	}
	b.used = 0
	for payer, took := range b.payers {
		if took *= part; took < crumb {
			delete(b.payers, payer)
			continue
		}
		b.payers[payer] = took
		b.used += took
	}
}

func (l *SharedLimiter) bucket(key string, now time.Time) *sharedBucket {
	if b := l.young[key]; b != nil {
		return b
	}
	b := l.old[key]
	if b == nil {
		b = &sharedBucket{at: now, payers: map[string]float64{}}
	}
	if len(l.young) >= l.half {
		l.young, l.old = make(map[string]*sharedBucket, l.half), l.young
	}
	l.young[key] = b
	return b
}
