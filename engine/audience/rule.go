package audience

import "slices"

// Rule is a user's condition for what it permits to actors: any, or all, of these relationships.
type Rule struct {
	Any, All []string
}

// IsMet reports whether an actor to which these relationships stand meets the rule. One that asks
// for nothing is met by nobody.
func (r Rule) IsMet(ties []string) bool {
	has := func(name string) bool { return slices.Contains(ties, name) }
	if len(r.All) == 0 {
		return slices.ContainsFunc(r.Any, has)
	}
	lacks := func(name string) bool { return !has(name) }
	return !slices.ContainsFunc(r.All, lacks) && (len(r.Any) == 0 || slices.ContainsFunc(r.Any, has))
}
