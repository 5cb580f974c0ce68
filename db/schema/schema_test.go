package schema_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
)

// The pool stores that a user's database cannot be used. A caller that gives up while it waits
// must not make the pool store that.
func TestACallerThatGivesUpSaysNothingOfTheDatabase(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	row, err := c.Instance.Users.Find(t.Context(), dbtest.User(t, c, "alice"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dbtest.URL(t)+" database="+row.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Shut(conn)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := schema.ReadUser(ctx, conn); postgres.IsUserFault(err) || fault.KindOf(err) != fault.Busy {
		t.Errorf("ReadUser = %v, a fault of the user's database: %t; want Busy", err, postgres.IsUserFault(err))
	}
}
