package policy

import (
	"net/netip"
	"strings"
)

// This is the rule by which payers share a stock (dynamic thresholds, Choudhury and Hahne 1998).
// While half of the stock is left, payers have no limit. When less is left and k payers hold
// something, each may hold eager/k times the amount that is left above the last eighth. So one
// payer alone may hold three quarters of the stock, and many that take in turns may hold three
// quarters together. A payer that holds nothing may take something if the last eighth is still
// left after that. The last eighth is for payers that hold little: each may hold a small part of
// the amount that is left (the constant few).
//
// The networks around a client address count as payers, too. The addresses in a network share the
// amount that the network may hold. They share it by the same rule, but with the constant "within"
// in place of eager, so that one address leaves something to its neighbours.
const (
	freely = 1.0 / 2
	last   = 1.0 / 8
	few    = 1.0 / 32
	eager  = 6
	within = 2 // used in place of eager for the addresses of one network
)

// stock counts what payers hold of something. It is not safe for concurrent use.
type stock struct {
	root     share
	payers   map[string]*share
	networks map[netip.Prefix]*share
}

// share is the part of a stock that one payer holds, or that all payers in a network hold
// together.
type share struct {
	held    float64
	holders int    // how many payers and networks directly within this share hold something
	within  *share // the share that includes this one; nil for the whole stock
	network netip.Prefix
}

func newStock() stock {
	return stock{payers: map[string]*share{}, networks: map[netip.Prefix]*share{}}
}

// mayTake reports whether a payer may take n more of a stock of this size. The empty payer is
// this server itself, which no share limits.
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

// littleOf returns how much each payer may hold in any case. The parameter left is the amount of
// the stock that nobody holds.
func littleOf(left float64) float64 { return max(1, few*left) }

// addUse adds n to what a payer holds; n may be negative.
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

// admitPayer adds a payer, and those of its networks that are missing.
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

// dismissPayer removes a payer that holds nothing, and those of its networks that have no other
// payer.
func (s *stock) dismissPayer(payer string, sh *share) {
	delete(s.payers, payer)
	for sh = sh.within; sh != nil; sh = sh.within {
		if sh.holders--; sh.holders > 0 {
			return
		}
		sh.held = 0 // it may differ from 0 by rounding errors
		delete(s.networks, sh.network)
	}
}

// scaleShares multiplies the amount that each payer holds by the factor in the parameter part. It
// removes the payers that then hold less than the parameter crumb.
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

// mostLevels is the largest number of shares that can include a payer: its own share and those of
// its networks. The whole stock is not counted.
const mostLevels = 3

// sharesOf returns the shares that include a payer. They begin with the share of its widest
// network and end with the payer's own. A share is nil if nothing of it is held.
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

// networksOf returns the networks of a payer that is an address, the widest first. They are
// counted because one customer of a provider may have many addresses in such a network.
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
		networks[n], _ = p.Addr().Prefix(bits) // no error, because the address has enough bits
		n++
	}
	return networks, n
}
