package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/vocab"
)

// webSocket is a WebSocket of a program.
type webSocket struct {
	f *fixture
	*websocket.Conn
	answer *http.Response
}

// frame holds the members of a frame that tests check.
type frame struct{ ID, Type, Timestamp string }

// dialSocket opens a WebSocket. If the server refuses, it returns the server's response.
func (f *fixture) dialSocket(url, query string, o *websocket.DialOptions) (*webSocket, *http.Response) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, url+"/ws"+query, o)
	if err != nil {
		if resp == nil {
			f.Fatal(err)
		}
		return nil, resp
	}
	f.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(-1)
	return &webSocket{f, conn, resp}, nil
}

// openSocket opens a WebSocket and reads the first frame, hello.
func (f *fixture) openSocket(url, query string, o *websocket.DialOptions) *webSocket {
	f.Helper()
	s, refused := f.dialSocket(url, query, o) //nolint:bodyclose // Dial has read it
	if refused != nil {
		f.Fatalf("the socket is refused: %d", refused.StatusCode)
	}
	if got := s.next(); got.Type != "hello" {
		f.Fatalf("the socket begins with %+v", got)
	}
	return s
}

func withToken(token string) *websocket.DialOptions {
	return &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}}
}

func (s *webSocket) next() (got frame) {
	s.f.Helper()
	ctx, cancel := context.WithTimeout(s.f.Context(), time.Minute)
	defer cancel()
	kind, body, err := s.Read(ctx)
	if err != nil || kind != websocket.MessageText {
		s.f.Fatalf("no frame came: %v %v", kind, err)
	}
	if err := json.Unmarshal(body, &got); err != nil {
		s.f.Fatal(err)
	}
	return got
}

// send sends a message. It ignores errors, because the server may end the socket meanwhile.
func (s *webSocket) send(body []byte) {
	ctx, cancel := context.WithTimeout(s.f.Context(), time.Minute)
	defer cancel()
	_ = s.Write(ctx, websocket.MessageText, body)
}

// wantClosed reads until the socket ends. It fails the test unless the socket ends with the given
// code.
func (s *webSocket) wantClosed(code websocket.StatusCode) {
	s.f.Helper()
	ctx, cancel := context.WithTimeout(s.f.Context(), time.Minute)
	defer cancel()
	for {
		if _, _, err := s.Read(ctx); err != nil {
			if got := websocket.CloseStatus(err); got != code {
				s.f.Errorf("the socket ends with %d, want %d: %v", got, code, err)
			}
			return
		}
	}
}

func TestEventsComeOverAWebSocketAndAreResumed(t *testing.T) {
	f := newFixture(t)
	srv, token := f.serve(), f.token(f.alice, "read")
	s := f.openSocket(srv.URL, "", withToken(token))
	f.addEvent(f.bob, "create.received") // alice's socket does not show it
	kinds := []string{"like.received", "follow.received", "create.received"}
	var got []frame
	for _, kind := range kinds {
		f.addEvent(f.alice, kind)
	}
	for _, kind := range kinds {
		e := s.next()
		if e.Type != kind || e.ID == "" || e.Timestamp != "2026-02-21T12:00:00Z" {
			t.Errorf("the socket sends %+v, want %s", e, kind)
		}
		got = append(got, e)
	}
	_ = s.CloseNow()
	again := f.openSocket(srv.URL, "?after="+got[0].ID, withToken(token))
	for _, want := range got[1:] {
		if e := again.next(); e != want {
			t.Errorf("the socket goes on with %+v, want %+v", e, want)
		}
	}
	early := f.openSocket(srv.URL, "?after=99999999999999-99", withToken(token))
	if e := early.next(); e.Type != "reset" {
		t.Errorf("a cursor of another stream is told %+v", e)
	}
}

func TestAWebSocketTakesTheTokenAsASubprotocol(t *testing.T) {
	f := newFixture(t)
	srv, token := f.serve(), f.token(f.alice, "llm")
	s := f.openSocket(srv.URL, "", &websocket.DialOptions{Subprotocols: []string{"lightweb.v1", "bearer." + token}})
	if got := s.answer.Header.Values("Sec-WebSocket-Protocol"); len(got) != 1 || got[0] != "lightweb.v1" {
		t.Errorf("the subprotocols %q are echoed", got)
	}
}

