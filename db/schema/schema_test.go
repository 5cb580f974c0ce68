package schema_test

import (
	"context"
	"testing"
	"time"

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

// While another process holds an instance database, because it may change it, a process that finds
// the database ready does not wait.
func TestAReadyInstanceIsOpenedWithoutALock(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	_, databases := c.Reach()
	holder, err := pgx.Connect(t.Context(), dbtest.URL(t)+" database=postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Shut(holder)
	err = schema.Alone(t.Context(), holder, databases.Name(), func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return databases.Prepare(ctx, schema.Preparing{})
	})
	if err != nil {
		t.Errorf("Prepare = %v", err)
	}
}
