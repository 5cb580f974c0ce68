package policy

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/lightweb/lightweb/engine/fault"
)

// Gate applies lists that change while the engine runs. It is safe for concurrent use.
type Gate struct {
	load func() (blocked, allowed []string)
	mode Mode
	now  atomic.Pointer[compiled]
}

// compiled is a policy with the lists it was made from. It holds on to them, so that no new list can lie where an old
// one lay and be taken for it.
type compiled struct {
	blocked, allowed []string
	domains          *Domains
}

// NewGate returns a gate over the lists that load returns. load is called for every check, so it must be cheap, and it
// must not change a list it has returned: a change is a new list.
func NewGate(load func() (blocked, allowed []string), mode Mode) *Gate {
	return &Gate{load: load, mode: mode}
}

// Check returns nil when host may talk to us and be contacted, and fault.Forbidden in words that do not tell a block
// from a missing permission.
func (g *Gate) Check(host string) error {
	if g.domains().Allows(host) {
		return nil
	}
	return fault.Wrap(fault.Forbidden, "this server does not federate with that domain", fmt.Errorf("policy refuses %q", host))
}

func (g *Gate) domains() *Domains {
	blocked, allowed := g.load()
	if c := g.now.Load(); c != nil && same(c.blocked, blocked) && same(c.allowed, allowed) {
		return c.domains
	}
	c := &compiled{blocked, allowed, NewDomains(blocked, allowed, g.mode)}
	g.now.Store(c)
	return c.domains
}

// same tells whether a and b hold the same entries; at once when they are the same list.
func same(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	return len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b)
}
