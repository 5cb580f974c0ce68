package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/server"
)

// illegible lists texts that no address may contain: NUL, bytes that begin no character, halves of
// surrogates, an overlong slash, and a character that is cut off.
var illegible = []string{"%00", "a%00b", "%ff", "%fe%ff", "%ed%a0%80", "%ed%bf%bf", "%c0%af", "%e2%82"}

// parameters lists all query parameters that any address knows, and one that no address knows.
var parameters = []string{"feed", "limit", "cursor", "page", "resource", "rel", "status", "domain", "seconds", "uri", "handle", "q", "type", "direction", "unread",
	"backfill", "after", "host", "activity", "action", "outcome", "device", "everywhere", "state", "code", "iss", "error", "unknown"}

func TestTheParametersThatAreTriedAreThoseOfTheDescription(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	inQuery := regexp.MustCompile(`"in":\s*"query",\s*"name":\s*"([^"]+)"|"name":\s*"([^"]+)",\s*"in":\s*"query"`)
	found := inQuery.FindAllStringSubmatch(string(page), -1)
	if n := strings.Count(strings.ReplaceAll(string(page), `"in": "query"`, `"in":"query"`), `"in":"query"`); n == 0 || n != len(found) {
		t.Fatalf("the description has %d parameters in queries, and %d are found", n, len(found))
	}
	for _, f := range found {
		if name := f[1] + f[2]; !slices.Contains(parameters, name) {
			t.Errorf("TestNoAddressTakesWhatIsNoText does not try %s", name)
		}
	}
}

var placeholder = regexp.MustCompile(`[:*][a-z]+`)

// FRS-06: every address refuses illegible text in its path and in its query, in names and in
// values.
func TestNoAddressTakesWhatIsNoText(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	f := newFixture(t, func(d *server.Deps) {
		d.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	token := bearerToken(f.token(f.alice, instance.ScopeRead, instance.ScopeWrite))
	admin, asked := f.server.Admin(true), 0
	refused := func(route server.Route, target string) {
		t.Helper()
		asked++
		h, host, method := f.public, "example.org", route.Method
		if route.Admin {
			h, host = admin, "localhost"
		}
		r := ask(t, h, method, target, "{}", token, func(r *http.Request) {
			r.Host = host
			r.Header.Set("Content-Type", "application/json")
		})
		if got := r.Header.Get("Content-Type"); r.StatusCode != http.StatusBadRequest || got != "application/problem+json" {
			t.Errorf("%s %s: %d %s, want 400 and a problem: %s", method, target, r.StatusCode, got, r.body)
		}
	}
	routes := f.server.Routes()
	for _, path := range []string{"/users/:user/inbox", "/users/:user/objects/:thing", "/api/feed/:entry", "/.well-known/webfinger"} {
		if !slices.ContainsFunc(routes, func(r server.Route) bool { return r.Path == path }) {
			t.Errorf("%s is not among the routes that are tried: %v", path, routes)
		}
	}
	for _, route := range routes {
		whole := placeholder.ReplaceAllString(strings.ReplaceAll(route.Path, ":user", "alice"), "0")
		for _, bad := range illegible {
			for _, at := range placeholder.FindAllStringIndex(route.Path, -1) {
				path := placeholder.ReplaceAllString(route.Path[:at[0]], "alice") + bad + placeholder.ReplaceAllString(route.Path[at[1]:], "0")
				refused(route, path)
			}
			for _, name := range parameters {
				refused(route, whole+"?"+name+"="+bad)
			}
			refused(route, whole+"?"+bad+"=1")
			refused(route, whole+"?"+bad)
			refused(route, whole+"?page=true&&cursor=a&cursor="+bad)
		}
		refused(route, whole+"?cursor=%ud800")
	}
	if logged.Len() > 0 {
		t.Errorf("after %d requests the log holds, above Info:\n%.2000s", asked, logged.String())
	}
	f.get("/.well-known/webfinger?resource=acct:alice@example.org&rel=%C3%A9%F0%9F%99%82+").want(t, 200)
	f.get("/users/alice/outbox?page=true").want(t, 200)
}
