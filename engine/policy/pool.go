package policy

import "sync"

// Pool is a stock that payers share: each has what it took until it gives that back. A share that
// nobody else asks for may be used. It is safe for concurrent use.
type Pool struct {
	size float64

	mu sync.Mutex
	stock
}

// NewPool returns a pool of that size of which nothing is taken.
func NewPool(size int64) *Pool { return &Pool{size: float64(size), stock: newStock()} }

// Take takes n for a payer, and reports whether it was there for it. The empty payer is this
// server itself, which is held to no share.
func (p *Pool) Take(payer string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mayTake(payer, float64(n), p.size) {
		return false
	}
	p.addUse(payer, float64(n))
	return true
}

// Spend takes n for a payer whether it is there or not.
func (p *Pool) Spend(payer string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addUse(payer, float64(n))
}

// Give gives n of a payer's back.
func (p *Pool) Give(payer string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addUse(payer, -min(float64(n), p.heldBy(payer)))
}

// Used returns how much is taken.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.root.held)
}

// Share returns how much a payer who holds nothing may have, bit by bit. It is never all that is
// left, but for the last one.
func (p *Pool) Share() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := max(p.size-p.root.held, 0)
	little := min(left, max(1, left*few/(1+few)))
	fair := (left - last*p.size) * eager / float64(eager+p.root.holders+1)
	return int64(max(left-freely*p.size, fair, little))
}

// Full returns the payers who hold more than a little and may not have n more.
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
