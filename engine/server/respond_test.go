package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
)

func TestEveryKindOfFaultHasAStatus(t *testing.T) {
	t.Parallel()
	for _, k := range fault.Kinds() {
		if status := refusals[k]; http.StatusText(status) == "" || status < 400 {
			t.Errorf("refusals[%d] = %d, want a status of a failure", k, status)
		}
	}
	if len(refusals) != len(fault.Kinds()) {
		t.Errorf("refusals has %d rows, want %d", len(refusals), len(fault.Kinds()))
	}
}

// linesAt returns limits for the lines of the log. Each limit has the rate r.
func linesAt(r policy.Rate) lines {
	return lines{policy.RefusedLines.SharedAt(r, time.Now), policy.UnprovenLines.SharedAt(r, time.Now), policy.FailureLines.SharedAt(r, time.Now)}
}

// bare returns a server with one route and the server's log. The route answers with the error that
// fail() returns.
func bare(path string, fail func() error) (http.Handler, *Server, *bytes.Buffer) {
	var logged bytes.Buffer
	s := &Server{Deps: Deps{Log: slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})), Now: time.Now},
		clients: &clients{}, metrics: newMetrics(prometheus.NewRegistry()), lines: linesAt(policy.Rate{PerSecond: 1, Burst: 1})}
	r := s.newRouter()
	s.addRoute(r, http.MethodGet, path, func(*answer, *http.Request, httprouter.Params) error { return fail() })
	return s.observeRequests(r), s, &logged
}

func TestRefusalsTellWhatMayBeKnown(t *testing.T) {
	t.Parallel()
	secret := errors.New(`ERROR: relation "objects" does not exist (SQLSTATE 42P01)`)
	for _, c := range []struct {
		name, path string
		err        error
		status     int
		retry      string
		want       map[string]any
	}{
		{"a bug", "/x", secret, 500, "", map[string]any{"type": problems + "internal-error", "title": "Internal error", "detail": "internal error"}},
		{"a bug that has words", "/x", fault.Wrap(fault.Internal, "table objects", secret).WithCode("sql").At("/a"), 500, "",
			map[string]any{"type": problems + "internal-error", "title": "Internal error", "detail": "internal error"}},
		{"the operator's mistake", "/x", fault.New(fault.Config, "the key file rsa.pem is a link"), 500, "",
			map[string]any{"type": problems + "internal-error", "title": "Internal error", "detail": "internal error"}},
		{"words for outside", "/x", fmt.Errorf("parse body: %w", fault.Wrap(fault.Invalid, "an id is missing", secret)), 400, "",
			map[string]any{"type": problems + "bad-request", "title": "Bad request", "detail": "an id is missing"}},
		{"a code and a place", "/x", fault.New(fault.Unprocessable, "'explode' is not an action").WithCode("unknown_action").At("/action"), 422, "",
			map[string]any{"type": problems + "unknown-action", "title": "Unknown action", "detail": "'explode' is not an action",
				"errors": []any{map[string]any{"pointer": "/action", "detail": "'explode' is not an action"}}}},
		{"the API's result", "/api/x", fault.New(fault.Unprocessable, "no").WithCode("unknown_action"), 422, "",
			map[string]any{"type": problems + "unknown-action", "title": "Unknown action", "detail": "no", "success": false, "error": "unknown_action", "instance": "/api/x"}},
		{"how long to wait", "/x", fault.New(fault.RateLimited, "slow down").After(1500 * time.Millisecond), 429, "2",
			map[string]any{"type": problems + "rate-limited", "title": "Rate limited", "detail": "slow down"}},
		{"overload", "/x", fault.New(fault.Unavailable, "later"), 503, "5", map[string]any{"type": problems + "unavailable", "title": "Unavailable", "detail": "later"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, _, logged := bare(c.path, func() error { return c.err })
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
			var got map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			id := w.Header().Get("X-Request-Id")
			c.want["status"], c.want["request_id"] = float64(c.status), id
			if w.Code != c.status || fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%d %v\nwant %d %v", w.Code, got, c.status, c.want)
			}
			if h := w.Header(); h.Get("Content-Type") != "application/problem+json" || h.Get("Retry-After") != c.retry || h.Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v, want a problem, Retry-After %q and no copies", h, c.retry)
			}
			if strings.Contains(w.Body.String(), "42P01") {
				t.Error("PRV-15: the answer shows what went wrong inside")
			}
			if id == "" || !strings.Contains(logged.String(), id) {
				t.Errorf("log %s, want a line with the request's id %s", logged, id)
			}
		})
	}
}

func TestLogOfRefusalsCannotBeFlooded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, level string
		err         error
		min, max    int
	}{
		{"refusals", "INFO", fault.New(fault.Invalid, "no"), 1, 5},
		{"overload", "WARN", fault.New(fault.Unavailable, "later"), 1, 5},
		{"bugs", "ERROR", errors.New("unexpected"), 50, 50},
	} {
		h, _, logged := bare("/x", func() error { return c.err })
		for range 50 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil))
		}
		if n := strings.Count(logged.String(), `"level":"`+c.level+`"`); n < c.min || n > c.max {
			t.Errorf("%s: 50 gave %d lines at level %s, want %d to %d", c.name, n, c.level, c.min, c.max)
		}
	}
}

