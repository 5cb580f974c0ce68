package engine_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/daemon"
	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// rawSocket is a WebSocket on which the test writes each frame byte by byte.
type rawSocket struct {
	*siege
	net.Conn
	from *bufio.Reader
}

// The kinds of frames (RFC 6455 §5.2).
const (
	frameText  = 0x1
	frameMore  = 0x0 // continues a message
	frameClose = 0x8
	framePing  = 0x9
	frameLast  = 0x80 // marks the last frame of a message
)

// dialRaw opens a WebSocket with a token and reads its greeting. If the handshake is not answered
// 101, it returns nil and the status.
func (s *siege) dialRaw(token string) (*rawSocket, int) {
	s.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.home.URL, "http://"))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() }) // the connection may be closed already
	fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAuthorization: Bearer %s\r\n\r\n", strings.TrimPrefix(s.home.URL, "http://"), token)
	r := &rawSocket{s, conn, bufio.NewReader(conn)}
	answer, err := http.ReadResponse(r.from, nil) //nolint:bodyclose // one that switches protocols has none
	if err != nil {
		s.Fatal(err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return nil, answer.StatusCode
	}
	if _, body := r.read(); !bytes.Contains(body, []byte(`"hello"`)) {
		s.Fatalf("the socket begins with %s", body)
	}
	return r, answer.StatusCode
}

// read reads a frame. If the connection has ended, the kind is 0.
func (r *rawSocket) read() (kind byte, payload []byte) {
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, nil
	}
	var head [2]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return 0, nil
	}
	n := uint64(head[1] & 0x7f)
	if n >= 126 {
		long := make([]byte, map[uint64]int{126: 2, 127: 8}[n])
		if _, err := io.ReadFull(r.from, long); err != nil {
			return 0, nil
		}
		n = binary.BigEndian.Uint64(append(make([]byte, 8-len(long)), long...))
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(r.from, payload); err != nil {
		return 0, nil
	}
	return head[0] & 0xf, payload
}

// write writes a frame with the mask zero. It reports whether the connection is still open.
func (r *rawSocket) write(kind byte, payload []byte) bool {
	head := []byte{kind, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint64(head[2:], uint64(len(payload)))
	if len(payload) < 126 {
		head = []byte{kind, 0x80 | byte(len(payload)), 0, 0, 0, 0}
	}
	_, err := r.Write(append(head, payload...))
	return err == nil
}

// nextText returns the payload of the next text frame. If the socket is closed, it returns the
// reason or nothing.
func (r *rawSocket) nextText() string {
	for {
		kind, payload := r.read()
		if kind == frameText || kind == 0 || kind == frameClose {
			return string(payload)
		}
	}
}

// wantClosed reads until the engine closes the socket, and checks the code.
func (r *rawSocket) wantClosed(code uint16) {
	r.Helper()
	for {
		switch kind, payload := r.read(); {
		case kind == 0:
			r.Errorf("the connection ends without a code, want %d", code)
			return
		case kind == frameClose:
			if len(payload) < 2 || binary.BigEndian.Uint16(payload) != code {
				r.Errorf("the socket is closed with %q, want %d", payload, code)
			}
			return
		}
	}
}

// suspendUnderSocket suspends bob while bob has a socket and an event stream open. Both end with
// code 4001.
func suspendUnderSocket(s *siege) {
	open, _ := s.dialRaw(s.bob.Token)
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.home.URL+"/api/events", nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.bob.Token)
	stream, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }() // the stream has ended
	runAll(s.T, s.home, []command{{"user suspend bob", 0, ""}})
	open.wantClosed(4001)
	if b, err := io.ReadAll(stream.Body); err != nil || !strings.Contains(string(b), "4001") {
		s.Errorf("the stream ends with %q, %v", b, err)
	}
	if _, status := s.dialRaw(s.bob.Token); status != 401 {
		s.Errorf("a new socket is answered %d, want 401", status)
	}
	runAll(s.T, s.home, []command{{"user unsuspend bob", 0, ""}})
}

