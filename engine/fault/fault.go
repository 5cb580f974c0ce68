// Package fault gives errors a kind, and words that may be shown outside.
//
// An error is given a kind once, where its cause is understood. Every border maps kinds in one
// table: the server to a status, the command line to an exit code, delivery to a retry. An error
// without a kind is Internal.
package fault

import (
	"errors"
	"time"
)

// Kind is the class of a failure, as far as those outside need to tell failures apart.
type Kind uint8

// The kinds. Each border's table has a row for every one of them.
const (
	Internal        Kind = iota // a bug, or a cause nobody understood: never shown
	Invalid                     // malformed input
	Unprocessable               // well-formed input that asks for what cannot be
	Unauthenticated             // no proof, or a wrong one, of who is asking
	Forbidden                   // known, and not allowed
	NotFound                    // nothing there, or nothing that this asker may know of
	NoUser                      // no such local user
	NoHost                      // a peer's name does not resolve
	NotAcceptable               // no representation that the client accepts
	NotAllowed                  // the method is not one this address has
	Conflict                    // there already, or changed meanwhile
	Gone                        // was there, and is deleted for good
	TooLarge                    // over a limit of size
	Unsupported                 // a media type or encoding not taken
	RateLimited                 // too often
	Unavailable                 // a dependency does not answer: try later
	Busy                        // somebody else is at it, or time ran out: try again
	Protocol                    // a peer answered against the protocol
	Config                      // the configuration is wrong
	Usage                       // the command line is wrong
	Partial                     // finished, but some items failed
	kinds
)

// Kinds lists every kind, so that tests can prove a border's table whole.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Error is a failure whose cause was understood.
type Error struct {
	Kind       Kind
	Code       string        // stable name for programs, in snake_case; empty where the kind says enough
	Public     string        // the words for those outside: no table, path, query or other error's text
	Hint       string        // what to do next, for the operator; shown by the command line, never to a peer
	Pointer    string        // JSON Pointer (RFC 6901) to the offending part of a request; empty when it is the whole
	RetryAfter time.Duration // how long to wait before trying again; zero when unknown
	Logged     bool          // the log has it: nobody writes it there again above level Debug
	err        error
}

// New returns an error of kind k with words that may be shown outside.
func New(k Kind, public string) *Error { return &Error{Kind: k, Public: public} }

// Wrap gives err the kind k and words that may be shown outside; err itself is for logs.
func Wrap(k Kind, public string, err error) *Error { return &Error{Kind: k, Public: public, err: err} }

// WithHint returns e with what to do next.
func (e *Error) WithHint(hint string) *Error { c := *e; c.Hint = hint; return &c }

// WithCode returns e with a stable name for programs.
func (e *Error) WithCode(code string) *Error { c := *e; c.Code = code; return &c }

// At returns e pointing to the offending part of a request.
func (e *Error) At(pointer string) *Error { c := *e; c.Pointer = pointer; return &c }

// After returns e with the time to wait before trying again.
func (e *Error) After(d time.Duration) *Error { c := *e; c.RetryAfter = d; return &c }

// AsLogged returns e as one that the log has.
func (e *Error) AsLogged() *Error { c := *e; c.Logged = true; return &c }

func (e *Error) Error() string {
	if e.err == nil {
		return e.Public
	}
	return e.Public + ": " + e.err.Error()
}

func (e *Error) Unwrap() error { return e.err }

// Of returns the outermost understood failure in err's chain, or nil.
func Of(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// KindOf returns the kind of err: Internal unless an error in its chain says otherwise.
func KindOf(err error) Kind {
	if e := Of(err); e != nil {
		return e.Kind
	}
	return Internal
}

// Public returns the words of err that may be shown outside: "internal error" for Internal.
func Public(err error) string {
	if e := Of(err); e != nil && e.Kind != Internal && e.Public != "" {
		return e.Public
	}
	return "internal error"
}

// Hint returns what to do about err, or nothing.
func Hint(err error) string {
	if e := Of(err); e != nil {
		return e.Hint
	}
	return ""
}

// IsLogged reports whether the log has err, or what caused it.
func IsLogged(err error) bool {
	for e := Of(err); e != nil; e = Of(e.err) {
		if e.Logged {
			return true
		}
	}
	return false
}
