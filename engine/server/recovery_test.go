package server_test

import (
	"testing"

	"github.com/google/uuid"
)

// A device reports that it cannot continue in one of its user's conversations. The server refuses
// too many reports.
func TestADeviceReportsThatItCannotGoOn(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	me := k.device.Identity
	report := func(id any, reason string, status int) {
		t.Helper()
		k.post(me, "/api/mls/recovery-reports", map[string]any{"conversationId": id, "reason": reason, "epoch": 0}).want(t, status)
	}
	report(k.id, "undecryptable", 204)
	report(k.id, "bored", 422)
	report(uuid.New(), "undecryptable", 404)
	report("x", "undecryptable", 422)
	for range 16 {
		report(k.id, "rejoin_failed", 204)
	}
	report(k.id, "rejoin_failed", 429)
	var got struct{ Status string }
	k.get(k.path, bearerToken(k.tokens[me])).want(t, 200).decode(t, &got)
	if got.Status != "active" {
		t.Errorf("the reports leave the conversation %s", got.Status)
	}
}
