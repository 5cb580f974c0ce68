package server_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// A program lost the answer and publishes the same packages again. It gets their first ids and can
// revoke the packages by these ids.
func TestKeyPackagesThatArePublishedAgainHaveTheirFirstIDs(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	him := string(k.local.ID(k.bob))
	token := bearerToken(k.tokens[him])
	type item struct {
		ID                    uuid.UUID
		DeviceID              string
		LastResort, Available bool
	}
	publish := func(packages ...any) []item {
		t.Helper()
		var got struct{ Items []item }
		k.post(him, "/api/keypackages", map[string]any{"keyPackages": packages}).want(t, 201).decode(t, &got)
		return got.Items
	}
	once := map[string]any{"deviceId": "phone", "content": mlstest.NewDevice(him, start).Package}
	last := map[string]any{"deviceId": "phone", "content": mlstest.NewDevice(him, start).Package, "lastResort": true}
	first := publish(once, last)
	otherwise := map[string]any{"deviceId": "laptop", "content": once["content"], "lastResort": true}
	again := publish(last, otherwise)
	if len(first) != 2 || len(again) != 2 || again[0] != first[1] || again[1] != first[0] || !again[0].Available || !again[1].Available || first[0].DeviceID != "phone" {
		t.Errorf("published are %+v, and again %+v", first, again)
	}

	next := map[string]any{"deviceId": "phone", "content": mlstest.NewDevice(him, start).Package, "lastResort": true}
	revoke := func(id uuid.UUID, want int) {
		t.Helper()
		ask(t, k.public, http.MethodDelete, "/api/keypackages/"+id.String(), "", token).want(t, want)
	}
	revoke(again[1].ID, 204)
	revoke(again[1].ID, 404)
	over := publish(last, next, once)
	if over[0].ID != first[1].ID || over[0].Available || !over[1].Available || over[2].ID != first[0].ID || over[2].Available {
		t.Errorf("one that was replaced, its successor, and one that was revoked are shown as %+v", over)
	}
}
