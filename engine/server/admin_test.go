package server_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/server"
)

func TestAdminIsReachedByItsAddressOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := func(r *http.Request) {
		local := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 9090}
		*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
	}
	for host, status := range map[string]int{"127.0.0.1:9090": 200, "127.0.0.1": 200, "localhost:9090": 200, "LOCALHOST": 200, "[::1]:9090": 200, "[::1]": 200,
		"10.0.0.5:9090": 200, "10.0.0.6:9090": 403, "rebound.example:9090": 403, "localhost.rebound.example": 403, "127.0.0.1.rebound.example": 403, "": 403} {
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			if r := ask(t, f.admin, http.MethodGet, path, "", func(r *http.Request) { r.Host = host }, at); r.StatusCode != status {
				t.Errorf("%s at %q: %d, want %d", path, host, r.StatusCode, status)
			}
		}
	}
}

func TestProfilesAreShownWhenSwitchedOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	here := func(r *http.Request) { r.Host = "localhost" }
	ask(t, f.admin, http.MethodGet, "/debug/pprof/", "", here).want(t, http.StatusNotFound)
	deps := f.deps
	deps.Metrics = prometheus.NewRegistry()
	on := server.New(deps).Admin(true)
	for path, status := range map[string]int{"/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/profile?seconds=1": 200,
		"/debug/pprof/cmdline": 404, "/debug/pprof/nothing": 404} {
		ask(t, on, http.MethodGet, path, "", here).want(t, status)
	}
	ask(t, on, http.MethodGet, "/debug/pprof/heap", "", func(r *http.Request) { r.Host = "rebound.example" }).want(t, http.StatusForbidden)
	f.get("/debug/pprof/").want(t, http.StatusNotFound)
}

func TestAdminTellsHealth(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	here := func(r *http.Request) { r.Host = "localhost" }
	f.get("/users/alice").want(t, 200)
	f.get("/users/bob").want(t, 200)
	f.get("/nothing").want(t, 404)
	f.eventsWait = true
	if r := ask(t, f.admin, http.MethodGet, "/readyz", "", here).want(t, http.StatusOK); string(r.body) != "ready, Redis takes no events: they wait\n" {
		t.Errorf("without Redis: %s", r.body)
	}
	f.ready = errors.New("dial tcp 10.0.0.1:5432: refused")
	r := ask(t, f.admin, http.MethodGet, "/readyz", "", here).want(t, http.StatusServiceUnavailable)
	if strings.Contains(string(r.body), "5432") || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s, want a problem without internals", r.body)
	}
	ask(t, f.admin, http.MethodGet, "/healthz", "", here).want(t, http.StatusOK)
	m := string(ask(t, f.admin, http.MethodGet, "/metrics", "", here).want(t, http.StatusOK).body)
	for _, line := range []string{`lightweb_http_requests_total{code="200",route="/users/:user"} 2`, `lightweb_http_requests_total{code="404",route="none"} 1`,
		`lightweb_http_request_seconds_count{route="/users/:user"} 2`} {
		if !strings.Contains(m, line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
	if strings.Contains(m, "alice") {
		t.Error("metrics name a user")
	}
}

// Readiness is answered even if the database hangs, because a load balancer waits for the answer.
func TestReadinessIsAnsweredWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	hangs := func(d *server.Deps) {
		d.Ready = func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Hour):
				return nil
			}
		}
	}
	f := newFixture(t, hangs)
	synctest.Test(t, func(t *testing.T) {
		asked := time.Now()
		r := ask(t, f.admin, http.MethodGet, "/readyz", "", func(r *http.Request) { r.Host = "localhost" }).want(t, http.StatusServiceUnavailable)
		if took := time.Since(asked); took >= 2*time.Second || !strings.Contains(string(r.body), "the engine is not ready") {
			t.Errorf("after %v: %s, want within two seconds that it is not ready", took, r.body)
		}
	})
}
