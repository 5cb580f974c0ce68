package server

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// bodyTime is how long a client may take to send a body.
const bodyTime = 10 * time.Second

// postInbox takes an activity from another server, for one user or, without a name in the path, for all.
func (s *Server) postInbox(a *answer, r *http.Request, p httprouter.Params) error {
	var u vocab.Username
	if name := p.ByName("user"); name != "" {
		var err error
		if u, err = vocab.ParseUsername(name); err != nil {
			return errNothing
		}
	}
	body, err := a.body(r, s.BodyLimit)
	if err != nil {
		return err
	}
	if err := s.Inbox.Receive(r.Context(), r, body, u); err != nil {
		if fault.KindOf(err) == fault.Unauthenticated {
			a.Header().Set("WWW-Authenticate", `Signature realm="lightweb",headers="(request-target) host date digest"`)
		}
		return err
	}
	a.cache("no-store")
	a.WriteHeader(http.StatusAccepted)
	return nil
}

// body reads the whole body of a request: up to limit bytes, and not for ever.
func (a *answer) body(r *http.Request, limit int64) ([]byte, error) {
	control := http.NewResponseController(a)
	if err := control.SetReadDeadline(time.Now().Add(bodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(a.ResponseWriter, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, fault.New(fault.TooLarge, "the body is too large")
	case err != nil:
		return nil, fault.Wrap(fault.Invalid, "the body did not arrive whole", err).WithCode("bad_body")
	}
	// A deadline that passes while the request is handled would cancel it.
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	return body, nil
}
