package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/server"
)

func TestPagesOfNamedOriginsUseTheAPI(t *testing.T) {
	t.Parallel()
	const app = "https://app.example.org"
	f := newFixture(t, func(d *server.Deps) { d.CORSOrigins = []string{app, "tauri://localhost"} })
	token := bearerToken(f.token(f.alice, "read"))
	preflight := header("Access-Control-Request-Method", "POST")
	for _, c := range []struct {
		name, method, path, origin string
		how                        []asking
		status                     int
		allowed                    bool
	}{
		{"a page", "GET", "/api/feed", app, []asking{token}, 200, true},
		{"an app", "GET", "/api/feed", "tauri://localhost", []asking{token}, 200, true},
		{"a page without a token", "GET", "/api/feed", app, nil, 401, true},
		{"a page that asks for nothing there", "GET", "/api/nothing", app, nil, 404, true},
		{"CLI-08 a page of others", "GET", "/api/feed", "https://evil.example", []asking{token}, 200, false},
		{"CLI-08 in another scheme", "GET", "/api/feed", "http://app.example.org", []asking{token}, 200, false},
		{"CLI-08 below it", "GET", "/api/feed", "https://x.app.example.org", []asking{token}, 200, false},
		{"CLI-08 a page of nowhere", "GET", "/api/feed", "null", []asking{token}, 200, false},
		{"no page", "GET", "/api/feed", "", []asking{token}, 200, false},
		{"a page that asks first", "OPTIONS", "/api/activity", app, []asking{preflight}, 204, true},
		{"CLI-08 a page of others that asks first", "OPTIONS", "/api/activity", "https://evil.example", []asking{preflight}, 200, false},
		{"what is no API", "GET", "/users/alice", app, nil, 200, false},
	} {
		r := f.ask(c.method, c.path, append(c.how, header("Origin", c.origin))...)
		h := r.Header
		got := h.Get("Access-Control-Allow-Origin")
		if r.StatusCode != c.status || c.allowed && got != c.origin || !c.allowed && got != "" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %v, want %d and it to be allowed: %t", c.name, r.StatusCode, h, c.status, c.allowed)
		}
		if vary := strings.Join(h.Values("Vary"), ","); strings.HasPrefix(c.path, "/api/") && !strings.Contains(vary, "Origin") {
			t.Errorf("%s: Vary %q, want Origin in it", c.name, vary)
		}
		if c.status == http.StatusNoContent && (!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization") || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST")) {
			t.Errorf("%s: %v, want what may be sent", c.name, h)
		}
		if c.status == http.StatusOK && c.allowed && !strings.Contains(h.Get("Access-Control-Expose-Headers"), "Link") {
			t.Errorf("%s: %v, want what may be read", c.name, h)
		}
	}
	none := newFixture(t)
	if h := none.get("/api/feed", header("Origin", app)).Header; h.Get("Access-Control-Allow-Origin") != "" || strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
		t.Errorf("where no origin is named: %v", h)
	}
}
