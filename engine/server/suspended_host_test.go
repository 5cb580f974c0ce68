package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// While the host of a conversation is suspended, nothing is put in order. Its members here and on
// other servers are told that the host does not answer, so that their programs send again later.
func TestASuspendedUserHostsNothing(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	him := string(k.local.ID(k.bob))
	phone, carols := mlstest.NewDevice(him, start), mlstest.NewDevice(string(k.carol.ID), start)
	k.add(phone)
	k.add(carols)
	his := k.invite()
	k.post(k.device.Identity, "/api/keypackages", map[string]any{"keyPackages": []any{map[string]any{"deviceId": "laptop", "content": k.device.Package}}}).want(t, 201)
	made, next := k.group.Commit(phone, mlstest.Change{})
	message, commit := map[string]any{"message": k.group.Message()}, map[string]any{"commit": made, "groupInfo": next.Info(phone)}
	asked := map[string]func() response{
		"a member here sends":           func() response { return k.post(him, his+"/messages", message) },
		"a member here commits":         func() response { return k.post(him, his+"/commits", commit) },
		"a member here asks for resets": func() response { return k.post(him, his+"/reset", map[string]any{}) },
		"a member here reads":           func() response { return k.get(his+"/group-info", bearerToken(k.tokens[him])) },
		"a member here is out of step": func() response {
			return k.post(him, "/api/mls/recovery-reports", map[string]any{"conversationId": strings.TrimPrefix(his, "/api/conversations/"), "reason": "forked", "epoch": 0})
		},
		"a member elsewhere sends": func() response { return k.submit("/messages", message) },
		"a member elsewhere reads": func() response { return k.look("/log", k.carolKey) },
	}
	k.state(k.alice, instance.UserSuspended)
	for name, ask := range asked {
		var p struct{ Type string }
		r := ask()
		if err := json.Unmarshal(r.body, &p); err != nil || r.StatusCode != http.StatusServiceUnavailable || !strings.HasSuffix(p.Type, "/host-unreachable") || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s, want 503 host_unreachable", name, r.StatusCode, r.body)
		}
	}
	k.post(him, "/api/keypackages/claim", map[string]any{"actor": k.device.Identity}).want(t, 404)
	k.state(k.alice, instance.UserActive)
	k.post(him, "/api/keypackages/claim", map[string]any{"actor": k.device.Identity}).want(t, 200)
	k.post(him, his+"/messages", message).want(t, 201)
	k.look("/log", k.carolKey).want(t, 200)
}
