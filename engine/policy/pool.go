package policy

import "sync"

// Pool is a stock that payers share. A payer holds what it takes until it gives that back. A payer
// may use shares that other payers do not use. A Pool is safe for concurrent use.
type Pool struct {
	size float64

	mu sync.Mutex
	stock
}

// NewPool returns a pool of this size, of which nothing is taken.
func NewPool(size int64) *Pool { return &Pool{size: float64(size), stock: newStock()} }

// Take takes n for a payer, if the payer's share allows that, and reports whether it did. The
// empty payer is this server itself, which no share limits.
func (p *Pool) Take(payer string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mayTake(payer, float64(n), p.size) {
		return false
	}
	p.addUse(payer, float64(n))
	return true
}

// Spend takes n for a payer, even if that exceeds its share or the pool.
func (p *Pool) Spend(payer string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addUse(payer, float64(n))
}

// Give gives back n of what a payer holds.
func (p *Pool) Give(payer string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addUse(payer, -min(float64(n), p.heldBy(payer)))
}

// Used returns how much all payers together hold.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.root.held)
}

// FairShare returns how much a payer that holds nothing now may take in total, if it takes little
// at a time. If more than one unit is left in the pool, the result is less than the amount that is
// left.
func (p *Pool) FairShare() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := max(p.size-p.root.held, 0)
	little := min(left, max(1, left*few/(1+few)))
	fair := (left - last*p.size) * eager / float64(eager+p.root.holders+1)
	return int64(max(left-freely*p.size, fair, little))
}

// Full returns the payers that may not take n more, and that hold more than the amount that every
// payer may hold in any case (see littleOf).
func (p *Pool) Full(n int64) (payers []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.size - p.root.held - float64(n)
	if left >= freely*p.size {
		return nil
	}
	for payer, sh := range p.payers {
		if payer != "" && sh.held > littleOf(left) && !p.mayTake(payer, float64(n), p.size) {
			payers = append(payers, payer)
		}
	}
	return payers
}
