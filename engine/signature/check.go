package signature

import (
	"fmt"
	"slices"
)

// Check is one thing that must hold of a request, judged by a T: what was learnt of it so far, to
// which it may add.
type Check[T any] struct {
	Name  string
	Needs []string // the checks before it without which it cannot be made
	Run   func(T) error
}

// Finding is what came of a check.
type Finding struct {
	Check   string
	Reached bool  // false: what it needs did not hold
	Err     error // why it does not hold
}

// First makes checks in order until one does not hold, and returns why, with its name. It is how
// requests are verified.
func First[T any](of T, checks []Check[T]) error {
	for _, c := range checks {
		if err := c.Run(of); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// All makes every one of the checks that can be made. It is how they are explained: the same
// checks, none of them left out because another one failed.
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

// None returns the findings of checks of which none could be made.
func None[T any](checks []Check[T]) []Finding {
	found := make([]Finding, len(checks))
	for i, c := range checks {
		found[i].Check = c.Name
	}
	return found
}
