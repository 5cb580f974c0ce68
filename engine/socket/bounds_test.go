package socket_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A user may have at most ofUser sockets. When one closes, another may open.
func TestSocketsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := dbtest.User(t, r.store, "alice"), dbtest.User(t, r.store, "bob")
	var mine []*client
	for range ofUser {
		mine = append(mine, r.open(alice, nil))
	}
	if _, err := r.hub.Open(socket.Request{User: alice, Kind: socket.SSE}); fault.KindOf(err) != fault.RateLimited {
		t.Errorf("one socket more: %v, want it refused", err)
	}
	r.open(bob, nil)
	mine[0].leave()
	r.open(alice, nil)
}

// LLM engines may open only half of a user's sockets. The other half is for the user's own
// programs.
func TestAssistantsHaveHalfOfTheSockets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	assistant := socket.Request{User: alice, Kind: socket.SSE, Assistant: true}
	var theirs []*client
	for range ofUser / 2 {
		theirs = append(theirs, r.openAs(assistant))
	}
	if _, err := r.hub.Open(assistant); fault.KindOf(err) != fault.RateLimited {
		t.Errorf("one socket more of an LLM engine: %v, want it refused", err)
	}
	for range ofUser / 2 {
		r.open(alice, nil)
	}
	theirs[0].leave()
	r.openAs(assistant)
}

// opener opens sockets without programs, each ofUser for the next user.
type opener struct {
	*testing.T
	hub  *socket.Hub
	open map[string][]*socket.Socket // the open sockets of each payer
	n    int
}

// openOne opens a socket that a payer pays, and reports whether the hub let it. A refusal must be
// that of the pool.
func (o *opener) openOne(payer string) bool {
	o.Helper()
	u, err := vocab.ParseUsername(fmt.Sprint("u", o.n/ofUser))
	if err != nil {
		o.Fatal(err)
	}
	s, err := o.hub.Open(socket.Request{User: u, Kind: socket.SSE, Payer: payer})
	if err != nil {
		if fault.KindOf(err) != fault.Busy || fault.Code(err) != "overloaded" {
			o.Errorf("a socket of %s is refused with %v, want overloaded", payer, err)
		}
		return false
	}
	o.open[payer] = append(o.open[payer], s)
	o.n++
	return true
}

// openAll opens as many sockets as a payer may have, and returns the number.
func (o *opener) openAll(payer string) int {
	o.Helper()
	for o.openOne(payer) {
	}
	return len(o.open[payer])
}

// closeOne closes a socket of a payer.
func (o *opener) closeOne(payer string) {
	all := o.open[payer]
	all[len(all)-1].Close()
	o.open[payer] = all[:len(all)-1]
}

// All sockets together are bounded, and each payer has a share. When sockets close, as many may
// open again.
func TestPayersShareThePoolOfAllSockets(t *testing.T) {
	t.Parallel()
	o := &opener{T: t, hub: socket.NewHub(socket.Deps{Now: time.Now, OfUser: ofUser}), open: map[string][]*socket.Socket{}}
	payer := func(n int) string {
		return policy.NameAddress(netip.PrefixFrom(netip.AddrFrom4([4]byte{198, byte(18 + n>>8), byte(n), 1}), 32))
	}
	first := 0
	for round := range 3 {
		most, all := o.openAll(payer(0)), 0
		if most < int(policy.Sockets.Pool)/2 || most > int(policy.Sockets.Pool)*3/4 || round > 0 && most != first {
			t.Fatalf("round %d: the first payer has %d sockets of %d, after %d in the first round", round+1, most, policy.Sockets.Pool, first)
		}
		first = most
		o.closeOne(payer(0))
		if !o.openOne(payer(0)) || o.openOne(payer(0)) {
			t.Errorf("round %d: after one socket closed, not exactly one opens", round+1)
		}
		last := 1
		for o.openAll(payer(last)) > 0 {
			last++
		}
		for _, open := range o.open {
			all += len(open)
		}
		if all != int(policy.Sockets.Pool) {
			t.Errorf("round %d: %d payers have %d sockets, want %d", round+1, last, all, policy.Sockets.Pool)
		}
		o.closeOne(payer(0))
		if !o.openOne(payer(last)) || o.openOne(payer(last+1)) {
			t.Errorf("round %d: a newcomer may not have exactly the socket that another closed", round+1)
		}
		for p, open := range o.open {
			for range open {
				o.closeOne(p)
			}
		}
		o.n = 0
	}
}

// A socket that is refused because its user has too many holds no place in the pool.
func TestARefusedSocketHoldsNoPlace(t *testing.T) {
	t.Parallel()
	hub := socket.NewHub(socket.Deps{Now: time.Now, OfUser: 1})
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	r := socket.Request{User: alice, Kind: socket.SSE, Payer: policy.NameAddress(netip.MustParsePrefix("198.18.0.1/32"))}
	if _, err := hub.Open(r); err != nil {
		t.Fatal(err)
	}
	for n := range policy.Sockets.Pool {
		if _, err := hub.Open(r); fault.KindOf(err) != fault.RateLimited {
			t.Fatalf("refusal %d is %v, want that the user has too many", n+1, err)
		}
	}
}
