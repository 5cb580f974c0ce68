package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Hold runs a statement in a transaction over another connection, and keeps the transaction open.
// Whoever needs the statement's locks waits until release() is called, which undoes the statement,
// or until the test ends.
func Hold(t testing.TB, on *sql.DB, statement string, args ...any) (release func()) {
	t.Helper()
	tx, err := on.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err == nil {
		_, err = tx.Exec(statement, args...)
	}
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = tx.Rollback() }) // fails if the test has ended the connection, and the locks with it
	t.Cleanup(release)
	return release
}

// FailInserts makes PostgreSQL refuse every new row of a table with an SQLSTATE, such as 40001 for
// a transaction that it cannot serialize, until mend() is called.
func FailInserts(t testing.TB, on *sql.DB, table, state string) (mend func()) {
	t.Helper()
	execute(t, on, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as the test wants' USING ERRCODE = '`+state+`'; END $$;
		CREATE TRIGGER fail BEFORE INSERT ON `+table+` FOR EACH ROW EXECUTE FUNCTION fail()`)
	return func() { execute(t, on, `DROP TRIGGER fail ON `+table) }
}

// HoldCommits makes each commit that has added a row to a table wait in the server until release()
// is called, or until the test ends. The commit waits on, and happens then, even if its client
// cancels it or is gone.
func HoldCommits(t testing.TB, on *sql.DB, table string) (release func()) {
	t.Helper()
	const key = 6021023
	execute(t, on, fmt.Sprintf(`CREATE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		LOOP
			BEGIN
				PERFORM pg_advisory_xact_lock_shared(%d);
				RETURN NULL;
			EXCEPTION WHEN query_canceled THEN NULL;
			END;
		END LOOP;
	END $$;
	CREATE CONSTRAINT TRIGGER hold_commit AFTER INSERT ON %s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold_commit()`, key, table))
	return Hold(t, on, `SELECT pg_advisory_xact_lock($1)`, key)
}

// EndConnections ends all other connections to a database.
func EndConnections(t testing.TB, on *sql.DB) {
	t.Helper()
	execute(t, on, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
}

// RefuseConnections makes PostgreSQL refuse connections to a database until AllowConnections is
// called, and ends those that are open. The parameter on is another database of the same server. A
// connection with the application name "obstruction" is ended last: a connection that waits for
// its locks could otherwise commit before it is ended.
func RefuseConnections(t testing.TB, on *sql.DB, database string) {
	t.Helper()
	// Not in one transaction with the next statement, because it takes effect at its commit.
	execute(t, on, fmt.Sprintf(`ALTER DATABASE %q ALLOW_CONNECTIONS false`, database))
	execute(t, on, `SELECT pg_terminate_backend(pid, 5000) FROM (SELECT pid FROM pg_stat_activity WHERE datname = $1 ORDER BY application_name = 'obstruction') sessions`, database)
}

// AllowConnections makes PostgreSQL accept connections to a database again.
func AllowConnections(t testing.TB, on *sql.DB, database string) {
	t.Helper()
	execute(t, on, fmt.Sprintf(`ALTER DATABASE %q ALLOW_CONNECTIONS true`, database))
}

// AwaitUsable waits until c can use u's database. For about a second after a failure, c does not
// try to connect to a database.
func AwaitUsable(t testing.TB, c *db.Cluster, u vocab.Username) {
	t.Helper()
	limit, tick := time.NewTimer(20*time.Second), time.NewTicker(10*time.Millisecond)
	defer limit.Stop()
	defer tick.Stop()
	for {
		err := c.Read(t.Context(), u, func(context.Context, *user.Tx) error { return nil })
		if err == nil {
			return
		}
		select {
		case <-limit.C:
			t.Fatalf("the database of %s cannot be used: %v", u, err)
		case <-tick.C:
		}
	}
}

// execute runs a statement, also in a cleanup and on a goroutine that is not the test's.
func execute(t testing.TB, on *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := on.ExecContext(context.WithoutCancel(t.Context()), statement, args...); err != nil {
		t.Error(err)
	}
}
