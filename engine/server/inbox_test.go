package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestInboxAnswersWhatBecameOfAnActivity(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *server.Deps) { d.BodyLimit = 100 })
	for _, c := range []struct {
		name, path, body string
		err              error
		status           int
		header, want     string
	}{
		{"IN-02 accepted", "/users/alice/inbox", `{"a":1}`, nil, 202, "Content-Type", ""},
		{"IN-02 accepted by all", "/inbox", `{"a":1}`, nil, 202, "Content-Type", ""},
		{"IN-01 a media type that is not taken", "/inbox", `{}`, fault.New(fault.Unsupported, "send activity+json"), 415, "", ""},
		{"IN-03 unsigned", "/inbox", `{}`, fault.New(fault.Unauthenticated, "the request is not signed"), 401, "WWW-Authenticate", `Signature realm="lightweb",headers="(request-target) host date digest"`},
		{"IN-04 a name nobody can have", "/users/No-Body/inbox", `{}`, nil, 404, "", ""},
		{"IN-04 a name nobody has", "/users/nobody/inbox", `{}`, fault.New(fault.NotFound, "there is no such inbox"), 404, "", ""},
		{"IN-04 suspended", "/users/alice/inbox", `{}`, fault.New(fault.Gone, "gone"), 410, "", ""},
		{"IN-04 a blocked host", "/inbox", `{}`, fault.New(fault.Forbidden, "no"), 403, "", ""},
		{"IN-04 over a limit", "/inbox", `{}`, fault.New(fault.RateLimited, "no").After(3 * time.Second), 429, "Retry-After", "3"},
		{"IN-04 PAR-01 too big", "/inbox", strings.Repeat("x", 101), nil, 413, "", ""},
		{"as big as may be", "/inbox", strings.Repeat("x", 100), nil, 202, "", ""},
		{"IN-04 bad JSON", "/inbox", `{`, fault.New(fault.Invalid, "no JSON"), 400, "", ""},
		{"IN-04 overload", "/inbox", `{}`, fault.New(fault.Unavailable, "later"), 503, "Retry-After", "5"},
		{"IN-02 a bug", "/inbox", `{}`, fmt.Errorf("select from objects: broken"), 500, "", ""},
	} {
		f.inbox.err = c.err
		r := f.send(c.path, c.body, header("Content-Type", "application/activity+json"))
		if r.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, r.StatusCode, c.status, r.body)
		}
		if c.header != "" && r.Header.Get(c.header) != c.want {
			t.Errorf("%s: %s %q, want %q", c.name, c.header, r.Header.Get(c.header), c.want)
		}
		if c.status == 202 {
			if len(r.body) > 0 || string(f.inbox.body) != c.body || (f.inbox.user == f.alice) != strings.Contains(c.path, "alice") {
				t.Errorf("%s: answered %q, received %q for %q", c.name, r.body, f.inbox.body, f.inbox.user)
			}
		} else if strings.Contains(string(r.body), "objects") || r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("IN-02: %s: %s, want a problem without internals", c.name, r.body)
		}
	}
}

// counting is a reader that counts the bytes that it returns.
type counting struct {
	io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func (*counting) Close() error { return nil }

func TestALargeBodyIsReadOnceTheInboxKnowsItsSender(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *server.Deps) { d.BodyLimit, d.MLSBodyLimit = 100, 1000 })
	for _, c := range []struct {
		name         string
		says, has    int
		err          error
		status, read int
	}{
		{"of a known sender", 1000, 1000, nil, 202, 1000},
		{"of nobody who may", 1000, 1000, fault.New(fault.TooLarge, "the body is too large"), 413, 0},
		{"while there is no room", 1000, 1000, fault.New(fault.Unavailable, "later"), 503, 0},
		{"larger than any may be", 1001, 1001, nil, 413, 0},
		{"that says no length", -1, 1000, nil, 413, 101},
	} {
		f.inbox.err, f.inbox.body = c.err, nil
		body := &counting{Reader: strings.NewReader(strings.Repeat("x", c.has))}
		r := ask(t, f.public, http.MethodPost, "/inbox", "", header("Content-Type", "application/activity+json"), func(r *http.Request) {
			r.Body, r.ContentLength = body, int64(c.says)
		})
		if r.StatusCode != c.status || body.n != c.read || (len(f.inbox.body) > 0) != (c.status == 202) {
			t.Errorf("a large body %s: %d, %d bytes are read and %d received, want %d and %d", c.name, r.StatusCode, body.n, len(f.inbox.body), c.status, c.read)
		}
		if n := f.server.Held(); n != 0 {
			t.Errorf("a large body %s: %d bytes are held afterwards", c.name, n)
		}
	}
	f.inbox.err = fault.New(fault.Forbidden, "no")
	usual := &counting{Reader: strings.NewReader(strings.Repeat("x", 100))}
	ask(t, f.public, http.MethodPost, "/inbox", "", header("Content-Type", "application/activity+json"), func(r *http.Request) { r.Body, r.ContentLength = usual, 100 })
	if usual.n != 100 {
		t.Errorf("of a body of the usual limit %d bytes are read, want all of them", usual.n)
	}
}

func TestAPausedServerTakesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *server.Deps) { d.Paused = true })
	for path, allow := range map[string]string{"/inbox": "", "/users/alice/inbox": "GET, HEAD"} {
		r := f.send(path, `{"a":1}`, header("Content-Type", "application/activity+json"))
		if allowed, said := r.Header["Allow"]; r.StatusCode != 405 || !said || allowed[0] != allow || f.inbox.body != nil {
			t.Errorf("DL-17: POST %s: %d, Allow %q, received %q; want 405, %q and nothing", path, r.StatusCode, r.Header["Allow"], f.inbox.body, allow)
		}
	}
	_, object := f.post(f.alice, "hi", start, vocab.Public)
	for _, path := range []string{"/users/alice", "/actor", "/.well-known/webfinger?resource=acct:alice@example.org", string(object)} {
		if r := f.get(path); r.StatusCode != 200 {
			t.Errorf("GET %s: %d, want 200 although federation is paused", path, r.StatusCode)
		}
	}
	if r := ask(t, f.admin, "GET", "/readyz", "", func(r *http.Request) { r.Host = "localhost" }); r.StatusCode != 200 || !strings.Contains(string(r.body), "paused") {
		t.Errorf("/readyz: %d %s, want that federation is paused", r.StatusCode, r.body)
	}
}

func TestPeersThatBreakOffDoNotReachTheInbox(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	srv := httptest.NewServer(f.public)
	t.Cleanup(srv.Close)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /inbox HTTP/1.1\r\nHost: example.org\r\nContent-Length: 10\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusBadRequest || f.inbox.body != nil {
		t.Errorf("%d, and the inbox has %q, want 400 and nothing", res.StatusCode, f.inbox.body)
	}
}

func TestInboxRefusesWhoComesTooOften(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *server.Deps) { d.Clients = policy.NewLimiter(policy.Rate{PerSecond: 0.1, Burst: 2}, d.Now, 10) })
	from := func(address string) asking { return func(r *http.Request) { r.RemoteAddr = address } }
	for n, c := range []struct {
		name, address, forwarded string
		status                   int
	}{
		{"a client", "192.0.2.1:1", "", 202},
		{"again", "192.0.2.1:2", "", 202},
		{"PAR-14 too often", "192.0.2.1:3", "", 429},
		{"CLI-05 that names somebody else", "192.0.2.1:4", "198.51.100.7", 429},
		{"another", "192.0.2.2:1", "", 202},
		{"behind a proxy", "10.0.0.1:1", "198.51.100.7", 202},
		{"behind the same one", "10.0.0.1:1", "198.51.100.8", 202},
		{"IPv6", "[2001:db8::1]:1", "", 202},
		{"IPv6", "[2001:db8::2]:1", "", 202},
		{"CLI-05 IPv6, the next of its addresses", "[2001:db8::3]:1", "", 429},
	} {
		f.inbox.body = nil
		r := f.send("/inbox", fmt.Sprint(n), from(c.address), header("X-Forwarded-For", c.forwarded))
		if r.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, r.StatusCode, c.status, r.body)
		}
		if c.status == 429 && (r.Header.Get("Retry-After") != "11" || f.inbox.body != nil) {
			t.Errorf("%s: Retry-After %q, and the inbox has %q: want 11, and nothing", c.name, r.Header.Get("Retry-After"), f.inbox.body)
		}
	}
	f.get("/users/alice", from("192.0.2.1:5")).want(t, 200)
}

