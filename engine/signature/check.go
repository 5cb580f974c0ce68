package signature

import (
	"fmt"
	"slices"
)

// Check is one thing that must hold of a request. Run judges it by a T, the facts that earlier
// checks have found, and may add to them.
type Check[T any] struct {
	Name  string
	Needs []string // the checks before it without which it cannot be made
	Run   func(T) error
}

// DigestCheck is the name of the check that compares the body with its digest: the only one that
// needs the body.
const DigestCheck = "digest"

// Finding is the result of a check.
type Finding struct {
	Check   string
	Reached bool  // false: what it needs did not hold
	Err     error // why it does not hold
}

// First makes checks in order until one fails, and returns why, with its name. Requests are
// verified so.
func First[T any](of T, checks []Check[T]) error {
	for _, c := range checks {
		if err := c.Run(of); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// All makes every check that can be made. Refusals are explained so: by the same checks, none left
// out because another one failed.
func All[T any](of T, checks []Check[T]) []Finding {
	found := make([]Finding, 0, len(checks))
	var missing []string
	for _, c := range checks {
		f := Finding{Check: c.Name, Reached: !slices.ContainsFunc(c.Needs, func(n string) bool { return slices.Contains(missing, n) })}
		if f.Reached {
			f.Err = c.Run(of)
		}
		if !f.Reached || f.Err != nil {
			missing = append(missing, c.Name)
		}
		found = append(found, f)
	}
	return found
}

// None returns the findings when no check could be made.
func None[T any](checks []Check[T]) []Finding {
	found := make([]Finding, len(checks))
	for i, c := range checks {
		found[i].Check = c.Name
	}
	return found
}
