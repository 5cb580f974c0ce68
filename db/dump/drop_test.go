package dump_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/dump"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Deleting user al also drops two other databases of al: the one that a restore replaced, and the
// one that a killed restore left. The databases of user al_ice stay.
func TestAUserWhoIsDroppedLeavesNoDatabase(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	al, longer := dbtest.User(t, c, "al"), dbtest.User(t, c, "al_ice")
	b := take(t, c)
	c.Close()
	c = open(t, cfg)
	for _, u := range []vocab.Username{al, longer} {
		restoring(t, c, func(r *dump.Restoration) {
			build(t, r, b, u)
			if _, err := r.Commit(t.Context(), u, true); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, u := range []vocab.Username{al, longer} {
		run(t, "postgres", `CREATE DATABASE "`+cfg.Name+`_`+u.String()+`-restoring"`)
	}
	left := func() (kinds []string) {
		for _, row := range dbtest.Rows(t, "postgres", `SELECT datname FROM pg_database WHERE starts_with(datname, '`+cfg.Name+`_') ORDER BY datname`) {
			name := strings.TrimPrefix(strings.Trim(row, "()"), cfg.Name+"_")
			kinds = append(kinds, strings.TrimRight(name, "0123456789"))
		}
		return kinds
	}
	of := []string{"al_ice", "al_ice-replaced-", "al_ice-restoring"}
	if got := left(); len(got) != 2*len(of) {
		t.Fatalf("before there are %q: the test shows nothing", got)
	}
	if err := c.DropUserDatabase(t.Context(), al); err != nil {
		t.Fatal(err)
	}
	if got := left(); !slices.Equal(got, of) {
		t.Errorf("%q are left, want those of another user: %q", got, of)
	}
	restoring(t, c, func(r *dump.Restoration) { // this restoration tries the backup out while the engine runs
		build(t, r, b, longer)
		if err := c.DropUserDatabase(t.Context(), longer); err != nil {
			t.Fatal(err)
		}
		if got := left(); !slices.Equal(got, of[2:]) {
			t.Errorf("%q are left, want what another process restores", got)
		}
	})
	if got := left(); len(got) != 0 {
		t.Errorf("at the end %q are left", got)
	}
}
