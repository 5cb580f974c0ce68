package engine_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// logIn tries to sign in with a password. The request comes from the given address of this
// machine.
func logIn(t testing.TB, i *enginetest.Instance, address, name, password string) enginetest.Answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"username": name, "password": password})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.URL+"/api/session", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Answer{Status: resp.StatusCode, Header: resp.Header, Body: answer}
}

// passwordFile returns a file that holds a password.
func passwordFile(t testing.TB, password string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hashings returns how many passwords the engine has hashed.
func (s *siege) hashings() int {
	s.Helper()
	return int(s.home.Metric(s, "lightweb_password_hashings_total"))
}

func guessPasswords(s *siege) {
	const password = "correct horse battery staple"
	runAll(s.T, s.home, []command{{"user passwd alice --password-file " + passwordFile(s, password), 0, ""}})
	var first map[string]any
	for n, name := range []string{"alice", "bob", "nobody", "NOBODY", "lightweb", ""} {
		before := s.hashings()
		a := logIn(s, s.home, "127.4.0."+string(rune('1'+n)), name, "a wrong guess")
		s.answered(a, 401)
		if n := s.hashings() - before; n != 1 {
			s.Errorf("%q costs %d hashings, want 1", name, n)
		}
		var body map[string]any
		a.Decode(s, &body)
		delete(body, "request_id")
		got := map[string]any{"body": body, "size": len(a.Body)}
		for header := range a.Header {
			got[header] = a.Header.Get(header)
		}
		delete(got, "X-Request-Id")
		delete(got, "Date")
		if first == nil {
			first = got
		}
		if d := cmp.Diff(first, got); d != "" {
			s.Errorf("%q is answered otherwise than alice:\n%s", name, d)
		}
	}
	before := s.hashings()
	s.answered(logIn(s, s.home, "127.4.1.1", "alice", strings.Repeat("x", 1<<20)), 413)
	looked := 0
	for range 60 {
		a := logIn(s, s.home, "127.4.2.1", "alice", "a wrong guess")
		s.answered(a, 401, 429)
		switch {
		case a.Status == 401:
			looked++
		case a.Header.Get("Retry-After") == "":
			s.Error("429 says not when to come again")
		}
	}
	if n := s.hashings() - before; n != looked || looked == 60 {
		s.Errorf("of 60 guesses and a megabyte %d cost work, and %d were looked at", n, looked)
	}
	a := logIn(s, s.home, "127.5.0.1", "alice", password)
	s.answered(a, 201)
	var made struct{ Session string }
	a.Decode(s, &made)
	owner := &enginetest.User{Home: s.home, Name: "alice", Token: made.Session}
	s.answered(owner.Ask(s, http.MethodGet, "/api/feed", nil), 200)
	if log := s.home.Log(); strings.Contains(log, "a wrong guess") || strings.Contains(log, password) {
		s.Error("the log holds a password")
	}
}

// looks asks for a page as a browser does, but does not follow a redirect.
func (s *siege) looks(address string) *http.Response {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, address, nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	return s.asks(r)
}

// signsIn returns a function that tries to sign in. The body of its request has one additional
// member.
func (s *siege) signsIn(name, value string) func(address string) *http.Response {
	return func(address string) *http.Response {
		s.Helper()
		body, err := json.Marshal(map[string]string{"username": "nobody", "password": "a guess of mine", name: value})
		if err != nil {
			s.Fatal(err)
		}
		r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, address, bytes.NewReader(body))
		if err != nil {
			s.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		return s.asks(r)
	}
}

func (s *siege) asks(r *http.Request) *http.Response {
	s.Helper()
	resp, err := besieger.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		s.Error(err)
	}
	return resp
}