// If one client is refused again and again, the log still shows refusals of other clients.
func TestARefusedClientHidesNobodyElseFromTheLog(t *testing.T) {
	t.Parallel()
	for path, err := range map[string]error{
		"/x":           fault.New(fault.Invalid, "no"),
		"/users/inbox": fault.New(fault.Unauthenticated, "the signature does not verify"),
		"/y":           fault.New(fault.Unavailable, "later"),
	} {
		h, s, logged := bare(path, func() error { return err })
		s.lines = newLines(func() time.Time { return time.Time{} })
		ask := func(address string) (shown bool) {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = address + ":1"
			logged.Reset()
			h.ServeHTTP(httptest.NewRecorder(), r)
			return strings.Contains(logged.String(), `"level":"INFO"`) || strings.Contains(logged.String(), `"level":"WARN"`)
		}
		shown := 0
		for n := range 50 {
			if ask(fmt.Sprint("192.0.2.", n%5)) {
				shown++
			}
		}
		if shown < 10 || shown > 15 || !ask("198.51.100.1") {
			t.Errorf("%s: of 50 refusals of one network %d are shown, want 15 at most, and then one of another", path, shown)
		}
	}
}

// A peer gets the id of its refused request. By this id the operator finds the reason in the log.
func TestARefusedSignatureIsFoundInTheLog(t *testing.T) {
	t.Parallel()
	err := error(fault.New(fault.NotFound, "there is no such inbox"))
	h, _, logged := bare("/inbox", func() error { return err })
	ask := func() http.Header {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/inbox", nil))
		return w.Header()
	}
	for range 50 { // these requests are for an address that does not exist
		ask()
	}
	refusal := fault.New(fault.Unauthenticated, "content-digest does not fit the body").WithCode("digest_mismatch")
	err = fmt.Errorf("receive: rfc9421 signature by %q: digest: %w", "https://peer.example/users/bob#main-key", refusal)
	id := ask().Get("X-Request-Id")
	var line struct{ Level, Msg, Request, Code, Err string }
	for l := range strings.Lines(logged.String()) {
		if strings.Contains(l, id) {
			if err := json.Unmarshal([]byte(l), &line); err != nil {
				t.Fatal(err)
			}
		}
	}
	if line.Level != "INFO" || line.Msg != "signature refused" || line.Request != id || line.Code != "digest_mismatch" || line.Err != err.Error() {
		t.Errorf("the log says %+v of request %s, want the refusal with its code at level Info", line, id)
	}
}

func TestTheLogSaysWhatTheOperatorCanDo(t *testing.T) {
	t.Parallel()
	h, _, logged := bare("/x", func() error { return fault.New(fault.Unavailable, "later").WithHint("lightweb user list") })
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil))
	if !strings.Contains(logged.String(), `"hint":"lightweb user list"`) || strings.Contains(w.Body.String(), "lightweb user") {
		t.Errorf("the log says %s, the answer %s, want the hint in the log only", logged, w.Body)
	}
}

func TestPanicAnswersOneRequestAndStopsNothing(t *testing.T) {
	t.Parallel()
	h, s, logged := bare("/x/:y", func() error { panic("boom") })
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x/1", nil))
		if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "boom") {
			t.Errorf("%d %s, want 500 without the panic's words", w.Code, w.Body)
		}
	}
	if !strings.Contains(logged.String(), "boom") || !strings.Contains(logged.String(), "respond_test.go") {
		t.Error("the log does not show where it happened")
	}
	if got := testutil.ToFloat64(s.metrics.requests.WithLabelValues("/x/:y", "500")); got != 2 {
		t.Errorf("counted %v failures under the route, want 2", got)
	}
}

func TestHalfAnAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	s := &Server{Deps: Deps{Log: slog.New(slog.DiscardHandler)}, clients: &clients{}, metrics: newMetrics(prometheus.NewRegistry()), lines: linesAt(policy.Rate{PerSecond: 1, Burst: 1})}
	r := s.newRouter()
	s.addRoute(r, http.MethodGet, "/", func(a *answer, _ *http.Request, _ httprouter.Params) error {
		a.send(http.StatusOK, "text/plain", []byte("half"))
		return errors.New("the rest is missing")
	})
	defer func() {
		if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // it is a panic's value
			t.Errorf("panic %v, want http.ErrAbortHandler", v)
		}
	}()
	s.observeRequests(r).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}

func TestNodeInfoCountsRoughly(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 0, 1: 1, 99: 99, 100: 100, 123: 120, 1299: 1200, 54321: 54000} {
		if got := roundRoughly(n); got != want {
			t.Errorf("rough(%d) = %d, want %d", n, got, want)
		}
	}
}
