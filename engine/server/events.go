package server

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/socket"
)

const (
	// frameTime limits the time of one write to a client.
	frameTime = 10 * time.Second

	// commentTime is the time between two comments on an idle stream of server-sent events.
	// Without comments, proxies would cut the connection.
	commentTime = 15 * time.Second
)

// eventSockets serves streams of events to users' clients.
type eventSockets struct {
	*clientAPI
	hub         *socket.Hub
	commentTime time.Duration
}

// requestSocket describes the socket that a request asks for. The parameter t is the token of the
// request, whose scopes allow reading.
func (s *eventSockets) requestSocket(r *http.Request, t instance.Token, kind socket.Kind) (socket.Request, error) {
	q, err := readQuery(r, "after")
	if err != nil {
		return socket.Request{}, err
	}
	after, err := readCursor(r.Header.Values("Last-Event-ID"), q["after"])
	if err != nil {
		return socket.Request{}, err
	}
	return socket.Request{User: t.User, Kind: kind, Payer: policy.NameAddress(s.clientOf(r)), Token: t.ID, Session: sessionOf(r),
		Assistant: isAssistantReader(t), MaySignal: !isAssistant(t), After: after}, nil
}

// readCursor returns the id of the last event that a client has received, or nil if the request
// names none. The header takes precedence over the query, because a browser that reconnects
// repeats the address of its first request and adds the header Last-Event-ID.
func readCursor(header, query []string) (*keyspace.ID, error) {
	given := header
	if len(given) == 0 {
		given = query
	}
	if len(given) == 0 {
		return nil, nil
	}
	id, err := keyspace.ParseID(given[0])
	if err != nil || len(given) > 1 || id.String() != given[0] {
		return nil, fault.New(fault.Invalid, "the id of an event is two numbers, such as 1771675203871-42").WithCode("bad_event_id")
	}
	return &id, nil
}

// isAssistantReader reports whether a token may read only what an LLM engine may.
func isAssistantReader(t instance.Token) bool { return !t.Has(instance.ScopeRead) }

// openSocket opens a socket. If the session of the request has ended meanwhile, openSocket closes
// the socket and refuses the request, because the end of the session did not end that socket.
func (s *eventSockets) openSocket(a *answer, r *http.Request, ask socket.Request) (*socket.Socket, error) {
	one, err := s.hub.Open(ask)
	if err != nil || ask.Session == "" {
		return one, err
	}
	if err := s.sessions.check(r.Context(), ask.User, ask.Session); err != nil {
		one.Close()
		return nil, s.refuseToken(a, err)
	}
	return one, nil
}

// getEvents streams the user's events (HTML standard §9.2, server-sent events).
func (s *eventSockets) getEvents(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead, instance.ScopeLLM)
	if err != nil {
		return err
	}
	ask, err := s.requestSocket(r, t, socket.SSE)
	if err != nil {
		return err
	}
	a.setCache("no-store")
	a.Header().Set("Content-Type", "text/event-stream")
	a.Header().Set("X-Accel-Buffering", "no") // a proxy that buffers responses would delay events
	if r.Method == http.MethodHead {
		return nil
	}
	one, err := s.openSocket(a, r, ask)
	if err != nil {
		return err
	}
	defer one.Close()
	return s.streamEvents(a, r, one)
}

// streamEvents writes frames until the client disconnects or the hub ends the socket. Each write
// has a deadline, and the connection has no other.
func (s *eventSockets) streamEvents(a *answer, r *http.Request, one *socket.Socket) error {
	if r.ProtoMajor == 1 {
		a.Header().Set("Connection", "close") // conns stops counting the connection, so no further request may use it
		leaveConns(r)
	}
	a.streams = true
	out := http.NewResponseController(a)
	if err := out.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	text := []byte("retry: 3000\n\n")
	for {
		frames, err := one.Next(a.connection, s.commentTime)
		var closing *socket.Closing
		switch {
		case errors.As(err, &closing):
			_ = writeChunk(a, out, closingText(closing)) // the client may have gone away
			return nil
		case err != nil && a.connection.Err() != nil:
			return nil
		case err != nil:
			if a.status != 0 {
				_ = writeChunk(a, out, closingText(socket.Failed)) // the client may have gone away
			}
			return err
		}
		if err := writeChunk(a, out, append(text, eventsText(frames)...)); err != nil {
			return nil // the client has gone away, or is too slow
		}
		text = text[:0]
	}
}

// writeChunk sends bytes without buffering them.
func writeChunk(a *answer, out *http.ResponseController, text []byte) error {
	if err := out.SetWriteDeadline(time.Now().Add(frameTime)); err != nil {
		return err
	}
	if _, err := a.Write(text); err != nil {
		return err
	}
	return out.Flush()
}

// eventsText returns frames as events of a stream, or a comment when there are none.
func eventsText(frames []socket.Frame) []byte {
	if len(frames) == 0 {
		return []byte(":\n\n")
	}
	var b bytes.Buffer
	for _, f := range frames {
		if f.ID != (keyspace.ID{}) {
			writeField(&b, "id", f.ID.String())
		}
		writeField(&b, "event", f.Type)
		writeField(&b, "data", string(f.Body))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// writeField writes a field of an event. No value can begin another field or end the event: each
// line of a value becomes a field of its own, whose values a client joins if the field is data. Of
// several fields event or id, which no valid value makes, only the last one would count for the
// client, so a value of several lines is left out there. An event without a type is a message.
func writeField(b *bytes.Buffer, name, value string) {
	lines := strings.FieldsFunc(value, func(r rune) bool { return r == '\n' || r == '\r' })
	if name != "data" && len(lines) != 1 {
		return
	}
	for _, line := range lines {
		b.WriteString(name + ": " + line + "\n")
	}
}

// closingText returns the last event of a stream that the engine ends. The event is not named
// close, because client libraries use that name themselves.
func closingText(c *socket.Closing) []byte {
	return eventsText([]socket.Frame{{Type: "closed", Body: []byte(`{"type":"closed","code":` + strconv.Itoa(c.Code) + `,"reason":"` + c.Reason + `"}`)}})
}

// leaveKey is the key under which the context of a connection has the function that stops
// counting the connection.
type leaveKey struct{}

// leaveConns stops counting the connection of a request.
func leaveConns(r *http.Request) {
	if leave, ok := r.Context().Value(leaveKey{}).(func()); ok {
		leave()
	}
}

// rememberConn returns the context of a new connection, with the function that leaveConns calls.
func (c *conns) rememberConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, leaveKey{}, func() { c.noteConn(conn, http.StateHijacked) })
}
