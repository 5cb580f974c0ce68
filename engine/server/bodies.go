package server

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
)

const (
	bodyTime  = 10 * time.Second // how long a client may take to send a body
	largeTime = 20 * time.Second // the same, for a large body of a known sender

	readByGo   = 256 << 10 // bytes of an unread body that net/http discards before it sends the answer
	maxSkipped = 4 << 20   // bytes of a refused body that are read beyond its limit
)

// newBodies returns a pool that limits the memory for the bodies of all requests under way. The
// parameter limit is the most bytes of one body. No client can fill the pool by sending many
// bodies at the same time, or by sending slowly.
func newBodies(b *policy.Budget, limit int64) *policy.Pool {
	return b.PoolOf(max(b.Pool, 4*limit))
}

// held is a body that is being read. Its bytes are charged to the payer as they are read. close
// gives them back to the pool.
type held struct {
	io.Reader
	of    *policy.Pool
	payer string
	n     int64
}

var (
	errBodies       = fault.New(fault.Unavailable, "too much is being sent at once").After(10 * time.Second)
	errBodyTooLarge = fault.New(fault.TooLarge, "the body is too large")
)

func (h *held) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if !h.of.Take(h.payer, int64(n)) {
		return 0, errBodies
	}
	h.n += int64(n)
	return n, err
}

func (h *held) close() {
	h.of.Give(h.payer, h.n)
	h.n = 0
}

// readBody reads the whole body of a request: up to limit bytes, within bodyTime. It reads
// nothing if Content-Length says that the body is longer. The bytes are charged to the payer in
// the pool as long as the request is under way.
func readBody(a *answer, r *http.Request, of *policy.Pool, payer string, limit int64) ([]byte, error) {
	return readWithin(a, r, of, payer, limit, 0, bodyTime)
}

// readWithin does what readBody does, but the client may take the time d to send the body. The
// parameter room is the size of the first buffer, in bytes.
func readWithin(a *answer, r *http.Request, of *policy.Pool, payer string, limit, room int64, d time.Duration) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, errBodyTooLarge
	}
	control := http.NewResponseController(a)
	if err := control.SetReadDeadline(time.Now().Add(d)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	a.bodyLimit = limit
	a.held = &held{Reader: http.MaxBytesReader(a.ResponseWriter, r.Body, limit), of: of, payer: payer}
	body := bytes.NewBuffer(make([]byte, 0, room))
	_, err := body.ReadFrom(a.held)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, errBodyTooLarge
	case errors.Is(err, errBodies):
		return nil, errBodies
	case err != nil:
		a.bodyEnded = true
		return nil, fault.Wrap(fault.Invalid, "the body did not arrive whole", err).WithCode("bad_body")
	}
	// A deadline that passes while the request is handled would cancel the request.
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	a.bodyEnded = true
	return body.Bytes(), nil
}

// leavesBody reports whether a request is answered before its body was read, and the body may be
// larger than what net/http reads itself. It returns false for HTTP/2, where only the request
// ends, and the connection stays open.
func (a *answer) leavesBody(r *http.Request) bool {
	return !a.bodyEnded && r.ProtoMajor == 1 && (r.ContentLength < 0 || r.ContentLength > readByGo)
}

// skipBody reads and discards the rest of a body after the answer is sent: up to maxSkipped bytes
// beyond the limit of the body, within bodyTime. Most clients read no answer before they have
// sent the whole body, so they would see a broken connection in place of the answer. A client
// that sent Expect: 100-continue waits for the answer, and sends no body after it (RFC 9110
// §10.1.1).
func (a *answer) skipBody(r *http.Request) {
	if a.held != nil {
		a.held.close()
	}
	control := http.NewResponseController(a)
	if r.Header.Get("Expect") != "" || control.Flush() != nil || control.SetReadDeadline(time.Now().Add(bodyTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, a.bodyLimit+maxSkipped) // the answer is sent, also if the body breaks off
}

// readJSON does what readBody does, and refuses a request whose Content-Type is not JSON. An HTML
// form cannot have that type.
func readJSON(a *answer, r *http.Request, of *policy.Pool, payer string, limit int64) ([]byte, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset, given := params["charset"]; err != nil || mediaType != apiJSON || given && !strings.EqualFold(charset, "utf-8") ||
		r.Header.Get("Content-Encoding") != "" {
		return nil, fault.New(fault.Unsupported, "send application/json")
	}
	return readBody(a, r, of, payer, limit)
}
