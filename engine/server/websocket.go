package server

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/julienschmidt/httprouter"
	"golang.org/x/time/rate"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/socket"
)

const (
	socketPath = "/ws"

	// protocol is the subprotocol of the frames (RFC 6455 §1.9). A browser cannot set
	// Authorization, so it sends its token as a second subprotocol, which is never echoed.
	protocol       = "lightweb.v1"
	protocolBearer = "bearer."

	pingTime = 30 * time.Second
	pongTime = 10 * time.Second // the time within which a client must answer a ping
	// closeTime is the time within which a connection ends after the engine has decided to end it.
	closeTime = 10 * time.Second

	maxFrame      = 64 << 10 // bytes of a message that a client sends
	framesPerSec  = 20       // frames of any kind that a client may send
	framesAtATime = 60
)

// webSockets serves WebSockets to users' clients.
type webSockets struct {
	*eventSockets
	origins                       []string // origins of pages that may open a WebSocket
	pingTime, pongTime, frameTime time.Duration
}

func newWebSockets(s *eventSockets, others []string) *webSockets {
	origins := slices.Clone(others)
	if s.local != nil {
		origins = append(origins, s.local.Origin())
	}
	return &webSockets{s, origins, pingTime, pongTime, frameTime}
}

// getSocket opens a WebSocket (RFC 6455), and returns when the WebSocket has ended. A refusal is
// an HTTP response, and comes before the WebSocket is open.
func (s *webSockets) getSocket(a *answer, r *http.Request, _ httprouter.Params) error {
	if err := checkUpgrade(a, r); err != nil {
		return err
	}
	if err := s.checkOrigin(r); err != nil {
		return err
	}
	asked := withOfferedToken(r)
	t, err := s.authorize(a, asked, instance.ScopeRead, instance.ScopeLLM)
	if err != nil {
		return err
	}
	ask, err := s.requestSocket(asked, t, socket.WebSocket)
	if err != nil {
		return err
	}
	one, err := s.openSocket(a, r, ask)
	if err != nil {
		return err
	}
	defer one.Close()
	a.streams = true
	s.serveSocket(a, r, one)
	return nil
}

// errNoUpgrade refuses a request that does not ask for a WebSocket, with 426 (RFC 9110
// §15.5.22).
var errNoUpgrade = fault.New(fault.NotAllowed, "this address speaks WebSocket, version 13, over HTTP/1.1").WithCode("upgrade_required")

// checkUpgrade refuses a request that does not ask for a WebSocket (RFC 6455 §4.2.1).
func checkUpgrade(a *answer, r *http.Request) error {
	h := r.Header
	if r.Method != http.MethodGet || r.ProtoMajor != 1 || r.ProtoMinor < 1 || !hasToken(h, "Connection", "upgrade") ||
		!hasToken(h, "Upgrade", "websocket") || h.Get("Sec-Websocket-Version") != "13" {
		a.Header().Set("Connection", "Upgrade")
		a.Header().Set("Upgrade", "websocket")
		a.Header().Set("Sec-WebSocket-Version", "13")
		return errNoUpgrade
	}
	if keys := h.Values("Sec-Websocket-Key"); len(keys) != 1 || !isNonce(keys[0]) {
		return fault.New(fault.Invalid, "Sec-WebSocket-Key is 16 bytes in base64").WithCode("bad_websocket_key")
	}
	return nil
}

// checkOrigin accepts only pages of this server's own origin and of the origins that the operator
// configured. A client that is not a page sends no Origin.
func (s *webSockets) checkOrigin(r *http.Request) error {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 || len(origins) == 1 && slices.Contains(s.origins, origins[0]) {
		return nil
	}
	return fault.New(fault.Forbidden, "pages of this origin may not open a WebSocket here").WithCode("forbidden_origin")
}

// withOfferedToken adds to the request an Authorization header with the token that the client
// offers as a subprotocol. A request that has an Authorization header already then has two such
// headers, and authentication refuses it.
func withOfferedToken(r *http.Request) *http.Request {
	for _, p := range splitList(r.Header.Values("Sec-Websocket-Protocol")) {
		if secret, is := strings.CutPrefix(p, protocolBearer); is {
			c := *r
			c.Header = r.Header.Clone()
			c.Header.Add("Authorization", "Bearer "+secret)
			r = &c
		}
	}
	return r
}

// hijacking stores the connection that a WebSocket takes over.
type hijacking struct {
	*answer
	conn net.Conn
}

func (h *hijacking) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.answer).Hijack()
	h.conn = conn
	return conn, rw, err
}