// A body that is sent slowly fills the memory for bodies. The server refuses another large body
// for now. It reads the slow body to its end.
func TestBodiesThatAreSentSlowlyDoNotFillTheMemory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.server.HoldAtMost(1500)
	body, slow := io.Pipe()
	answered := make(chan response, 1)
	go func() {
		answered <- ask(t, f.public, http.MethodPost, "/inbox", "", func(r *http.Request) { r.Body = body })
	}()
	part := make([]byte, 1000)
	for _, sent := range [][]byte{part, part[:1]} { // while the server reads the second part, the first part counts
		if _, err := slow.Write(sent); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.server.Held(); n < 1000 {
		t.Errorf("%d bytes count, want at least 1000", n)
	}
	r := f.send("/inbox", strings.Repeat("x", 600)).want(t, http.StatusServiceUnavailable)
	if r.Header.Get("Retry-After") == "" || f.inbox.body != nil {
		t.Errorf("PAR-01 PAR-14: Retry-After %q, and the inbox has %d bytes, want a time to wait, and none", r.Header.Get("Retry-After"), len(f.inbox.body))
	}
	f.send("/inbox", "{}").want(t, http.StatusAccepted)
	if _, err := slow.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := slow.Close(); err != nil {
		t.Fatal(err)
	}
	(<-answered).want(t, http.StatusAccepted)
	if n := f.server.Held(); n != 0 {
		t.Errorf("%d bytes still count when all are answered", n)
	}
}

// Programs of alice and bob send through one proxy. The bodies of alice's programs fill only her
// share. bob's programs and the inbox still have room.
func TestBodiesOfOneUsersProgramsLeaveRoomForAnothers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.server.HoldAtMost(1500)
	by := func(u vocab.Username) asking {
		token := bearerToken(f.token(u, "write"))
		return func(r *http.Request) {
			token(r)
			r.RemoteAddr = "192.0.2.1:5"
			r.Header.Set("Content-Type", "application/json")
		}
	}
	alice, bob := by(f.alice), by(f.bob)
	body, slow := io.Pipe()
	answered := make(chan response, 1)
	go func() {
		answered <- ask(t, f.public, http.MethodPost, "/api/activity", "", alice, func(r *http.Request) { r.Body = body })
	}()
	for _, sent := range []string{strings.Repeat(" ", 1000), " "} { // while the server reads the second text, the first text counts
		if _, err := io.WriteString(slow, sent); err != nil {
			t.Fatal(err)
		}
	}
	action := `{"action":"CreateNote"` + strings.Repeat(" ", 150) + `}`
	f.send("/api/activity", action, alice).want(t, http.StatusServiceUnavailable)
	f.send("/api/activity", action, bob).want(t, http.StatusCreated)
	f.send("/inbox", action, func(r *http.Request) { r.RemoteAddr = "192.0.2.1:5" }).want(t, http.StatusAccepted)
	if err := slow.Close(); err != nil {
		t.Fatal(err)
	}
	(<-answered).want(t, http.StatusBadRequest) // the body is not JSON; after the answer the body no longer counts
	f.send("/api/activity", action, alice).want(t, http.StatusCreated)
}

func TestHardenBoundsWhatAClientMayTake(t *testing.T) {
	t.Parallel()
	var srv http.Server
	server.Harden(&srv, nil)
	if srv.ReadHeaderTimeout != 10*time.Second || srv.IdleTimeout != 2*time.Minute || srv.MaxHeaderBytes != 32<<10 ||
		srv.ReadTimeout != 30*time.Second || srv.WriteTimeout != 30*time.Second || srv.HTTP2 == nil || srv.HTTP2.MaxConcurrentStreams != 32 {
		t.Errorf("PAR-14: %+v", &srv)
	}
}
