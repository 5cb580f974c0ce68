package inbox_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/registry"
)

const placed = `SELECT concat_ws(' ', kind, seq, regexp_replace(sender_uri, '.*/', ''), conversation_id IS NOT NULL) FROM mls_inbox WHERE kind = 'application' ORDER BY arrival`

// mallory sends dave's message in its own name before dave's own Create comes, and before alice's
// server knows the group. dave's is kept beside it. Once a device has joined the conversation,
// devices read the message once, from dave.
func TestACopyThatComesBeforeItsGroupHidesNoMessage(t *testing.T) {
	h := newHosted(t)
	strangers(t, h.Scene, registry.AllowStrangers)
	mallory := h.as("q:/mallory")
	_, next := h.group.Commit(h.host, mlstest.Change{Add: []*mlstest.Device{h.device}})
	first, second := next.Message(), next.Message()
	for _, words := range [][]byte{first, second} {
		for range 2 {
			mallory.sends(mine, "PrivateMessage", words)
			h.sends("us:/inbox", "PrivateMessage", words)
		}
	}
	h.want("before the group is known", placed, "application mallory f", "application dave f", "application mallory f", "application dave f")
	put := func(words []byte) {
		t.Helper()
		if err := h.put("PrivateMessage", words, 1); err != nil {
			t.Fatal(err)
		}
	}
	h = h.begun()
	put(first)
	h.want("of an invitation", placed, "application mallory f", "application mallory f", "application dave f", "application 2 dave t")
	if err := h.join(""); err != nil {
		t.Fatal(err)
	}
	h.want("of the conversation", placed, "application mallory f", "application dave f", "application 2 dave t")
	put(second)
	h.want("of the whole conversation", placed, "application 2 dave t", "application 3 dave t")
}

// dave sends a message before alice's server knows the group, and once more in another Create after
// that. When the host puts it in order, devices read it once.
func TestAMessageThatCameBeforeItsGroupAndAgainIsReadOnce(t *testing.T) {
	for name, isJoined := range map[string]bool{"of an invitation": false, "of a conversation": true} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(t)
			strangers(t, h.Scene, registry.AllowStrangers)
			_, next := h.group.Commit(h.host, mlstest.Change{Add: []*mlstest.Device{h.device}})
			words := next.Message()
			h.sends(mine, "PrivateMessage", words)
			h = h.begun()
			if isJoined {
				if err := h.join(""); err != nil {
					t.Fatal(err)
				}
			}
			h.sends(mine, "PrivateMessage", words)
			if err := h.put("PrivateMessage", words, 1); err != nil {
				t.Fatal(err)
			}
			h.want("in order", placed, "application 2 dave t")
		})
	}
}

// Copies come before a group without a host. A message has the name of a member, or of an actor
// that a member's message names, whichever Create came first.
func TestACopyThatComesBeforeAGroupWithoutAHostHidesNoMessage(t *testing.T) {
	for name, isNamedFirst := range map[string]bool{"named by the message that begins the group": false, "named before": true} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(t)
			strangers(t, h.Scene, registry.AllowStrangers)
			erin, mallory := h.as("p:/erin"), h.as("q:/mallory")
			h.grow()
			his, hers := h.group.Message(), h.group.Message()
			first, last := []any{h.Long("us:/alice")}, []any{h.Long("us:/alice"), h.Long(erin.by)}
			if isNamedFirst {
				first, last = last, first
			}
			mallory.sends(mine, "PrivateMessage", his)
			mallory.sends(mine, "PrivateMessage", hers)
			h.sends(mine, "PrivateMessage", his, "activity.to", first)
			erin.sends(mine, "PrivateMessage", hers)
			h.want("before the group is known", placed, "application mallory f", "application mallory f", "application dave f", "application erin f")
			h.sends(mine, "Welcome", h.group.Welcome(h.device))
			h.sends(mine, "PrivateMessage", h.group.Message(), "activity.to", last)
			h.want("of an invitation", placed, "application mallory f", "application mallory f", "application 1 dave t", "application 2 erin t", "application 3 dave t")
			h.want("state", stateOfJoined, "active 0 1 3 3 f")
			if err := h.join(""); err != nil {
				t.Fatal(err)
			}
			h.want("in the group", placed, "application 1 dave t", "application 2 erin t", "application 3 dave t")
		})
	}
}
