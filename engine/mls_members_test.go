package engine_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// Three members on two servers hold a conversation. Their clients share no code with the engine.
func TestRow30ThreeMembersOnTwoServersWithTSMLS(t *testing.T) {
	t.Parallel()
	devices := enginetest.StartDevices(t)
	a, b := enginetest.StartTwo(t)
	r := &room{seats: []*seat{
		takeSeat(t, devices, a.CreateUser(t, "alice"), "alice's"),
		takeSeat(t, devices, a.CreateUser(t, "bob"), "bob's"),
		takeSeat(t, devices, b.CreateUser(t, "carol"), "carol's"),
	}}
	r.play(t)
}
