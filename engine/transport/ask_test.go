package transport

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestAskReturnsTheAnswerWhateverItsStatus(t *testing.T) {
	t.Parallel()
	answers := map[string]func(http.ResponseWriter){
		"/taken": func(w http.ResponseWriter) {
			w.Header().Set("Idempotent-Replayed", "true")
			w.WriteHeader(http.StatusCreated)
		},
		"/conflict": func(w http.ResponseWriter) { w.WriteHeader(http.StatusConflict) },
		"/busy": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "9")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"/moved": func(w http.ResponseWriter) {
			w.Header().Set("Location", "/taken")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"/broken": func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"/page":   func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html") },
		"/long":   func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat(" ", 200)) },
	}
	p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, s seen) {
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		answers[s.path](w)
		fmt.Fprint(w, `{"said":"`+s.method+s.body+s.header.Get("Idempotency-Key")+`"}`)
	})
	c, _ := newClient(t, loopback(), closed(""))
	for path, want := range map[string]int{"/taken": 201, "/conflict": 409, "/busy": 429, "/moved": 307, "/broken": 500} {
		r, err := c.Ask(context.Background(), Question{Method: http.MethodPost, URL: p.id(path), Body: []byte("{}"), As: *testKeys(), IdempotencyKey: "key"})
		if err != nil || r.Status != want {
			t.Errorf("%s: %+v, %v, want %d", path, r, err, want)
			continue
		}
		if body := string(r.Body); body != `{"said":"POST{}key"}` && want != 500 || r.Replayed != (want == 201) || (r.RetryAfter > 0) != (want == 429) {
			t.Errorf("%s: %q, replayed %v, after %v", path, body, r.Replayed, r.RetryAfter)
		}
	}
	for _, path := range []string{"/page", "/long"} {
		if r, err := c.Ask(context.Background(), Question{Method: http.MethodGet, URL: p.id(path), As: *testKeys(), Limit: 100}); fault.KindOf(err) != fault.Protocol {
			t.Errorf("%s: %+v, %v, want it refused", path, r, err)
		}
	}
	for _, s := range p.saw() {
		if s.path == "/taken" && (s.method != http.MethodPost || s.header.Get("Content-Type") != "application/json" || s.knock == "unsigned") {
			t.Errorf("asked with %+v", s)
		}
	}
}

// Ask tries the second dialect only if the host answers 401. Any other refusal is the answer that
// Ask returns.
func TestAskKnocksASecondTimeForTheSignatureAlone(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{http.StatusUnauthorized: 2, http.StatusForbidden: 1, http.StatusBadRequest: 1} {
		p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
		})
		c, _ := newClient(t, loopback(), closed(""))
		r, err := c.Ask(context.Background(), Question{Method: http.MethodPost, URL: p.id("/x"), Body: []byte("{}"), As: *testKeys()})
		if err != nil || r.Status != status || len(p.saw()) != want {
			t.Errorf("%d: %+v, %v, asked %d times, want %d", status, r, err, len(p.saw()), want)
		}
	}
	p := newPeer(t, nil, func(http.ResponseWriter, *http.Request, seen) { t.Error("a host behind the gate was asked") })
	c, _ := newClient(t, loopback(), closed(p.id("").Host()))
	if _, err := c.Ask(context.Background(), Question{Method: http.MethodGet, URL: p.id("/x"), As: *testKeys()}); err == nil {
		t.Error("the gate let it through")
	}
}
