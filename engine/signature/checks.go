package signature

import (
	"fmt"
	"slices"
)

// Check is one condition that a request must meet. Run checks the condition on a T, which holds
// the results of earlier checks. Run may add its own results to the T.
type Check[T any] struct {
	Name  string
	Needs []string // earlier checks that must have succeeded before this one can run
	Run   func(T) error
}

// DigestCheck is the name of the check that compares the body with its digest. Of the other
// checks, only coverage depends on the body, and only on whether there is one.
const DigestCheck = "digest"

// Finding is the result of a check.
type Finding struct {
	Check   string
	Reached bool  // false if a check that this one needs failed or did not run
	Err     error // why the check failed; nil if it succeeded
}

// First runs checks in order until one fails. It returns the error of that check, and puts the
// name of the check in front of the error. Requests are verified this way.
func First[T any](of T, checks []Check[T]) error {
	for _, c := range checks {
		if err := c.Run(of); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// All runs every check whose needs are met, and returns all findings. It serves to explain a
// refusal, because one failed check does not hide the results of the others.
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

// None returns the findings for the case that no check could run.
func None[T any](checks []Check[T]) []Finding {
	found := make([]Finding, len(checks))
	for i, c := range checks {
		found[i].Check = c.Name
	}
	return found
}
