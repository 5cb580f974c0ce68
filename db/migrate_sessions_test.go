package db_test

import (
	"context"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
)

// The engine checks a database's schema only when it opens a connection to it. So a migration must
// end the connections that an engine of an earlier release has to the database.
func TestAMigrationEndsTheConnectionsOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	c, cfg, users := upgraded(t, "alice")
	u, target := users[0], dbtest.Schema()+1
	old := open(t, cfg)
	add := func(ctx context.Context, tx *user.Tx) error {
		return tx.Events.Add(ctx, user.Event{Type: "x", Source: "x", Payload: []byte(`{}`), At: now})
	}
	// during runs the migration within a transaction, and then writes in that transaction.
	during := func(what string, on *db.Cluster, want db.MigrationReport) error {
		return on.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
			if _, err := tx.Blocks.Find(ctx, user.Outbound, bob); err != nil {
				return err
			}
			same(t, what, migrateUsers(t, c, db.Migration{}), want)
			return add(ctx, tx)
		})
	}
	for _, on := range []*db.Cluster{old, open(t, cfg)} { // each engine keeps an idle connection to the database
		write(t, on, u, add)
	}
	operators := session(t, databaseOf(t, c, u))

	if err := during("the change", old, db.MigrationReport{Target: target, Databases: 1, Migrated: 1}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a transaction that had begun before ends with %v, want Unavailable", err)
	}
	if err := old.Write(t.Context(), u, add); !postgres.IsUserFault(err) || !strings.Contains(fault.Hint(err), "newer lightweb") {
		t.Errorf("after it the release before has %v, want that the schema is newer", err)
	}
	awaitNone(t, "session of the release before", `application_name = 'lightweb' AND datname = $1`, databaseOf(t, c, u))
	if err := during("the next run", c, db.MigrationReport{Target: target, Databases: 1, Unchanged: 1}); err != nil {
		t.Errorf("a transaction of this release, beside a run that changes nothing: %v", err)
	}
	var n int
	if err := operators.QueryRow(t.Context(), `SELECT count(*) FROM event_outbox`).Scan(&n); err != nil || n != 3 {
		t.Errorf("an operator's own session reads %d events, %v; want 3", n, err)
	}
}
