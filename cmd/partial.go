package cmd

import (
	"fmt"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

// someFailed returns the error with which a command ends if it failed for some of all things, or
// nil if it failed for none. The problem follows the numbers, such as "databases could not be
// read".
func someFailed(failed, all int, problem, hint string) error {
	if failed == 0 {
		return nil
	}
	return fault.New(fault.Partial, fmt.Sprintf("%d of %d %s", failed, all, problem)).WithHint(hint)
}

// usersFailed returns the error with which a command ends if it could not use the databases of
// some users, or nil if there are no failures.
func usersFailed(failures []admin.UserFailure) error {
	if len(failures) == 0 {
		return nil
	}
	return firstFailure(len(failures), "databases could not be used", failures[0])
}

// inboxFailed returns the error with which a command ends if it failed for some activities or
// users, or nil if there are no failures. The parameter done says in the result what was to happen
// to the activities, such as "dropped".
func inboxFailed(done string, failures []admin.InboxFailure) error {
	if len(failures) == 0 {
		return nil
	}
	f := failures[0]
	return firstFailure(len(failures), "could not be "+done, admin.UserFailure{User: f.User, Error: f.Error, Hint: f.Hint})
}

func firstFailure(n int, problem string, first admin.UserFailure) error {
	return fault.New(fault.Partial, fmt.Sprintf("%d %s; the first one: %s: %s", n, problem, first.User, first.Error)).WithHint(first.Hint)
}
