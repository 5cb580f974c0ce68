package handler_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/handler"
)

// The test databases of packages on lower floors use a copy of the registry's types. The copy must
// have the same types.
func TestDatabasesOfTestsKnowTheTypesOfTheRegistry(t *testing.T) {
	t.Parallel()
	if d := cmp.Diff(handler.StoredTypes(), dbtest.Config(t).Types); d != "" {
		t.Errorf("types of the registry (-) and of dbtest (+):\n%s", d)
	}
}

func TestTypesThatTakeSomethingBackLast(t *testing.T) {
	t.Parallel()
	if d := cmp.Diff([]string{"Delete", "Move", "Undo"}, handler.LastingTypes()); d != "" {
		t.Errorf("types that are tried for a month, wanted (-) and of the registry (+):\n%s", d)
	}
}
