package inbox_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/registry"
)

// A user drops the messages of strangers, and takes part in a group without a host. Members of the
// group that no message has named yet are strangers, but their messages are kept, since others
// build on their commits. Messages of other groups are dropped.
func TestAUserWithoutStrangersHearsTheMembersOfAGroup(t *testing.T) {
	h := newHosted(t)
	strangers(t, h.Scene, registry.DropStrangers)
	h.Follows("p:/dave")
	h.Actor("q:/carol")
	h.grow()
	h.sends(mine, "Welcome", h.group.Welcome(h.device))
	carol := h.as("q:/carol")
	carol.sends(mine, "PrivateMessage", h.group.Message())
	h.want("before a device has joined", keptMessages, "welcome 0 dave f f")
	if err := h.join(h.group.ID); err != nil {
		t.Fatal(err)
	}
	carol.sends(mine, "PrivateMessage", h.group.PrivateCommit())
	h.want("afterwards", keptMessages, "welcome 0 dave f f", "commit 1 1 carol f f")
	other := *h.group
	other.ID = "urn:uuid:" + uuid.NewString()
	carol.sends(mine, "PrivateMessage", other.Message())
	h.want("of another group", keptMessages, "welcome 0 dave f f", "commit 1 1 carol f f")
}
