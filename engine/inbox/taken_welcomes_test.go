package inbox_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/registry"
)

// Welcomes that devices have taken take no places of messages that wait. Those that nobody can
// read do.
func TestTakenWelcomesMakeRoom(t *testing.T) {
	h := newHosted(t)
	strangers(t, h.Scene, registry.AllowStrangers)
	for range 50 {
		g := *h.group
		g.ID = "urn:uuid:" + uuid.NewString()
		h.sends(mine, "PrivateMessage", g.Message())
	}
	h.grow()
	h.sends(mine, "Welcome", h.group.Welcome(h.device))
	h.want("a Welcome too many", `SELECT kind FROM mls_inbox WHERE kind = 'welcome'`)
	if _, err := h.DB(t, h.Alice).Exec(`DELETE FROM mls_inbox WHERE arrival = (SELECT min(arrival) FROM mls_inbox)`); err != nil {
		t.Fatal(err)
	}
	h.sends(mine, "Welcome", h.group.Welcome(h.device))
	if err := h.join(h.group.ID); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		g := *h.group
		g.ID = "urn:uuid:" + uuid.NewString()
		h.sends(mine, "PrivateMessage", g.Message())
	}
	h.want("messages that wait", `SELECT count(*)::text FROM mls_inbox WHERE conversation_id IS NULL AND kind <> 'welcome'`, "50")
	if _, err := h.DB(t, h.Alice).Exec(`DELETE FROM mls_inbox`); err != nil {
		t.Fatal(err)
	}
	for n := range 52 {
		h.sends(mine, "Welcome", []byte(fmt.Sprint("\x00\x01\x00\x03 of tomorrow ", n)))
	}
	h.want("Welcomes that cannot be read", `SELECT count(*)::text FROM mls_inbox`, "50")
}
