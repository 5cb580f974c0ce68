package inbox_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// MOD-02: messages of an actor that the operator refuses are treated like those of an actor that
// the user blocks, although a host that is not refused passes them on.
func TestRefusedActorsInConversations(t *testing.T) {
	for name, refuse := range map[string]func(*hosted){
		"a suspended actor": func(h *hosted) { h.Suspend(h.ID("q:/mallory")) },
		"a blocked domain":  func(h *hosted) { h.Block("127.0.0.3") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(t)
			h.Actor("q:/mallory")
			refuse(h)
			by := func(s *said) { s.object["attributedTo"] = h.Long("q:/mallory") }
			h.begun(by)
			h.want("invited by a refused actor", `SELECT uri FROM conversations`)
			h.sendWelcomeOK(h.device)
			if err := h.join(""); err != nil {
				t.Fatal(err)
			}
			if err := h.put("PrivateMessage", h.group.Message(), 1, by); err != nil {
				t.Fatal(err)
			}
			commit, _ := h.group.Commit(h.host, mlstest.Change{})
			if err := h.put("PublicMessage", commit, 1, by); err != nil {
				t.Fatal(err)
			}
			h.want("messages", keptMessages, "welcome 0 dave f f", "application 2 1 mallory t t", "commit 3 1 mallory t t")
			h.want("events", toldOf, "conversation.welcome", "mls.commit.received")
		})
	}
}
