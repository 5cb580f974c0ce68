package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
)

// checkComment refuses a comment that cannot be stored.
func checkComment(words string) error {
	if !registry.IsComment(words) {
		return fault.New(fault.Invalid, fmt.Sprintf("a comment has at most %d characters, and none that cannot be shown", registry.MaxComment))
	}
	return nil
}

// changeList adds an entry with a comment to a list of s, or removes the entry if remove is
// true. It reports whether anything changed. A removal deletes the entry's comment unless the
// blocked or allowed domains still have the entry. An empty comment leaves the stored one.
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

// unchangedFault returns the fault for entries that were unchanged. The fault is Partial when
// other entries changed. Otherwise it is NotFound for a removal of entries that were not on the
// list, and Conflict for entries that were on the list already.
func unchangedFault[T ~string](same []T, changed int, remove bool, state, hint string) error {
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
