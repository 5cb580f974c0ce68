package server

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
)

// bodyTime is how long a client may take to send a body.
const bodyTime = 10 * time.Second

// newBodies returns what of bodies of up to limit bytes may be in memory for requests under way:
// nobody fills it by sending much at once, or by sending slowly.
func newBodies(b *policy.Budget, limit int64) *policy.Pool {
	return b.PoolOf(max(b.Pool, 4*limit))
}

// held is a body that is counted as it is read, until close.
type held struct {
	io.Reader
	of    *policy.Pool
	payer string
	n     int64
}

var errBodies = fault.New(fault.Unavailable, "too much is being sent at once").After(10 * time.Second)

func (h *held) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if !h.of.Take(h.payer, int64(n)) {
		return 0, errBodies
	}
	h.n += int64(n)
	return n, err
}

func (h *held) close() { h.of.Give(h.payer, h.n) }

// readBody reads the whole body of a request: up to limit bytes, and not for ever. A payer pays for
// it out of a pool as long as the request is under way.
func readBody(a *answer, r *http.Request, of *policy.Pool, payer string, limit int64) ([]byte, error) {
	control := http.NewResponseController(a)
	if err := control.SetReadDeadline(time.Now().Add(bodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	a.held = &held{Reader: http.MaxBytesReader(a.ResponseWriter, r.Body, limit), of: of, payer: payer}
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

// readJSON is readBody for a request that has to say that it sends JSON: a form cannot.
func readJSON(a *answer, r *http.Request, of *policy.Pool, payer string, limit int64) ([]byte, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset, given := params["charset"]; err != nil || mediaType != apiJSON || given && !strings.EqualFold(charset, "utf-8") ||
		r.Header.Get("Content-Encoding") != "" {
		return nil, fault.New(fault.Unsupported, "send application/json")
	}
	return readBody(a, r, of, payer, limit)
}