// floodSockets opens one socket more than allowed, and sends more than allowed over the open
// sockets.
func floodSockets(s *siege) {
	var all []*rawSocket
	for range 10 {
		r, status := s.dialRaw(s.bob.Token)
		if status != 101 {
			s.Fatalf("socket %d is answered %d", len(all)+1, status)
		}
		all = append(all, r)
	}
	if _, status := s.dialRaw(s.bob.Token); status != 429 {
		s.Errorf("the eleventh socket is answered %d, want 429", status)
	}
	all[0].write(frameText|frameLast, make([]byte, 16<<20))
	all[0].wantClosed(1009)
	all[1].write(frameText, []byte(`{`))
	refused := make(chan struct{})
	go func() {
		defer close(refused)
		for all[1].write(frameMore, make([]byte, 1024)) { // a message that never ends
		}
	}()
	all[1].wantClosed(1009)
	<-refused
	all[2].write(frameText|frameLast, []byte(`{"type":"typing"`))
	for range 1000 {
		if !all[2].write(framePing|frameLast, []byte("ping")) {
			break
		}
	}
	all[2].wantClosed(1008)
	s.bob.Post(s, map[string]any{"content": "who is not flooding is told"})
	if got := all[3].nextText(); !strings.Contains(got, "create.sent") {
		s.Errorf("another socket of the user is sent %q", got)
	}
	for _, r := range all {
		_ = r.Close() // the socket may be closed already
	}
	readNothing(s)
}

// readNothing opens a socket that it does not read, while bob has more events than the buffers of a
// connection have room for. The engine cuts the socket off, and another one is told afterwards.
func readNothing(s *siege) {
	const cutOff = `lightweb_sockets_closed_total{reason="too slow"}`
	slow, status := s.dialRaw(s.bob.Token)
	if status != 101 {
		s.Fatalf("a socket after the others is answered %d", status)
	}
	before := s.home.Metric(s, cutOff)
	s.bob.Column(s, `INSERT INTO event_outbox (type, source, payload, created_at, ms)
		SELECT 'like.received', 'ap', jsonb_build_object('eventId', gen_random_uuid(), 'trust', 'self', 'filler', repeat('x', 16384)), now(),
			(SELECT max(ms) FROM event_outbox) FROM generate_series(1, 1500) RETURNING seq`)
	s.bob.Post(s, map[string]any{"content": "makes the engine look at the events before this one"})
	enginetest.Eventually(s, "the slow socket is cut off", func() bool { return s.home.Metric(s, cutOff) > before })
	slow.wantClosed(4002)
	other, status := s.dialRaw(s.bob.Token)
	if status != 101 {
		s.Fatalf("a socket after the slow one is answered %d", status)
	}
	create, _ := s.bob.Post(s, map[string]any{"content": "a socket that is read is told"})
	got := other.nextText()
	for got != "" && !strings.Contains(got, create) { // events before it may come first
		got = other.nextText()
	}
	if !strings.Contains(got, "create.sent") {
		s.Errorf("a socket after the slow one ends with %.200q, want the event of %s", got, create)
	}
	_, _ = slow.Close(), other.Close() // the sockets may be closed already
}

// alice and bob do not follow each other. spyOnSignals lets them send each other signals. Neither
// receives one, and no address of the API shows them.
func spyOnSignals(s *siege) {
	alice, _ := s.dialRaw(s.alice.Token)
	bob, _ := s.dialRaw(s.bob.Token) // alice does not follow bob
	for _, message := range []string{`{"type":"presence","state":"online"}`, fmt.Sprintf(`{"type":"typing","to":%q,"on":true}`, s.bob.ID), fmt.Sprintf(`{"type":"read","to":%q}`, s.bob.ID)} {
		alice.write(frameText|frameLast, []byte(message))
		bob.write(frameText|frameLast, []byte(strings.ReplaceAll(message, s.bob.ID, s.alice.ID)))
	}
	alice.write(frameText|frameLast, []byte(`{"type":"over"}`))
	bob.write(frameText|frameLast, []byte(`{"type":"over"}`))
	for _, r := range []*rawSocket{alice, bob} {
		if got := r.nextText(); !strings.Contains(got, "unknown_frame") {
			s.Errorf("a stranger's program is told %q", got)
		}
	}
	for _, path := range []string{"/users/alice/presence", "/users/alice/typing", "/api/presence"} {
		s.answered(enginetest.Fetch(s, s.home.URL+path), 401, 404)
	}
	s.answered(s.bob.Ask(s, http.MethodGet, "/api/presence", nil), 404)
	_, _ = alice.Close(), bob.Close() // the sockets may be closed already
}

