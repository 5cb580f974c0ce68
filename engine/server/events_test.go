package server_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/vocab"
)

// serve starts an HTTP server on loopback, with the limits that Harden sets.
func (f *fixture) serve() *httptest.Server {
	f.Helper()
	srv := httptest.NewUnstartedServer(f.public)
	server.Harden(srv.Config, nil)
	srv.Start()
	f.Cleanup(func() {
		if err := f.deps.Sockets.Close(context.Background()); err != nil {
			f.Error(err)
		}
		srv.Close()
	})
	return srv
}

// addEvent commits an event of u.
func (f *fixture) addEvent(u vocab.Username, kind string) {
	f.Helper()
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Events.Add(ctx, user.Event{Type: kind, Source: "ap", At: start, Payload: []byte(`{"eventId":"x","trust":"self"}`)})
	})
}

// eventStream reads a stream of server-sent events line by line.
type eventStream struct {
	f     *fixture
	lines *bufio.Scanner
	close func()
}

func (f *fixture) openStream(url, token string, change ...asking) *eventStream {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/events", nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range append(change, bearerToken(token)) {
		c(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { cancel(); _ = resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		f.Fatalf("the stream is answered %d with %v", resp.StatusCode, resp.Header)
	}
	return &eventStream{f, bufio.NewScanner(resp.Body), cancel}
}

// await reads up to the first line with the prefix begin. It returns the rest of that line.
func (s *eventStream) await(begin string) string {
	s.f.Helper()
	for s.lines.Scan() {
		if rest, is := strings.CutPrefix(s.lines.Text(), begin); is {
			return rest
		}
	}
	s.f.Fatalf("the stream ended without %q: %v", begin, s.lines.Err())
	return ""
}

func TestEventsAreStreamedAndResumed(t *testing.T) {
	f := newFixture(t)
	srv, token := f.serve(), f.token(f.alice, "read")
	s := f.openStream(srv.URL, token)
	if got := s.await("retry: "); got != "3000" {
		t.Errorf("retry: %s", got)
	}
	if got := s.await("data: "); !strings.HasPrefix(got, `{"type":"hello","cursor":"0-0"`) {
		t.Errorf("the stream begins with %s", got)
	}
	f.addEvent(f.bob, "create.received") // alice's stream does not show it
	f.addEvent(f.alice, "like.received")
	first := s.await("id: ")
	if got := s.await("event: "); got != "like.received" {
		t.Errorf("event: %s", got)
	}
	if got := s.await("data: "); got != `{"id":"`+first+`","type":"like.received","payload":{"trust":"self","eventId":"x"},"timestamp":"2026-02-21T12:00:00Z"}` &&
		got != `{"id":"`+first+`","type":"like.received","payload":{"eventId":"x","trust":"self"},"timestamp":"2026-02-21T12:00:00Z"}` {
		t.Errorf("data: %s", got)
	}
	s.close()
	f.addEvent(f.alice, "follow.received")
	for name, how := range map[string]asking{
		"by the header":  header("Last-Event-ID", first),
		"by the address": func(r *http.Request) { r.URL.RawQuery = "after=" + first },
		"by both": func(r *http.Request) {
			r.URL.RawQuery = "after=1-1"
			r.Header.Set("Last-Event-ID", first)
		},
	} {
		again := f.openStream(srv.URL, token, how)
		again.await("id: ")
		if got := again.await("event: "); got != "follow.received" {
			t.Errorf("%s: the stream goes on with %s", name, got)
		}
		again.close()
	}
	early := f.openStream(srv.URL, token, header("Last-Event-ID", "99999999999999-99"))
	early.await("event: reset")
	if got := early.await("data: "); !strings.Contains(got, `"reason":"ahead"`) {
		t.Errorf("a cursor of another stream is told %s", got)
	}
}

// No value of an event can begin another event, another field or another connection: a type of a
// stranger's activity was once written as it came.
func TestNoValueBreaksTheFramesOfAStream(t *testing.T) {
	t.Parallel()
	id := keyspace.ID{Milli: 5, Seq: 1}
	for name, tt := range map[string]struct {
		frame socket.Frame
		want  string
	}{
		"as it is":          {socket.Frame{ID: id, Type: "like.received", Body: []byte(`{"a":1}`)}, "id: 5-1\nevent: like.received\ndata: {\"a\":1}\n\n"},
		"a type with lines": {socket.Frame{ID: id, Type: "x\n\nid: 0\nevent: dm.received\ndata: {}", Body: []byte(`{}`)}, "id: 5-1\ndata: {}\n\n"},
		"a type with a CR":  {socket.Frame{Type: "x\rid: 0", Body: []byte(`{}`)}, "data: {}\n\n"},
		"a body with lines": {socket.Frame{ID: id, Type: "like.received", Body: []byte("{\n\"a\":\r\n1\r}\n\nid: 0")}, "id: 5-1\nevent: like.received\ndata: {\ndata: \"a\":\ndata: 1\ndata: }\ndata: id: 0\n\n"},
	} {
		if got := server.EventsText(tt.frame); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestEventsAreRefused(t *testing.T) {
	f := newFixture(t)
	reader, writer := f.token(f.alice, "read"), f.token(f.alice, "write")
	for _, tt := range []struct {
		name, target string
		how          []asking
		status       int
		code         string
	}{
		{"nobody", "/api/events", nil, 401, "invalid_token"},
		{"a token in the address", "/api/events?token=" + reader, nil, 401, "invalid_token"},
		{"a token that may not read", "/api/events", []asking{bearerToken(writer)}, 403, "insufficient_scope"},
		{"a garbled id", "/api/events", []asking{bearerToken(reader), header("Last-Event-ID", "garbled")}, 400, "bad_event_id"},
		{"an id of one number", "/api/events", []asking{bearerToken(reader), header("Last-Event-ID", "17")}, 400, "bad_event_id"},
		{"an id that is written otherwise", "/api/events", []asking{bearerToken(reader), header("Last-Event-ID", "017-1")}, 400, "bad_event_id"},
		{"a garbled id in the address", "/api/events?after=x", []asking{bearerToken(reader)}, 400, "bad_event_id"},
		{"an unknown parameter", "/api/events?since=1", []asking{bearerToken(reader)}, 400, "bad_query"},
	} {
		r := f.get(tt.target, tt.how...)
		if r.StatusCode != tt.status || r.doc(t).Text("error") != tt.code {
			t.Errorf("%s: %d %s, want %d %s", tt.name, r.StatusCode, r.body, tt.status, tt.code)
		}
	}
	f.ask(http.MethodHead, "/api/events", bearerToken(reader)).want(t, 200)
}

// CLI-02, CLI-02b: a stream ends when its token is no longer valid. The last event of the stream
// says why.
func TestAStreamEndsWithItsToken(t *testing.T) {
	f := newFixture(t)
	srv, token := f.serve(), f.token(f.alice, "read")
	s := f.openStream(srv.URL, token)
	s.await("event: hello")
	f.state(f.alice, instance.UserSuspended)
	f.deps.Sockets.CheckTokens(t.Context())
	s.await("event: closed")
	if got := s.await("data: "); got != `{"type":"closed","code":4001,"reason":"token expired or revoked"}` {
		t.Errorf("the stream ends with %s", got)
	}
	for s.lines.Scan() {
		if s.lines.Text() != "" {
			t.Errorf("after its end the stream has %q", s.lines.Text())
		}
	}
	f.get("/api/events", bearerToken(token)).want(t, 401)
}

// An idle stream sends comments. It may stay open longer than the time limit of a request.
func TestAnIdleStreamShowsThatItLives(t *testing.T) {
	f := newFixture(t)
	server.SetCommentTime(f.server, 5*time.Millisecond)
	srv := httptest.NewUnstartedServer(f.public)
	server.Harden(srv.Config, nil)
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	srv.Start()
	t.Cleanup(srv.Close)
	s := f.openStream(srv.URL, f.token(f.alice, "read"))
	s.await("event: hello")
	for range 60 {
		s.await(":")
	}
	s.close()
}

// Streams and WebSockets do not count as connections. So open ones do not keep other clients from
// connecting.
func TestStreamsDoNotCountAsConnections(t *testing.T) {
	f := newFixture(t)
	srv := httptest.NewUnstartedServer(f.public)
	counted := server.HardenCounted(srv.Config)
	srv.Start()
	t.Cleanup(srv.Close)
	token := f.token(f.alice, "read")
	var leave []func()
	for range 5 {
		s := f.openStream(srv.URL, token)
		s.await("event: hello")
		w := f.openSocket(srv.URL, "", withToken(token))
		leave = append(leave, s.close, func() { _ = w.CloseNow() })
	}
	if n := counted(); n != 0 {
		t.Errorf("%d connections are counted, want none", n)
	}
	for _, one := range leave {
		one()
	}
	f.ask(http.MethodGet, "/", header("Accept", "text/plain")).want(t, 200)
	if n := counted(); n != 0 {
		t.Errorf("%d connections are counted afterwards, want none", n)
	}
}

// oneRead is a database that answers only the first read.
type oneRead struct {
	socket.Store
	reads atomic.Int64
}

func (s *oneRead) Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	if s.reads.Add(1) > 1 {
		return fault.New(fault.Unavailable, "the database does not answer")
	}
	return s.Store.Read(ctx, u, work)
}

// If the engine cannot continue a stream, the last event of the stream says so.
func TestAStreamThatFailsIsToldSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *server.Deps) {
		hub := d.Sockets.Deps
		hub.Store = &oneRead{Store: hub.Store}
		d.Sockets = socket.NewHub(hub)
	})
	s := f.openStream(f.serve().URL, f.token(f.alice, "read"))
	s.await("event: hello")
	s.await("event: closed")
	if got := s.await("data: "); got != `{"type":"closed","code":1011,"reason":"internal error"}` {
		t.Errorf("the last event is %s", got)
	}
}
