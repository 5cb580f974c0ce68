package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/server"
)

func TestATokenOfScopeAdminDoesWhatOneOfScopeWriteDoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin, reads := bearerToken(f.token(f.alice, instance.ScopeAdmin)), bearerToken(f.token(f.alice, instance.ScopeRead))
	var d struct {
		Paths map[string]map[string]struct{ Description string }
	}
	if err := json.Unmarshal(server.OpenAPI(), &d); err != nil {
		t.Fatal(err)
	}
	const refusal = `"error":"insufficient_scope"`
	asked := 0
	for path, methods := range d.Paths {
		for method, operation := range methods {
			if !strings.HasPrefix(operation.Description, "Scope write") {
				continue
			}
			asked++
			address := strings.ReplaceAll(path, "{id}", uuid.NewString())
			if r := f.ask(strings.ToUpper(method), address, admin); strings.Contains(string(r.body), refusal) {
				t.Errorf("%s %s is refused to scope admin: %s", method, path, r.body)
			}
			if r := f.ask(strings.ToUpper(method), address, reads); r.StatusCode != http.StatusForbidden || !strings.Contains(string(r.body), refusal) {
				t.Errorf("%s %s is answered %d to scope read: %s", method, path, r.StatusCode, r.body)
			}
		}
	}
	if asked < 17 {
		t.Errorf("%d operations of scope write were asked, want at least 17", asked)
	}
}