func TestWebSocketsAreRefused(t *testing.T) {
	f := newFixture(t, func(d *server.Deps) { d.CORSOrigins = []string{"https://client.example"} })
	srv := f.serve()
	reader, writer := f.token(f.alice, "read"), f.token(f.alice, "write")
	from := func(origin string) *websocket.DialOptions {
		o := withToken(reader)
		o.HTTPHeader.Set("Origin", origin)
		return o
	}
	twice := withToken(reader)
	twice.Subprotocols = []string{"lightweb.v1", "bearer." + reader}
	for _, tt := range []struct {
		name, query string
		how         *websocket.DialOptions
		status      int
		problem     string
	}{
		{"nobody", "", nil, 401, "invalid-token"},
		{"a token in the address", "?token=" + reader, nil, 401, "invalid-token"},
		{"two tokens", "", twice, 401, ""},
		{"a token that may not read", "", withToken(writer), 403, "insufficient-scope"},
		{"another origin", "", from("https://evil.example"), 403, "forbidden-origin"},
		{"no origin of a page", "", from("null"), 403, "forbidden-origin"},
		{"our host without TLS", "", from("http://example.org"), 403, "forbidden-origin"},
		{"a garbled id", "?after=x", withToken(reader), 400, "bad-event-id"},
		{"an unknown parameter", "?since=1", withToken(reader), 400, "bad-query"},
	} {
		s, r := f.dialSocket(srv.URL, tt.query, tt.how) //nolint:bodyclose // the same
		if s != nil {
			t.Errorf("%s: a socket is opened", tt.name)
			continue
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		if r.StatusCode != tt.status || r.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(body.String(), tt.problem) {
			t.Errorf("%s: %d %s, want %d %s", tt.name, r.StatusCode, body.String(), tt.status, tt.problem)
		}
	}
	for _, origin := range []string{"https://client.example", origin} {
		f.openSocket(srv.URL, "", from(origin))
	}
	plain := f.get("/ws", bearerToken(reader)).want(t, 426)
	if plain.Header.Get("Upgrade") != "websocket" || plain.doc(t).Text("error") != "upgrade_required" || plain.doc(t).Text("type") != "https://lightwebbrowser.org/problems/upgrade-required" {
		t.Errorf("without an upgrade: %v %s", plain.Header, plain.body)
	}
}

// WebSockets and streams count together. One too many of either kind is refused in the same words.
func TestAUserHasOnlySoManyWebSockets(t *testing.T) {
	f := newFixture(t)
	srv, token := f.serve(), f.token(f.alice, "read")
	for range 10 {
		f.openSocket(srv.URL, "", withToken(token))
	}
	s, r := f.dialSocket(srv.URL, "", withToken(token)) //nolint:bodyclose // the same
	if s != nil || r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("one socket too many is answered %+v", r)
	}
	// a page cannot read that response, so it asks for the stream of events
	stream := f.get("/api/events", bearerToken(token)).want(t, 429)
	if stream.Header.Get("Retry-After") == "" || stream.doc(t).Text("error") != "too_many_sockets" {
		t.Errorf("one stream too many is answered %v %s", stream.Header, stream.body)
	}
}

func TestAProgramThatMisusesAWebSocketIsClosed(t *testing.T) {
	f := newFixture(t)
	srv, token := f.serve(), f.token(f.alice, "read")
	flood := func(s *webSocket) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			// wantClosed reads the answers
			for s.Ping(ctx) == nil {
			}
		}()
		s.wantClosed(websocket.StatusPolicyViolation)
	}
	for name, misuse := range map[string]func(*webSocket){
		"no text": func(s *webSocket) {
			if err := s.Write(t.Context(), websocket.MessageBinary, []byte(`{}`)); err != nil {
				t.Error(err)
			}
			s.wantClosed(websocket.StatusPolicyViolation)
		},
		"messages without meaning, and too many": func(s *webSocket) {
			for _, message := range []string{"junk", `{"type":"x"}`, strings.Repeat("x", 64<<10)} {
				s.send([]byte(message))
				if got := s.next(); got.Type != "error" {
					t.Errorf("%.20s is answered %+v", message, got)
				}
			}
			for range 200 {
				s.send([]byte("junk"))
			}
			s.wantClosed(websocket.StatusPolicyViolation)
		},
		"too big": func(s *webSocket) { s.send(make([]byte, 64<<10+1)); s.wantClosed(websocket.StatusMessageTooBig) },
		"huge":    func(s *webSocket) { s.send(make([]byte, 1<<20)); s.wantClosed(websocket.StatusMessageTooBig) },
		"a flood": flood,
	} {
		t.Log(name)
		misuse(f.openSocket(srv.URL, "", withToken(token)))
	}
}

