package engine_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// An engine that has started again knows a conversation before anything is asked of it.
func TestAnEngineKnowsItsConversationsAfterARestart(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	alice := i.CreateUser(t, "alice")
	device := mlstest.NewDevice(alice.ID, time.Now())
	if status := askJSON(t, alice, http.MethodPost, "/api/conversations", "", map[string]any{"groupInfo": mlstest.NewGroup(device).Info(device)}, nil); status != http.StatusCreated {
		t.Fatalf("a conversation is answered %d", status)
	}
	i.Stop(t)
	i.Start(t)
	enginetest.Eventually(t, "a conversation is live that nobody has asked for", func() bool { return i.Metric(t, "lightweb_conversation_live") == 1 })
}
