package server

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// How much of bodies may be in memory for requests under way, all together and of one client, in bytes. One body always
// may.
const (
	maxBodies       = 64 << 20
	maxClientBodies = 16 << 20
)

// bodyTime is how long a client may take to send a body.
const bodyTime = 10 * time.Second

// bodies counts what is in memory of the bodies of requests: nobody fills it by sending much at once, or by sending
// slowly.
type bodies struct {
	most, mostOfOne int64

	mu      sync.Mutex
	all     int64
	clients map[netip.Prefix]int64
}

// newBodies returns a count for bodies of up to limit bytes.
func newBodies(limit int64) *bodies {
	return &bodies{most: max(maxBodies, 4*limit), mostOfOne: max(maxClientBodies, limit), clients: map[netip.Prefix]int64{}}
}

// take counts n more bytes of a client's, if they may be held.
func (b *bodies) take(client netip.Prefix, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all+n > b.most || b.clients[client]+n > b.mostOfOne {
		return false
	}
	b.all += n
	b.clients[client] += n
	return true
}

func (b *bodies) release(client netip.Prefix, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all -= n
	if b.clients[client] -= n; b.clients[client] == 0 {
		delete(b.clients, client)
	}
}

// held is a body that is counted as it is read, until close.
type held struct {
	io.Reader
	of     *bodies
	client netip.Prefix
	n      int64
}

var errBodies = fault.New(fault.Unavailable, "too much is being sent at once")

func (h *held) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if !h.of.take(h.client, int64(n)) {
		return 0, errBodies
	}
	h.n += int64(n)
	return n, err
}

func (h *held) close() { h.of.release(h.client, h.n) }

// body reads the whole body of a request: up to limit bytes, and not for ever. It counts as long as the request is under
// way.
func (s *Server) body(a *answer, r *http.Request, client netip.Prefix, limit int64) ([]byte, error) {
	control := http.NewResponseController(a)
	if err := control.SetReadDeadline(time.Now().Add(bodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	a.held = &held{Reader: http.MaxBytesReader(a.ResponseWriter, r.Body, limit), of: s.bodies, client: client}
	body, err := io.ReadAll(a.held)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, fault.New(fault.TooLarge, "the body is too large")
	case errors.Is(err, errBodies):
		return nil, errBodies
	case err != nil:
		return nil, fault.Wrap(fault.Invalid, "the body did not arrive whole", err).WithCode("bad_body")
	}
	// A deadline that passes while the request is handled would cancel it.
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	return body, nil
}
