package policy

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Lists are what a policy is made from.
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
	mu   sync.Mutex // held while compiling: long lists are compiled once, and meanwhile the last ones hold
}

// compiled is a policy with the lists it was made from. It holds on to them, so that no new list
// can lie where an old one lay and be taken for it.
type compiled struct {
	Lists
	domains   *Domains
	suspended map[vocab.ID]bool // by canonical id
}

// NewGate returns a gate over the lists that load returns. load is called for every check, so it
// must be cheap, and it must not change a list it has returned: a change is a new list. own is the
// host of this server, which no list concerns.
func NewGate(load func() Lists, mode Mode, own string) *Gate {
	return &Gate{load: load, mode: mode, own: own}
}

// Check returns nil when host may talk to us and be contacted, and fault.Forbidden in words that
// do not tell a block from a missing permission.
func (g *Gate) Check(host string) error {
	if host == g.own || g.currentPolicy().domains.IsAllowed(host) {
		return nil
	}
	return refuseActor(host)
}

// CheckActor is Check for an actor, who is refused in the same words when its host is, and when it
// is suspended. The id of a key will do, where that is the actor's with a fragment.
func (g *Gate) CheckActor(id vocab.ID) error {
	if err := g.Check(id.Host()); err != nil {
		return err
	}
	if s := g.currentPolicy().suspended; len(s) > 0 && (s[id.Canonical()] || s[id.Document().Canonical()]) {
		return refuseActor(string(id))
	}
	return nil
}

func refuseActor(who string) error {
	return fault.Wrap(fault.Forbidden, "this server does not federate with that domain or actor", fmt.Errorf("policy refuses %.200q", who))
}

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
	if old = g.now.Load(); old != nil && old.isOf(l) { // somebody else was faster
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

// isOf reports whether c was made from these very lists.
func (c *compiled) isOf(l Lists) bool {
	return isSameLists(c.Blocked, l.Blocked) && isSameLists(c.Allowed, l.Allowed) && isSameLists(c.Suspended, l.Suspended)
}

// isSameLists reports whether a and b are the same list.
func isSameLists[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