// redis sends a command to one of the two servers of the engine's private Redis.
func (s *siege) redis(role string, words ...string) string {
	s.Helper()
	redistest.Program(s.T)
	socket := filepath.Join(daemon.SocketDir(s.home.DataDir, "redis-events.sock"), "redis-"+role+".sock")
	answer, err := redistest.Ask("unix", socket, words...)
	if err != nil {
		s.Fatalf("%s: %v", words, err)
	}
	return answer
}

// fillCache writes more than the cache can hold. The events and alice's session remain.
func fillCache(s *siege) {
	var made struct{ Session string }
	s.alice.Ask(s, http.MethodPost, "/api/session", nil).Decode(s, &made)
	enginetest.Eventually(s, "alice has events", func() bool { return s.redis("events", "XLEN", "alice:events") != "0" })
	before := s.redis("events", "XLEN", "alice:events")
	most := s.redis("cache", "CONFIG", "GET", "maxmemory")
	s.redis("cache", "CONFIG", "SET", "maxmemory", "4mb")
	for n := range 80 {
		s.redis("cache", "SET", fmt.Sprint("mallory:obj:", n), strings.Repeat("x", 100<<10))
	}
	s.redis("cache", "CONFIG", "SET", "maxmemory", strings.Fields(most)[1])
	if after := s.redis("events", "XLEN", "alice:events"); after != before {
		s.Errorf("the stream has %s events, had %s", after, before)
	}
	session := *s.alice
	session.Token = made.Session
	s.answered(session.Ask(s, http.MethodGet, "/api/feed", nil), 200)
	if got := s.redis("events", "CONFIG", "GET", "maxmemory-policy"); !strings.Contains(got, "noeviction") {
		s.Errorf("the server of streams evicts: %s", got)
	}
	for n := range 80 {
		s.redis("cache", "DEL", fmt.Sprint("mallory:obj:", n))
	}
}

// A consumer reads an event and does not acknowledge it. repeatEvent lets a second consumer claim
// the event. Both get the same event id.
func repeatEvent(s *siege) {
	s.bob.Post(s, map[string]any{"content": "once"})
	enginetest.Eventually(s, "the group is there", func() bool {
		return s.redis("events", "EXISTS", "bob:events") == "1" && strings.Contains(s.redis("events", "XINFO", "GROUPS", "bob:events"), "llm")
	})
	var first string
	enginetest.Eventually(s, "the event is there", func() bool {
		first = s.redis("events", "XREADGROUP", "GROUP", "llm", "dies", "COUNT", "1", "STREAMS", "bob:events", ">")
		return strings.Contains(first, "eventId")
	})
	again := s.redis("events", "XAUTOCLAIM", "bob:events", "llm", "lives", "0", "0-0", "COUNT", "1")
	eventID := func(answer string) string {
		if m := eventIDInJSON.FindStringSubmatch(answer); m != nil {
			return m[1]
		}
		return ""
	}
	if a, b := eventID(first), eventID(again); a == "" || a != b {
		s.Errorf("the event comes as %q and again as %q: they cannot be told for one", first, again)
	}
}

var eventIDInJSON = regexp.MustCompile(`"eventId":\s*"([^"]+)"`)

// sendMadIDs sends ids that would break a line-based protocol, in every place that can hold an id.
func sendMadIDs(s *siege) {
	for n, bad := range []string{"\r\nDEL alice:events\r\n", "\x00", " ", "\u2028", strings.Repeat("x", 1<<20)} {
		for _, place := range []string{"id", "object", "note", "actor", "inReplyTo"} {
			create := s.create(s.mallory, fmt.Sprint(n, place))
			mad := s.id(s.mallory, "mad") + bad
			switch place {
			case "note":
				create.Sub("object")["id"] = mad
			case "inReplyTo":
				create.Sub("object")[place] = mad
			default:
				create[place] = mad
			}
			a := s.post(s.mallory, s.alice.ID+"/inbox", create)
			if !slices.Contains([]int{202, 400, 401, 403, 413, 422}, a.Status) || a.Status == 202 && place != "inReplyTo" {
				s.Errorf("%s with %.10q is answered %d %s", place, bad, a.Status, a.Body)
			}
		}
	}
	s.settle()
	tail := s.home.Run(s, "stream", "tail", "alice", "--follow=false", "-n", "1000", "--json")
	for _, l := range linesOfTail(s.T, tail.Stdout) {
		if strings.ContainsAny(l.Payload.ActivityURI, "\r\n\x00 ") {
			s.Errorf("an event names %q", l.Payload.ActivityURI)
		}
	}
}
