// Package fault gives errors a kind, and a text that may be shown to users and peers.
//
// An error gets its kind once, in the code that understands its cause. Each border of the engine
// has one table that maps kinds: the server maps them to a status, the command line to an exit
// code, and delivery to a retry. An error without a kind is Internal.
package fault

import (
	"errors"
	"strings"
	"time"
)

// Kind is the class of a failure. Two failures have different kinds only if users, peers or
// operators need the difference.
type Kind uint8

// The kinds. The table of each border has a row for each of them.
const (
	Internal        Kind = iota // a bug, or an unknown cause: its text is never shown
	Invalid                     // malformed input
	Unprocessable               // well-formed input that asks for something impossible
	Unauthenticated             // the sender's identity is not proven, or the proof is wrong
	Forbidden                   // the sender is known, and not allowed to do this
	NotFound                    // does not exist, or the sender may not know that it does
	NoUser                      // no such local user
	NoHost                      // the DNS has no such name of a peer
	NotAcceptable               // no representation that the client accepts
	NotAllowed                  // this address does not support the method
	Conflict                    // exists already, or was changed meanwhile
	Gone                        // existed, and is deleted for good
	TooLarge                    // over a limit of size
	Unsupported                 // a media type or encoding that is not accepted
	RateLimited                 // too often
	Unavailable                 // a dependency does not answer: try later
	Busy                        // another process is doing the same, or time ran out: try again
	Protocol                    // a peer's response violates the protocol
	Config                      // the configuration is wrong
	Usage                       // the command line is wrong
	Partial                     // completed, but some items failed
	kinds
)

// Kinds returns every kind, so that tests can check that the table of a border is complete.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Error is a failure with a known cause.
type Error struct {
	Kind       Kind
	Code       string        // stable name for programs, in snake_case; empty when the kind is enough
	Public     string        // the text for users and peers: it names no table, path or query, and quotes no other error
	Hint       string        // what to do next, for the operator; shown by the command line, never to a peer
	Pointer    string        // JSON Pointer (RFC 6901) to the invalid part of a request; empty when the whole request is invalid
	RetryAfter time.Duration // how long to wait before trying again; zero when unknown
	Logged     bool          // this error was logged already, and must not be logged again above level Debug
	err        error
}

// New returns an error of kind k. The text public may be shown to users and peers.
func New(k Kind, public string) *Error { return &Error{Kind: k, Public: public} }

// Wrap returns an error of kind k with the cause err. The text public may be shown to users and
// peers; the text of err is only for logs.
func Wrap(k Kind, public string, err error) *Error { return &Error{Kind: k, Public: public, err: err} }

// WithHint returns a copy of e with a hint for the operator.
func (e *Error) WithHint(hint string) *Error { c := *e; c.Hint = hint; return &c }

// WithCode returns a copy of e with a stable name for programs.
func (e *Error) WithCode(code string) *Error { c := *e; c.Code = code; return &c }

// At returns a copy of e with a pointer to the invalid part of a request.
func (e *Error) At(pointer string) *Error { c := *e; c.Pointer = pointer; return &c }

// After returns a copy of e with the time to wait before trying again.
func (e *Error) After(d time.Duration) *Error { c := *e; c.RetryAfter = d; return &c }

// AsLogged returns a copy of e that is marked as logged.
func (e *Error) AsLogged() *Error { c := *e; c.Logged = true; return &c }

func (e *Error) Error() string {
	if e.err == nil {
		return e.Public
	}
	return e.Public + ": " + e.err.Error()
}

func (e *Error) Unwrap() error { return e.err }

// Of returns the outermost *Error in err's chain, or nil.
func Of(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}

// KindOf returns the kind of the outermost *Error in err's chain, or Internal if there is none.
func KindOf(err error) Kind {
	if e := Of(err); e != nil {
		return e.Kind
	}
	return Internal
}

// IsPassing reports whether err is temporary: a dependency or a peer cannot be asked now, and may
// be asked later.
func IsPassing(err error) bool {
	switch KindOf(err) {
	case Unavailable, Busy, RateLimited:
		return true
	}
	return false
}

// IsOurs reports whether this server is the cause of err, which a fetch from another server
// returned. The cause may be a bug, this server's configuration, its lack of time, or a part of it
// that cannot be used now. A fault of kind Unavailable that a fetch returns has a code if this
// server is the cause. If another server is the cause, the fault has no code, or a code that ends
// in "unreachable".
func IsOurs(err error) bool {
	switch KindOf(err) {
	case Internal, Config, Busy:
		return err != nil
	case Unavailable:
		code := Of(err).Code
		return code != "" && !strings.HasSuffix(code, "unreachable")
	}
	return false
}

// Public returns the text of err that may be shown to users and peers. For an Internal error, and
// for an error without such a text, Public returns "internal error".
func Public(err error) string {
	if e := Of(err); e != nil && e.Kind != Internal && e.Public != "" {
		return e.Public
	}
	return "internal error"
}

// codes are the names, for programs, of failures that have no code of their own.
var codes = [kinds]string{
	Internal:        "internal_error",
	Invalid:         "bad_request",
	Unprocessable:   "unprocessable",
	Unauthenticated: "unauthenticated",
	Forbidden:       "forbidden",
	NotFound:        "not_found",
	NoUser:          "not_found",
	NoHost:          "host_not_found",
	NotAcceptable:   "not_acceptable",
	NotAllowed:      "method_not_allowed",
	Conflict:        "conflict",
	Gone:            "gone",
	TooLarge:        "too_large",
	Unsupported:     "unsupported_media_type",
	RateLimited:     "rate_limited",
	Unavailable:     "unavailable",
	Busy:            "busy",
	Protocol:        "protocol_error",
	Config:          "internal_error",
	Usage:           "internal_error",
	Partial:         "internal_error",
}

// Code returns the stable name of err for programs: its own code, or that of its kind. An Internal
// error has no other name than internal_error.
func Code(err error) string {
	if e := Of(err); e != nil && e.Kind != Internal && e.Code != "" {
		return e.Code
	}
	return codes[KindOf(err)]
}

// Hint returns the hint of err, or an empty string if err has none.
func Hint(err error) string {
	if e := Of(err); e != nil {
		return e.Hint
	}
	return ""
}

// IsLogged reports whether err or its cause was logged already.
func IsLogged(err error) bool {
	for e := Of(err); e != nil; e = Of(e.err) {
		if e.Logged {
			return true
		}
	}
	return false
}
