package policy

import (
	"net/netip"
	"strings"
)

// The rule by which payers share a stock. While half of it is left nobody is held to a share.
// Beyond that each of k payers who hold something may hold eager/k times what is left above the
// last eighth: alone three quarters of the stock, and many together three quarters, too, when they
// take by turns (dynamic thresholds, Choudhury and Hahne 1998). The first thing of a newcomer is
// taken as long as it leaves the last eighth. That is for payers who hold little: the few part of
// what is left. The networks of an address are payers of their own, and what one may hold its
// addresses share in the same way, less eagerly: one address leaves something to its neighbours.
const (
	freely = 1.0 / 2
	last   = 1.0 / 8
	few    = 1.0 / 32
	eager  = 6
	within = 2 // how eager those in a network are
)

// stock is how much of something payers hold. It is not safe for concurrent use.
type stock struct {
	root     share
	payers   map[string]*share
	networks map[netip.Prefix]*share
}

// share is what a payer, or all payers of a network, hold of a stock.
type share struct {
	held    float64
	holders int    // payers and networks that hold this
	within  *share // nil for the whole stock
	network netip.Prefix
}

func newStock() stock {
	return stock{payers: map[string]*share{}, networks: map[netip.Prefix]*share{}}
}

// mayTake reports whether a payer may have n more of a stock of that size. The empty payer is this
// server itself, which is held to no share.
func (s *stock) mayTake(payer string, n, size float64) bool {
	left := size - s.root.held - n
	switch {
	case left < 0:
		return false
	case n == 0 || payer == "" || s.root.holders == 0 || left >= freely*size:
		return true
	}
	little := littleOf(left)
	room, holders, eagerness := left-last*size, s.root.holders, float64(eager)
	shares, levels := s.sharesOf(payer)
	for _, sh := range shares[:levels] {
		var had share
		if sh != nil {
			had = *sh
		} else {
			holders++
		}
		most := eagerness / float64(holders) * room
		if holds := had.held + n; holds > most && holds > little && (sh != nil || room < 0) {
			return false
		}
		room, holders, eagerness = max(most-had.held-n, 0), had.holders, within
	}
	return true
}

// littleOf returns how much one payer may hold whatever others do, when so much is left.
func littleOf(left float64) float64 { return max(1, few*left) }

// addUse counts n more for a payer; n may be negative.
func (s *stock) addUse(payer string, n float64) {
	if n == 0 {
		return
	}
	sh := s.payers[payer]
	if sh == nil {
		sh = s.admitPayer(payer)
	}
	for x := sh; x != nil; x = x.within {
		x.held += n
	}
	if sh.held <= 0 {
		s.dismissPayer(payer, sh)
	}
}

// heldBy returns what a payer holds.
func (s *stock) heldBy(payer string) float64 {
	if sh := s.payers[payer]; sh != nil {
		return sh.held
	}
	return 0
}

// admitPayer remembers a payer, and its networks.
func (s *stock) admitPayer(payer string) *share {
	at := &s.root
	networks, n := networksOf(payer)
	for _, network := range networks[:n] {
		next := s.networks[network]
		if next == nil {
			next = &share{within: at, network: network}
			s.networks[network] = next
			at.holders++
		}
		at = next
	}
	at.holders++
	sh := &share{within: at}
	s.payers[payer] = sh
	return sh
}

// dismissPayer forgets a payer who holds nothing, and those of its networks that nobody else is of.
func (s *stock) dismissPayer(payer string, sh *share) {
	delete(s.payers, payer)
	for sh = sh.within; sh != nil; sh = sh.within {
		if sh.holders--; sh.holders > 0 {
			return
		}
		sh.held = 0 // but for errors of rounding
		delete(s.networks, sh.network)
	}
}

// scaleShares leaves a part of what each payer holds, and forgets those who then hold less than
// crumb.
func (s *stock) scaleShares(part, crumb float64) {
	s.root.held *= part
	for _, sh := range s.networks {
		sh.held *= part
	}
	for payer, sh := range s.payers {
		if sh.held *= part; sh.held < crumb {
			s.addUse(payer, -sh.held)
		}
	}
}

// mostLevels is how many shares a payer may have a part in below the whole.
const mostLevels = 3

// sharesOf returns the shares that n more for a payer would be added to, from its widest network
// to itself; nil where nobody holds anything.
func (s *stock) sharesOf(payer string) (shares [mostLevels]*share, levels int) {
	if sh := s.payers[payer]; sh != nil {
		for x := sh; x.within != nil; x = x.within {
			levels++
		}
		for n := levels - 1; n >= 0; n-- {
			shares[n], sh = sh, sh.within
		}
		return shares, levels
	}
	networks, n := networksOf(payer)
	for i, network := range networks[:n] {
		shares[i] = s.networks[network]
	}
	return shares, n + 1
}

// networksOf returns the networks that an address is of, the widest first: a customer of a
// provider has any number of addresses in them.
func networksOf(payer string) (networks [mostLevels - 1]netip.Prefix, n int) {
	address, is := strings.CutPrefix(payer, addressPayer)
	if !is {
		return networks, 0
	}
	p, err := netip.ParsePrefix(address)
	if err != nil {
		return networks, 0
	}
	wider := []int{24}
	if p.Addr().Is6() {
		wider = []int{48, 56}
	}
	for _, bits := range wider {
		networks[n], _ = p.Addr().Prefix(bits) // which every address has
		n++
	}
	return networks, n
}
