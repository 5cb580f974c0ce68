package socket_test

import (
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/socket"
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
