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

// refusals maps what kind of failure it was to the status that says so, and to the name that
// programs know it by when the fault has none of its own.
var refusals = map[fault.Kind]struct {
	status int
	code   string
}{
	fault.Internal:        {http.StatusInternalServerError, "internal_error"},
	fault.Invalid:         {http.StatusBadRequest, "bad_request"},
	fault.Unprocessable:   {http.StatusUnprocessableEntity, "unprocessable"},
	fault.Unauthenticated: {http.StatusUnauthorized, "unauthenticated"},
	fault.Forbidden:       {http.StatusForbidden, "forbidden"},
	fault.NotFound:        {http.StatusNotFound, "not_found"},
	fault.NoUser:          {http.StatusNotFound, "not_found"},
	fault.NoHost:          {http.StatusBadGateway, "host_not_found"},
	fault.NotAcceptable:   {http.StatusNotAcceptable, "not_acceptable"},
	fault.NotAllowed:      {http.StatusMethodNotAllowed, "method_not_allowed"},
	fault.Conflict:        {http.StatusConflict, "conflict"},
	fault.Gone:            {http.StatusGone, "gone"},
	fault.TooLarge:        {http.StatusRequestEntityTooLarge, "too_large"},
	fault.Unsupported:     {http.StatusUnsupportedMediaType, "unsupported_media_type"},
	fault.RateLimited:     {http.StatusTooManyRequests, "rate_limited"},
	fault.Unavailable:     {http.StatusServiceUnavailable, "unavailable"},
	fault.Busy:            {http.StatusServiceUnavailable, "busy"},
	fault.Protocol:        {http.StatusBadGateway, "protocol_error"},
	fault.Config:          {http.StatusInternalServerError, "internal_error"},
	fault.Usage:           {http.StatusInternalServerError, "internal_error"},
	fault.Partial:         {http.StatusInternalServerError, "internal_error"},
}

// retryAfter is what a client is told to wait when nobody knows better.
const retryAfter = 5 * time.Second

// problem is a refusal as programs read it (RFC 9457). To clients of ours it is the result of an
// action, too.
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

	Conversation *conversationState `json:"conversation,omitempty"` // of which the request knew an older state
}

// pointed is a problem with one part of the request.
type pointed struct {
	Pointer string `json:"pointer"` // JSON Pointer (RFC 6901)
	Detail  string `json:"detail"`
}

const problems = "https://lightwebbrowser.org/problems/"

// refuse answers with what went wrong, in words that may be shown, and logs the rest.
func (s *Server) refuse(a *answer, r *http.Request, err error) {
	known := refusals[fault.KindOf(err)]
	if errors.Is(err, errNoUpgrade) { // the method is right, and HTTP is not
		known.status = http.StatusUpgradeRequired
	}
	s.logRefusal(a, r, known.status, err)
	if a.status != 0 {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	of := fault.Of(err)
	if of == nil {
		of = &fault.Error{}
	}
	if known.status == http.StatusServiceUnavailable || known.status == http.StatusTooManyRequests {
		wait := of.RetryAfter
		if wait <= 0 {
			wait = retryAfter
		}
		a.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	if a.Header().Get("Cache-Control") == "" {
		a.setCache("no-store")
	}
	p := problemOf(known.status, known.code, of, err)
	p.RequestID, p.Conversation = a.id, stateOf(err)
	if strings.HasPrefix(r.URL.Path, apiPrefix) {
		no := false
		p.Success, p.Error, p.Instance = &no, strings.ReplaceAll(strings.TrimPrefix(p.Type, problems), "-", "_"), r.URL.Path
		if !isText(p.Instance) {
			p.Instance = ""
		}
	}
	body, err := vocab.Marshal(p)
	if err != nil {
		panic("server: a problem cannot be written: " + err.Error()) // it holds nothing but texts and numbers
	}
	a.Header().Del("ETag")
	a.send(known.status, "application/problem+json", body)
}

// problemOf returns what may be shown of a failure.
func problemOf(status int, code string, of *fault.Error, err error) problem {
	if of.Code != "" && of.Kind != fault.Internal {
		code = of.Code
	}
	title := strings.ReplaceAll(code, "_", " ")
	p := problem{Type: problems + strings.ReplaceAll(code, "_", "-"), Title: strings.ToUpper(title[:1]) + title[1:],
		Status: status, Detail: fault.Public(err)}
	if status == http.StatusInternalServerError { // what is wrong here is for the operator to know
		p.Detail = fault.Public(nil)
	}
	if of.Pointer != "" && of.Kind != fault.Internal {
		p.Errors = []pointed{{of.Pointer, p.Detail}}
	}
	return p
}

// lines are the samples of refusals and failures that the log shows.
type lines struct {
	told     *policy.SharedLimiter // refusals, at level Info
	unproven *policy.SharedLimiter // the same, of signatures
	failures *policy.SharedLimiter // failures that are no bugs, at level Warn
}

func newLines(now func() time.Time) lines {
	return lines{policy.RefusedLines.Shared(now), policy.UnprovenLines.Shared(now), policy.FailureLines.Shared(now)}
}

// mayLog reports whether the log shows one more line of a kind about a client.
func (s *Server) mayLog(l *policy.SharedLimiter, r *http.Request) bool {
	ok, _ := l.Allow("", policy.NameAddress(s.clientOf(r)), 0)
	return ok
}

// logRefusal writes down, once, why a request was not answered as asked, and what the operator can
// do about it. All but bugs are told in samples: whoever can make us refuse, or keep us busy,
// cannot fill the log. Signatures that are refused have samples of their own: whoever looks for
// what is not here cannot hide them. The client's address pays: one that is refused much hides
// nobody else.
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

// answerNotAllowed answers for an address that has other methods; the router has listed them in
// Allow.
func (s *Server) answerNotAllowed(w http.ResponseWriter, r *http.Request) {
	s.refuse(w.(*answer), r, fault.New(fault.NotAllowed, "this address does not take that method"))
}

// answerPanic answers for a bug of ours; the other requests go on.
func (s *Server) answerPanic(w http.ResponseWriter, r *http.Request, v any) {
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v) // refuse means it: net/http cuts the connection
	}
	s.refuse(w.(*answer), r, fmt.Errorf("handle request: panic: %v\n%s", v, debug.Stack()))
}

// errNothing is the one answer for what is not there and for what the asker may not know of.
var errNothing = fault.New(fault.NotFound, "there is nothing here")
