package server

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/socket"
)

// OpenAPI returns the description of the client API.
func OpenAPI() []byte { return openAPI() }

// Route is a method and path that this server answers.
type Route struct {
	Method, Path string
	Admin        bool // whether it is on the operator's side
}

// Routes returns all registered routes.
func (s *Server) Routes() (all []Route) {
	for path := range s.getRoutes() {
		all = append(all, Route{Method: http.MethodGet, Path: path}, Route{Method: http.MethodHead, Path: path})
	}
	for path := range s.postRoutes() {
		all = append(all, Route{Method: http.MethodPost, Path: path})
	}
	for path := range s.adminRoutes(true) {
		all = append(all, Route{Method: http.MethodGet, Path: path, Admin: true})
	}
	return all
}

// Held returns how many bytes of request bodies are counted as in memory.
func (s *Server) Held() int64 { return s.federation.bodies.Used() }

// KeptPages returns how many bytes of pages are kept for later readers.
func (s *Server) KeptPages() int {
	s.collections.recent.mu.Lock()
	defer s.collections.recent.mu.Unlock()
	return s.collections.recent.bytes
}

// HoldReads uses up all places for reads that strangers at an address have. release() frees the
// places.
func (s *Server) HoldReads(address netip.Addr) (release func()) {
	payer, n := policy.NameAddress(networkOf(address)), int64(0)
	for s.actors.strangers.reads.Take(payer, 1) {
		n++
	}
	return func() { s.actors.strangers.reads.Give(payer, n) }
}

// HoldAnswers uses up all room for large answers that clients at an address have. release() frees
// the room.
func (s *Server) HoldAnswers(address netip.Addr) (release func()) {
	payer, n := policy.NameAddress(networkOf(address)), int64(0)
	for s.answers.Take(payer, 1<<10) {
		n += 1 << 10
	}
	return func() { s.answers.Give(payer, n) }
}

// HeldAnswers returns how many bytes of large answers are counted as being sent.
func (s *Server) HeldAnswers() int64 { return s.answers.Used() }

// HoldAtMost limits the bytes of request bodies in memory, and has a separate limit of the same
// size for the bodies of actions. Call it before the first request.
func (s *Server) HoldAtMost(bytes int64) {
	s.federation.bodies, s.api.bodies = policy.Bodies.PoolOf(bytes), policy.ActionBodies.PoolOf(bytes)
}

// SetCommentTime sets how often an idle stream sends a comment.
func SetCommentTime(s *Server, t time.Duration) { s.events.commentTime = t }

// SetPingTimes sets how often the server pings WebSockets, and how long a pong may take.
func SetPingTimes(s *Server, every, grace time.Duration) {
	s.webSockets.pingTime, s.webSockets.pongTime = every, grace
}

// SetFrameTime sets how long a program may take to accept one frame of a WebSocket.
func SetFrameTime(s *Server, t time.Duration) { s.webSockets.frameTime = t }

// HardenCounted does the same as Harden. counted() returns the number of open connections.
func HardenCounted(srv *http.Server) (counted func() int64) {
	c := newConns(nil)
	harden(srv, c)
	return c.all.Used
}

// EventsText returns frames as events of a stream.
func EventsText(frames ...socket.Frame) string { return string(eventsText(frames)) }
