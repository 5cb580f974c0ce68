package audience

import "slices"

// Rule is a condition under which a user permits something to an actor. The actor must have all
// relationships in All and, unless Any is empty, at least one of those in Any.
type Rule struct {
	Any, All []string
}

// IsMet reports whether an actor with these relationships to the user meets the rule. An empty
// rule is never met.
func (r Rule) IsMet(ties []string) bool {
	has := func(name string) bool { return slices.Contains(ties, name) }
	if len(r.All) == 0 {
		return slices.ContainsFunc(r.Any, has)
	}
	lacks := func(name string) bool { return !has(name) }
	return !slices.ContainsFunc(r.All, lacks) && (len(r.Any) == 0 || slices.ContainsFunc(r.Any, has))
}
