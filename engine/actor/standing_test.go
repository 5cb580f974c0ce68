package actor

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
)

// PAY-01: requests from one address cannot be verified. The address uses up only its own share of
// the fetches from a domain. Unknown actors of the domain that sign from another address are still
// fetched.
func TestForgersLeaveOthersTheFetchesOfADomain(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{store: forgetful{}, rate: policy.Rate{PerSecond: 20.0 / 60, Burst: 20}}), newPeer(t)
	from := func(address string) context.Context {
		return policy.PaidByAddress(context.Background(), netip.MustParsePrefix(address))
	}
	forger, honest := from("192.0.2.1/32"), from("192.0.2.2/32")
	for i := range 25 {
		_, err := n.ByKey(forger, p.id(fmt.Sprintf("/users/u%d#main-key", i)))
		if err == nil {
			t.Fatal("a key that nobody has was found")
		}
		n.NoteProof(forger, "", false)
	}
	if p.all() > 10 {
		t.Errorf("the forger caused %d fetches, want half of the budget at most", p.all())
	}
	for _, name := range []string{"bob", "eve"} {
		p.show("/users/"+name, p.person(t, name, 0))
		if _, err := n.Resolve(honest, p.id("/users/"+name)); err != nil {
			t.Errorf("%s, who is honest: %v", name, err)
		}
	}
	if _, err := n.Resolve(forger, p.id("/users/more")); fault.KindOf(err) != fault.RateLimited {
		t.Errorf("the forger once more: %v, want RateLimited", err)
	}
}
