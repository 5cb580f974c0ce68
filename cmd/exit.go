package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/lightweb/lightweb/engine/fault"
)

// exitFailed is the exit code of a failure that has no code of its own.
const exitFailed = 1

// exitPending is the exit code of a command with --check that found something to do.
const exitPending = 4

// exitCodes gives each kind of failure its exit code and its name in JSON. The code is that of
// sysexits.h, if sysexits.h has a code for the kind.
var exitCodes = map[fault.Kind]struct {
	exit int
	name string
}{
	fault.Internal:        {70, "internal"},
	fault.Invalid:         {65, "invalid"},
	fault.Unprocessable:   {65, "unprocessable"},
	fault.Unauthenticated: {77, "unauthenticated"},
	fault.Forbidden:       {77, "forbidden"},
	fault.NotFound:        {66, "not_found"},
	fault.NoUser:          {67, "no_user"},
	fault.NoHost:          {68, "no_host"},
	fault.NotAcceptable:   {exitFailed, "not_acceptable"},
	fault.NotAllowed:      {exitFailed, "not_allowed"},
	fault.Conflict:        {73, "conflict"},
	fault.Gone:            {66, "gone"},
	fault.TooLarge:        {65, "too_large"},
	fault.Unsupported:     {65, "unsupported"},
	fault.RateLimited:     {75, "rate_limited"},
	fault.Unavailable:     {69, "unavailable"},
	fault.Busy:            {75, "busy"},
	fault.Protocol:        {76, "protocol"},
	fault.Config:          {78, "config"},
	fault.Usage:           {64, "usage"},
	fault.Partial:         {3, "partial"},
}

// exitMeanings has the meaning of each exit code for scripts. The documentation shows it.
var exitMeanings = []struct {
	exit    int
	meaning string
}{
	{0, "done; standard output that was closed early is no failure"},
	{exitFailed, "failed"},
	{3, "finished, but some items failed"},
	{exitPending, "--check found something to do"},
	{64, "wrong use of the command line"},
	{65, "bad data: a name, document or size that is not taken"},
	{66, "not found, or gone"},
	{67, "no such local user"},
	{68, "host not found"},
	{69, "a service does not answer: the database, the engine, another server"},
	{70, "a bug"},
	{73, "exists already, or cannot be made"},
	{75, "try again: somebody else is at it, time ran out, or too often"},
	{76, "another server answered against the protocol"},
	{77, "not permitted, or a blocked domain"},
	{78, "wrong configuration"},
	{130, "stopped by SIGINT"},
	{143, "stopped by SIGTERM"},
}

// exitError is an error with another exit code than its kind has.
type exitError struct {
	exit int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// failure is the part of an error that is shown.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Exit    int    `json:"exit"`
}

// refusals are the failures of the operating system that are no bug of ours.
var refusals = []struct {
	cause error
	kind  fault.Kind
	hint  string
}{
	{syscall.ENOSPC, fault.Conflict, "free some space on that disk"},
	{syscall.EDQUOT, fault.Conflict, "free some space, or raise the quota of this user"},
	{syscall.EROFS, fault.Conflict, "make that disk writable: the unit's ReadWritePaths, or the mount"},
	{syscall.EISDIR, fault.Invalid, "name a file, not a folder"},
	{fs.ErrPermission, fault.Forbidden, "run lightweb as the account that serves, or as root"},
}

// faultOf returns err. If err has no fault and the operating system refused something, faultOf
// gives it the kind and the hint of that refusal.
func faultOf(err error) error {
	for _, r := range refusals {
		if fault.Of(err) == nil && errors.Is(err, r.cause) {
			return fault.Wrap(r.kind, err.Error(), err).WithHint(r.hint)
		}
	}
	return err
}

func failureOf(err error) failure {
	err = faultOf(err)
	row := exitCodes[fault.KindOf(err)]
	f := failure{Code: row.name, Message: messageOf(err), Hint: fault.Hint(err), Exit: row.exit}
	if e := fault.Of(err); e != nil && e.Code != "" {
		f.Code = e.Code
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		f.Exit = e.exit
		if fault.Of(err) == nil {
			f.Code = "failed"
		}
	}
	if _, ok := errors.AsType[*interrupted](err); ok {
		f.Code = "interrupted"
	}
	return f
}

// messageOf returns what was attempted and why it failed. If a fault has a public text,
// messageOf leaves out its cause, because the public text explains the fault.
func messageOf(err error) string {
	text := err.Error()
	if e := fault.Of(err); e != nil && e.Kind != fault.Internal && e.Public != "" {
		if cause := e.Unwrap(); cause != nil {
			text = strings.TrimSuffix(text, ": "+cause.Error())
		}
	}
	return text
}

// fail writes err for people or programs, and returns the exit code.
func (a *app) fail(err error) int {
	f := failureOf(err)
	p := a.printer(a.stderr)
	// An error of writing to standard error is ignored, because there is no other place to
	// report it. The exit code still shows the failure.
	if a.json {
		e := json.NewEncoder(a.stderr)
		e.SetEscapeHTML(false)
		_ = e.Encode(map[string]failure{"error": f})
		return f.Exit
	}
	fmt.Fprintf(a.stderr, "%s %s\n", p.style().Foreground(red).Bold(true).Render("error:"), cleanLine(f.Message))
	if cause := err.Error(); a.verbose && cause != f.Message {
		fmt.Fprintf(a.stderr, "%s %s\n", p.style().Faint(true).Render("cause:"), cleanLine(cause))
	}
	if f.Hint != "" {
		fmt.Fprintf(a.stderr, "%s %s\n", p.style().Bold(true).Render(" hint:"), cleanLine(f.Hint))
	}
	return f.Exit
}
