package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// refusals maps the kind of a fault to the status of the response.
var refusals = map[fault.Kind]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Invalid:         http.StatusBadRequest,
	fault.Unprocessable:   http.StatusUnprocessableEntity,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.NoUser:          http.StatusNotFound,
	fault.NoHost:          http.StatusBadGateway,
	fault.NotAcceptable:   http.StatusNotAcceptable,
	fault.NotAllowed:      http.StatusMethodNotAllowed,
	fault.Conflict:        http.StatusConflict,
	fault.Gone:            http.StatusGone,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Unsupported:     http.StatusUnsupportedMediaType,
	fault.RateLimited:     http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
	fault.Busy:            http.StatusServiceUnavailable,
	fault.Protocol:        http.StatusBadGateway,
	fault.Config:          http.StatusInternalServerError,
	fault.Usage:           http.StatusInternalServerError,
	fault.Partial:         http.StatusInternalServerError,
}

// retryAfter is the wait that a client is told if the fault names none.
const retryAfter = 5 * time.Second

// problem is a refusal in the form of RFC 9457. In the client API it also has the members success
// and error. The answer to an action has the member success, too.
type problem struct {
	Type      string    `json:"type"`
	Title     string    `json:"title"`
	Status    int       `json:"status"`
	Detail    string    `json:"detail"`
	Instance  string    `json:"instance,omitempty"`
	RequestID string    `json:"request_id"`
	Errors    []pointed `json:"errors,omitempty"`
	Success   *bool     `json:"success,omitempty"`
	Error     string    `json:"error,omitempty"`

	Conversation *conversationState `json:"conversation,omitempty"` // the current state, if the request was made for an older one
}

// pointed is a problem with one part of the request.
type pointed struct {
	Pointer string `json:"pointer"` // JSON Pointer (RFC 6901)
	Detail  string `json:"detail"`
}

const problems = "https://lightwebbrowser.org/problems/"

// refuse answers with the part of err that clients may see, and logs all of it.
func (s *Server) refuse(a *answer, r *http.Request, err error) {
	status := refusals[fault.KindOf(err)]
	if errors.Is(err, errNoUpgrade) { // the method is right, and the protocol is not
		status = http.StatusUpgradeRequired
	}
	s.logRefusal(a, r, status, err)
	if a.status != 0 {
		panic(http.ErrAbortHandler) // half a response must not look like a whole one
	}
	of := fault.Of(err)
	if of == nil {
		of = &fault.Error{}
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		wait := of.RetryAfter
		if wait <= 0 {
			wait = retryAfter
		}
		a.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	if a.Header().Get("Cache-Control") == "" {
		a.setCache("no-store")
	}
	p := problemOf(status, of, err)
	p.RequestID, p.Conversation = a.id, stateOf(err)
	if strings.HasPrefix(r.URL.Path, apiPrefix) || r.URL.Path == socketPath {
		no := false
		p.Success, p.Error, p.Instance = &no, strings.ReplaceAll(strings.TrimPrefix(p.Type, problems), "-", "_"), r.URL.Path
		if !isText(p.Instance) {
			p.Instance = ""
		}
	}
	body, err := vocab.Marshal(p)
	if err != nil {
		// A problem has nothing but texts and numbers.
		panic("server: a problem cannot be written: " + err.Error())
	}
	a.Header().Del("ETag")
	leaves := a.leavesBody(r)
	if leaves {
		a.Header().Set("Connection", "close")
	}
	a.send(status, "application/problem+json", body)
	if leaves {
		a.skipBody(r)
	}
}

// problemOf returns the part of a failure that clients may see.
func problemOf(status int, of *fault.Error, err error) problem {
	code := fault.Code(err)
	title := strings.ReplaceAll(code, "_", " ")
	p := problem{Type: problems + strings.ReplaceAll(code, "_", "-"), Title: strings.ToUpper(title[:1]) + title[1:],
		Status: status, Detail: fault.Public(err)}
	if status == http.StatusInternalServerError { // only the operator may learn what is wrong with this server
		p.Detail = fault.Public(nil)
	}
	if of.Pointer != "" && of.Kind != fault.Internal {
		p.Errors = []pointed{{of.Pointer, p.Detail}}
	}
	return p
}

// lines limits how many refusals and failures the log shows. The log shows samples of each kind.
type lines struct {
	told     *policy.SharedLimiter // refusals, at level Info
	unproven *policy.SharedLimiter // refused signatures, at level Info
	failures *policy.SharedLimiter // failures that are no bugs, at level Warn
}

func newLines(now func() time.Time) lines {
	return lines{policy.RefusedLines.Shared(now), policy.UnprovenLines.Shared(now), policy.FailureLines.Shared(now)}
}

// mayLog reports whether the log may show one more line of a kind about the request's client.
func (s *Server) mayLog(l *policy.SharedLimiter, r *http.Request) bool {
	ok, _ := l.Allow("", policy.NameAddress(s.clientOf(r)), 0)
	return ok
}

// logRefusal logs once why a request was refused or failed, and what the operator can do about
// it. The log always shows bugs, unless the client has gone away. It shows only samples of the
// rest, so that no client can fill the log. Refused signatures are sampled separately, so that
// requests for missing addresses cannot crowd them out. Each line counts against the client's
// address, so that a client that is refused often does not hide the others.
func (s *Server) logRefusal(a *answer, r *http.Request, status int, err error) {
	ctx := r.Context()
	level, message := slog.LevelDebug, "request refused"
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		message = "request abandoned"
	case fault.IsLogged(err):
		message = "request failed"
	case status == http.StatusInternalServerError:
		level, message = slog.LevelError, "request failed"
	case status > http.StatusInternalServerError:
		message = "request failed"
		if s.mayLog(s.lines.failures, r) {
			level = slog.LevelWarn
		}
	case status == http.StatusUnauthorized && strings.HasSuffix(a.route, "/inbox"):
		message = "signature refused"
		if s.mayLog(s.lines.unproven, r) {
			level = slog.LevelInfo
		}
	case s.mayLog(s.lines.told, r):
		level = slog.LevelInfo
	}
	log := s.Log
	if of := fault.Of(err); of != nil && of.Code != "" {
		log = log.With("code", of.Code)
	}
	if hint := fault.Hint(err); hint != "" && level >= slog.LevelWarn {
		log = log.With("hint", hint)
	}
	log.Log(ctx, level, message, "request", a.id, "route", a.route, "status", status, "err", err)
}

func (s *Server) answerNotFound(w http.ResponseWriter, r *http.Request) {
	s.refuse(w.(*answer), r, errNothing)
}

// answerNotAllowed answers a request with a method that the address does not support. The router
// has set Allow to the methods of the address.
func (s *Server) answerNotAllowed(w http.ResponseWriter, r *http.Request) {
	s.refuse(w.(*answer), r, fault.New(fault.NotAllowed, "this address does not take that method"))
}

// answerPanic answers a request whose handler panicked. Other requests are not affected.
func (s *Server) answerPanic(w http.ResponseWriter, r *http.Request, v any) {
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v) // refuse aborts a response in this way, and net/http then closes the connection
	}
	s.refuse(w.(*answer), r, fmt.Errorf("handle request: panic: %v\n%s", v, debug.Stack()))
}

// errNothing is the answer if the requested resource does not exist, or if the sender may not see
// it.
var errNothing = fault.New(fault.NotFound, "there is nothing here")
