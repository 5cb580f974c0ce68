package engine_test

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// twoFaultsPairs is the default number of pairs that are played. The seed selects the pairs.
const twoFaultsPairs = "3"

// Two things break at once, while activities arrive and posts are sent. They are repaired one
// after the other. An accepted activity exists once, with its effect. A user's post reaches every
// inbox under one id. LIGHTWEB_FAULT_PAIRS sets how many of the 21 pairs are played.
// LIGHTWEB_FAULT_SEED repeats a run, as far as other processes allow it.
func TestNothingAcceptedIsLostOrDoubledWhateverTwoThingsFail(t *testing.T) {
	t.Parallel()
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("LIGHTWEB_FAULT_SEED"), strconv.FormatUint(rand.Uint64(), 10)), 10, 64)
	if err != nil {
		t.Fatal("LIGHTWEB_FAULT_SEED: ", err)
	}
	t.Logf("LIGHTWEB_FAULT_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var whole, small []pair // pairs that fill the disk are played on a small disk
	for _, p := range drawPairs(random, amount(t, "LIGHTWEB_FAULT_PAIRS", twoFaultsPairs)) {
		if p.fills() {
			small = append(small, p)
		} else {
			whole = append(whole, p)
		}
	}
	if len(whole) > 0 {
		t.Run("on a disk with room", func(t *testing.T) {
			newTwoFaults(t, random, enginetest.Make(t, twoFaultsSettings...), nil).play(t, whole)
		})
	}
	if len(small) > 0 {
		t.Run("on a small disk", func(t *testing.T) {
			disk := enginetest.NewDisk(t, 256)
			newTwoFaults(t, random, enginetest.MakeIn(t, disk.Dir, twoFaultsSettings...), disk).play(t, small)
		})
	}
}

// The engine waits only 2 s for a peer that stalls, so that a delivery to the peer fails soon.
var twoFaultsSettings = []string{"LIGHTWEB_LOG_LEVEL=info", "LIGHTWEB_DELIVERY_TIMEOUT=2s"}

// pair is two things that break at once.
type pair struct{ first, second breakage }

func (p pair) String() string { return p.first.name + ", " + p.second.name }

// fills reports whether either of the two fills the disk.
func (p pair) fills() bool { return p.first.fills || p.second.fills }

// pairsOf returns every pair once.
func pairsOf(all []breakage) (pairs []pair) {
	for n, first := range all {
		for _, second := range all[n+1:] {
			pairs = append(pairs, pair{first, second})
		}
	}
	return pairs
}

// drawPairs returns n pairs. It draws no pair twice before it has drawn every pair once.
func drawPairs(random *rand.Rand, n int) (drawn []pair) {
	all := pairsOf(breakages)
	for len(drawn) < n {
		for _, k := range random.Perm(len(all)) {
			drawn = append(drawn, all[k])
		}
	}
	return drawn[:n]
}

// played sums the results of a pair over all of its runs.
type played struct {
	accepted, again int64
	lost, doubled   int
}

// play plays pairs until one fails, and logs the table of docs/reliability.md.
func (c *twoFaults) play(t *testing.T, pairs []pair) {
	sums := map[string]*played{}
	for _, p := range pairs {
		if sums[p.String()] == nil {
			sums[p.String()] = &played{}
		}
		if !t.Run(p.String(), func(t *testing.T) { c.pair(t, p, sums[p.String()]) }) {
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s := sums[name]
		t.Logf("| %s | %d | %d | %d | %d |", name, s.accepted, s.again, s.lost, s.doubled)
	}
}

// The number of activities that are sent while nothing, one thing or both things are broken.
const (
	noFault    = 8
	oneFault   = 12
	bothFaults = 16
)

// pair breaks two things under load and checks everything afterwards. A full disk is repaired
// first, because nothing else can be repaired while it is full. A kill of the engine comes second,
// while the other thing is broken.
func (c *twoFaults) pair(t *testing.T, p pair, sum *played) {
	accepted, again := c.accepted.Load(), c.again.Load()+c.out.again.Load()
	one, other := p.first, p.second
	if one.kills {
		one, other = other, one
	}
	defer c.going.Wait()
	victims := c.random.Perm(len(c.users))
	var mend, mendOther func()
	c.begin()
	c.traffic(t, noFault, func() { mend = one.breaks(t, c, c.users[victims[0]]) })
	c.traffic(t, oneFault, func() { mendOther = other.breaks(t, c, c.users[victims[1]]) })
	if other.fills || !one.fills && c.random.IntN(2) == 0 {
		mend, mendOther = mendOther, mend
	}
	c.traffic(t, bothFaults, func() {})
	c.traffic(t, oneFault, mend)
	c.traffic(t, noFault, mendOther)
	c.going.Wait()
	found := c.find(t)
	sum.accepted += c.accepted.Load() - accepted
	sum.again += c.again.Load() + c.out.again.Load() - again
	sum.lost += len(found.lost)
	sum.doubled += len(found.doubled)
	found.report(t)
}