// program is the client at the other end of a WebSocket.
type program struct {
	*webSockets
	one    *socket.Socket
	ws     *websocket.Conn
	budget *rate.Limiter // limits the frames that the client sends
}

// serveSocket speaks WebSocket until one side ends it. conns does not count the connection any
// more. Each frame has a deadline, and the connection has no other.
func (s *webSockets) serveSocket(a *answer, r *http.Request, one *socket.Socket) {
	p := &program{webSockets: s, one: one, budget: rate.NewLimiter(framesPerSec, framesAtATime)}
	taken := &hijacking{answer: a}
	ws, err := websocket.Accept(taken, r, &websocket.AcceptOptions{Subprotocols: []string{protocol}, InsecureSkipVerify: true, // checkOrigin has checked it
		OnPingReceived: func(context.Context, []byte) bool { return p.mayGoOn() },
		OnPongReceived: func(context.Context, []byte) { p.mayGoOn() }})
	if err != nil {
		return // Accept has answered, or the connection is gone
	}
	p.ws = ws
	ctx, leave := context.WithCancel(a.connection)
	var both sync.WaitGroup
	both.Go(func() { p.readFrames(ctx, leave) })
	both.Go(func() { p.pingProgram(ctx) })
	closing := p.writeFrames(ctx)
	_ = taken.conn.SetDeadline(time.Now().Add(closeTime)) // so that a client that does not answer cannot delay the end
	if closing != nil {
		_ = ws.Close(websocket.StatusCode(closing.Code), closing.Reason) // the client may have gone away
	}
	leave()
	_ = ws.CloseNow()
	both.Wait()
}

// mayGoOn counts a frame of the client. If there are too many, it ends the socket and returns
// false.
func (p *program) mayGoOn() bool {
	if p.budget.Allow() {
		return true
	}
	p.one.End(socket.TooFast)
	return false
}

// readFrames reads the client's messages until one of them ends the socket, or the client
// disconnects. If the client disconnected, it calls leave.
func (p *program) readFrames(ctx context.Context, leave func()) {
	// With a read limit the connection would be reset before all is read, so that the client
	// would not learn the reason.
	p.ws.SetReadLimit(-1)
	for {
		kind, message, err := p.ws.Reader(context.Background())
		if err != nil {
			leave()
			return
		}
		// A message may have any number of frames, and they may be empty: only time limits it.
		late := time.AfterFunc(p.frameTime, func() { p.one.End(socket.TooSlow) })
		b, err := io.ReadAll(io.LimitReader(message, maxFrame+1))
		late.Stop()
		switch {
		case err != nil:
			leave()
		case len(b) > maxFrame:
			p.one.End(socket.TooBig)
		case kind != websocket.MessageText:
			p.one.End(socket.Misused)
		case p.mayGoOn():
			p.one.Signal(ctx, b)
			continue
		}
		return
	}
}

// pingProgram ends the socket of a client that does not answer pings.
func (p *program) pingProgram(ctx context.Context) {
	tick := time.NewTicker(p.pingTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !p.isAlive(ctx) {
			p.one.End(socket.TooSlow)
			return
		}
		p.one.KeepPresent(ctx)
	}
}

func (p *program) isAlive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, p.pongTime)
	defer cancel()
	return p.ws.Ping(ctx) == nil
}

// writeFrames writes frames until the engine ends the socket or the client disconnects. It returns
// the engine's reason, or nil if the client disconnected or took no frame in time.
func (p *program) writeFrames(ctx context.Context) *socket.Closing {
	for {
		frames, err := p.one.Next(ctx, p.pingTime)
		var closing *socket.Closing
		switch {
		case errors.As(err, &closing):
			return closing
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return socket.Failed
		}
		for _, f := range frames {
			if err := p.writeFrame(ctx, f); err != nil {
				return nil // the client has gone away, or is too slow
			}
		}
	}
}

func (p *program) writeFrame(ctx context.Context, f socket.Frame) error {
	ctx, cancel := context.WithTimeout(ctx, p.frameTime)
	defer cancel()
	return p.ws.Write(ctx, websocket.MessageText, f.Body)
}

// hasToken reports whether a list in the header contains a token. It ignores the case of
// letters.
func hasToken(h http.Header, name, token string) bool {
	return slices.ContainsFunc(splitList(h.Values(name)), func(t string) bool { return strings.EqualFold(t, token) })
}

// isNonce reports whether s can be the key of a handshake (RFC 6455 §4.1).
func isNonce(s string) bool {
	b, err := base64.StdEncoding.DecodeString(s)
	return err == nil && len(b) == 16
}
