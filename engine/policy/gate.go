package policy

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Lists are the lists from which a policy is compiled.
type Lists struct {
	Blocked, Allowed []string   // domains and IP addresses
	Suspended        []vocab.ID // actors
}

// Gate applies lists that change while the engine runs. It is safe for concurrent use.
type Gate struct {
	load func() Lists
	mode Mode
	own  string
	now  atomic.Pointer[compiled]
	mu   sync.Mutex // locked while lists are compiled; meanwhile other callers use the last policy
}

// compiled is a policy with the lists from which it was compiled. It keeps these lists in memory
// because isOf compares lists by their addresses, and a new list must not get the address of an
// old one.
type compiled struct {
	Lists
	domains   *Domains
	suspended map[vocab.ID]bool // the keys are canonical ids
}

// NewGate returns a gate for the lists that the function load returns. The gate calls load for
// every check, so load must be fast. load must not change a list that it has returned. If a list
// changes, load returns a new one. The parameter own is the host of this server, which is always
// allowed.
func NewGate(load func() Lists, mode Mode, own string) *Gate {
	return &Gate{load: load, mode: mode, own: own}
}

// Check returns nil when host may talk to us and be contacted. Otherwise the fault is Forbidden,
// and its words do not reveal whether the host is blocked or only not allowed.
func (g *Gate) Check(host string) error {
	if host == g.own || g.currentPolicy().domains.IsAllowed(host) {
		return nil
	}
	return refuseActor(host)
}

// CheckActor is Check for an actor. It refuses an actor that is suspended or whose host is
// refused, and the public text is the same in both cases. The parameter id may also be the id of a
// key, if that is the actor's id with a fragment.
func (g *Gate) CheckActor(id vocab.ID) error {
	if err := g.Check(id.Host()); err != nil {
		return err
	}
	if s := g.currentPolicy().suspended; len(s) > 0 && (s[id.Canonical()] || s[id.Document().Canonical()]) {
		return refuseActor(string(id))
	}
	return nil
}

var errPolicy = errors.New("policy refuses")

func refuseActor(who string) error {
	return fault.Wrap(fault.Forbidden, "this server does not federate with that domain or actor", fmt.Errorf("%w %.200q", errPolicy, who))
}

// IsRefusal reports whether err is the refusal of a gate.
func IsRefusal(err error) bool { return errors.Is(err, errPolicy) }

func (g *Gate) currentPolicy() *compiled {
	l := g.load()
	old := g.now.Load()
	switch {
	case old == nil:
		g.mu.Lock()
	case old.isOf(l) || !g.mu.TryLock():
		return old
	}
	defer g.mu.Unlock()
	if old = g.now.Load(); old != nil && old.isOf(l) { // another goroutine has compiled it
		return old
	}
	c := &compiled{Lists: l}
	if old != nil && slices.Equal(old.Blocked, l.Blocked) && slices.Equal(old.Allowed, l.Allowed) {
		c.domains = old.domains
	} else {
		c.domains = NewDomains(l.Blocked, l.Allowed, g.mode)
	}
	c.suspended = make(map[vocab.ID]bool, len(l.Suspended))
	for _, id := range l.Suspended {
		c.suspended[id.Canonical()] = true
	}
	g.now.Store(c)
	return c
}

// isOf reports whether c was compiled from these lists. It compares their addresses and lengths,
// not their contents.
func (c *compiled) isOf(l Lists) bool {
	return isSameLists(c.Blocked, l.Blocked) && isSameLists(c.Allowed, l.Allowed) && isSameLists(c.Suspended, l.Suspended)
}

// isSameLists reports whether a and b are the same slice.
func isSameLists[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
