package admin

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
)

func checkComment(words string) error {
	if utf8.RuneCountInString(words) > registry.MaxComment {
		return fault.New(fault.Invalid, fmt.Sprintf("a comment has at most %d characters", registry.MaxComment))
	}
	return nil
}

// changeList puts an entry on a list of s with a comment, or takes both off, and tells whether
// anything is not as it was. A comment goes when no list has its entry any more; an empty one
// leaves what is there.
func changeList[T ~string](s *registry.Server, list *[]T, entry T, remove bool, comment string) bool {
	place := slices.Index(*list, entry)
	name := string(entry)
	switch {
	case remove && place >= 0:
		*list = slices.Delete(*list, place, place+1)
		if !slices.Contains(s.BlockedDomains, name) && !slices.Contains(s.AllowedDomains, name) {
			delete(s.Comments, name)
		}
		return true
	case remove:
		return false
	case place < 0:
		*list = append(*list, entry)
	case comment == "" || s.Comments[name] == comment:
		return false
	}
	if comment != "" {
		s.Comments[name] = comment
	}
	return true
}

// leftAsWas returns what it means that entries were, or were not, on a list before: Conflict, or
// NotFound for what was to be taken off; Partial when others were changed.
func leftAsWas[T ~string](same []T, changed int, remove bool, state, hint string) error {
	if len(same) == 0 {
		return nil
	}
	kind, words := fault.Conflict, "already "+state
	if remove {
		kind, words = fault.NotFound, "not "+state
	}
	if changed > 0 {
		kind = fault.Partial
	}
	names := make([]string, len(same))
	for i, s := range same {
		names[i] = string(s)
	}
	return fault.New(kind, strings.Join(names, ", ")+": "+words).WithHint(hint)
}