func TestAWebSocketEndsWithItsToken(t *testing.T) {
	f := newFixture(t)
	srv := f.serve()
	s := f.openSocket(srv.URL, "", withToken(f.token(f.alice, "read")))
	f.state(f.alice, instance.UserSuspended)
	f.deps.Sockets.CheckTokens(t.Context())
	s.wantClosed(4001)
}

func TestAWebSocketEndsWithTheEngine(t *testing.T) {
	f := newFixture(t)
	srv := f.serve()
	s := f.openSocket(srv.URL, "", withToken(f.token(f.alice, "read")))
	closed := make(chan error)
	go func() { closed <- f.deps.Sockets.Close(context.Background()) }()
	s.wantClosed(websocket.StatusGoingAway)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestAProgramThatDoesNotAnswerPingsIsClosed(t *testing.T) {
	f := newFixture(t)
	server.SetPingTimes(f.server, 5*time.Millisecond, 5*time.Millisecond)
	srv := f.serve()
	o := withToken(f.token(f.alice, "read"))
	o.OnPingReceived = func(context.Context, []byte) bool { return false }
	f.openSocket(srv.URL, "", o).wantClosed(4002)
}

// A WebSocket may stay open longer than the time limits of a request, and is still told of events.
func TestAWebSocketOutlivesTheTimeLimitsOfARequest(t *testing.T) {
	f := newFixture(t)
	server.SetPingTimes(f.server, 20*time.Millisecond, time.Minute)
	srv := httptest.NewUnstartedServer(f.public)
	server.Harden(srv.Config, nil)
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	srv.Start()
	t.Cleanup(srv.Close)
	pings, later := 0, make(chan struct{})
	o := withToken(f.token(f.alice, "read"))
	o.OnPingReceived = func(context.Context, []byte) bool {
		if pings++; pings == 20 {
			close(later)
		}
		return true
	}
	s := f.openSocket(srv.URL, "", o)
	told := make(chan frame, 1)
	go func() {
		defer close(told)
		told <- s.next() // reading answers the pings
	}()
	select {
	case <-later:
	case <-told:
		t.Fatal("the socket has ended already")
	}
	f.addEvent(f.alice, "like.received")
	if got := <-told; got.Type != "like.received" {
		t.Errorf("the socket is sent %+v", got)
	}
}

// addLarge commits n events of u with 32 KiB each.
func (f *fixture) addLarge(u vocab.Username, n int) {
	f.Helper()
	payload := fmt.Appendf(nil, `{"eventId":"x","filler":%q}`, strings.Repeat("x", 32<<10))
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		for range n {
			if err := tx.Events.Add(ctx, user.Event{Type: "like.received", Source: "ap", At: start, Payload: payload}); err != nil {
				return err
			}
		}
		return nil
	})
}

// A program never reads its socket. The server closes that socket, and other sockets are not
// delayed.
func TestAWebSocketThatIsNotReadIsClosed(t *testing.T) {
	f := newFixture(t)
	server.SetFrameTime(f.server, time.Minute) // the buffer fills up before this time is over
	srv := f.serve()
	token := f.token(f.alice, "read")
	slow, quick := f.openSocket(srv.URL, "", withToken(token)), f.openSocket(srv.URL, "", withToken(token))
	for range 16 {
		f.addLarge(f.alice, 40)
		for range 40 {
			if got := quick.next(); got.Type != "like.received" {
				t.Fatalf("the other socket gets %+v", got)
			}
		}
	}
	slow.wantClosed(4002)
}
