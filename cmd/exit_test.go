package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestEveryKindHasAnExitCodeAndAName(t *testing.T) {
	known := map[int]bool{}
	for _, m := range exitMeanings {
		known[m.exit] = true
	}
	names := map[string]fault.Kind{}
	for _, k := range fault.Kinds() {
		row, ok := exitCodes[k]
		if !ok || row.exit == 0 || row.name == "" {
			t.Errorf("kind %d has no row", k)
		}
		if other, taken := names[row.name]; taken {
			t.Errorf("kinds %d and %d are both called %s", k, other, row.name)
		}
		names[row.name] = k
		if !known[row.exit] {
			t.Errorf("exit code %d of %s has no meaning in the documentation", row.exit, row.name)
		}
	}
	if len(exitCodes) != len(fault.Kinds()) {
		t.Errorf("%d rows, want %d", len(exitCodes), len(fault.Kinds()))
	}
}

func TestErrorsAreShownForPeopleAndForPrograms(t *testing.T) {
	cause := errors.New("SQLSTATE 42P04")
	conflict := fmt.Errorf("create user alice: %w", fault.Wrap(fault.Conflict, "the user exists already", cause).WithHint("lightweb user show alice").WithCode("user_exists"))
	tests := []struct {
		name          string
		err           error
		json, verbose bool
		want          string
		exit          int
	}{
		{"what was attempted and why, not the cause", conflict, false, false,
			"error: create user alice: the user exists already\n hint: lightweb user show alice\n", 73},
		{"the cause for those who ask", conflict, false, true,
			"error: create user alice: the user exists already\ncause: create user alice: the user exists already: SQLSTATE 42P04\n hint: lightweb user show alice\n", 73},
		{"one document for programs", conflict, true, false,
			`{"error":{"code":"user_exists","message":"create user alice: the user exists already","hint":"lightweb user show alice","exit":73}}` + "\n", 73},
		{"the kind's name where there is no code", fault.New(fault.NoUser, "no user bob"), true, false,
			`{"error":{"code":"no_user","message":"no user bob","exit":67}}` + "\n", 67},
		{"all of what nobody understood", fmt.Errorf("open engine: %w", cause), false, false,
			"error: open engine: SQLSTATE 42P04\n", 70},
		{"a disk that is full", &fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}, true, false,
			`{"error":{"code":"conflict","message":"write /x: no space left on device","hint":"free some space on that disk","exit":73}}` + "\n", 73},
		{"a folder that is closed", fmt.Errorf("lock /x: %w", &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}), false, true,
			"error: lock /x: open /x: permission denied\n hint: run lightweb as the account that serves, or as root\n", 77},
		{"a cause that was understood", fault.Wrap(fault.Config, "keys cannot be read", syscall.EACCES), true, false,
			`{"error":{"code":"config","message":"keys cannot be read","exit":78}}` + "\n", 78},
		{"an exit code of its own", &exitError{1, errors.New("nothing was done")}, true, false,
			`{"error":{"code":"failed","message":"nothing was done","exit":1}}` + "\n", 1},
		{"another server's words are harmless", fault.New(fault.Protocol, "the peer said \x1b]0;pwned\x07 <b>"), false, false,
			"error: the peer said \ufffd]0;pwned\ufffd <b>\n", 76},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stderr bytes.Buffer
			a := newApp(nil, nil, nil, &stderr)
			a.json, a.verbose = tt.json, tt.verbose
			if code := a.fail(tt.err); code != tt.exit || stderr.String() != tt.want {
				t.Errorf("exit %d, wrote %q, want %d, %q", code, stderr.String(), tt.exit, tt.want)
			}
		})
	}
}
