package schema

import (
	"slices"

	"github.com/lightweb/lightweb/migrations"
)

// UnspelledColumns returns those HeldColumns that are older than canonical ids, and that the
// migration to canonical ids does not rewrite.
func UnspelledColumns() (all []string) {
	before := versionOf(migrations.FS, User, writtenIDs)
	for _, h := range heldColumns {
		spelled := slices.ContainsFunc(spelledByUsers(), func(s spelled) bool { return s.table == h.table && s.column == h.column })
		if h.since < before && !spelled {
			all = append(all, h.table+"."+h.column)
		}
	}
	return all
}

// ReadUser is the function readUser, exported for tests.
var ReadUser = readUser

// Alone is the function alone, exported for tests.
var Alone = alone
