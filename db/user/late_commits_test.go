package user_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// loseCommit adds an event, and loses the connection while the commit waits in the server (see
// dbtest.HoldCommits).
func loseCommit(t *testing.T, c *dbtest.Cluster, u vocab.Username) {
	t.Helper()
	done, begun := make(chan error, 1), make(chan *user.Tx, 1)
	go func() {
		done <- c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
			begun <- tx
			return addEvent(ctx, tx)
		})
	}()
	dbtest.AwaitLock(t, c, u, done)
	if err := user.Sever(<-begun); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("Write succeeds")
	}
}

// The connection is lost while the server commits, as when the server hangs and the writer gives
// up. Subscribers that read the database at once find nothing. They are told again when the commit
// is over.
func TestAfterALateCommitSubscribersAreToldAgain(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	told := make(chan int, 10) // the number of events that a subscriber then reads
	c.Subscribe(user.Subscriber{Name: "test", Committed: func(ctx context.Context, commit user.Commit) {
		if !commit.Unknown || commit.User != u {
			t.Errorf("told of %+v", commit)
		}
		told <- len(dbtest.Rows(t, databaseOf(t, c, u), `SELECT seq FROM event_outbox`))
	}})
	on := dbtest.SQL(t, c, u)
	release := dbtest.HoldCommits(t, on, "event_outbox")
	loseCommit(t, c, u)
	if n := <-told; n != 0 {
		t.Errorf("%d events are there while the commit waits", n)
	}
	awaitSession(t, on, `EXISTS`, `state = 'idle' AND query LIKE '%pg_stat_activity%'`) // the backend was looked for
	if len(told) > 0 {
		t.Error("subscribers are told again before the commit is over")
	}
	release()
	n := <-told
	awaitSession(t, on, `NOT EXISTS`, `state <> 'idle'`)
	// The cancellation may reach the server between two waits, and then there is no commit.
	if in := len(dbtest.Rows(t, databaseOf(t, c, u), `SELECT seq FROM event_outbox`)); n != in {
		t.Errorf("when subscribers are told again, %d events are there, want %d, as in the end", n, in)
	}
}

// awaitSession waits until there is another session on the database to which the SQL condition
// applies, or none, as the parameter is says: EXISTS or NOT EXISTS.
func awaitSession(t *testing.T, on *sql.DB, is, condition string) {
	t.Helper()
	for holds := false; !holds; {
		err := on.QueryRowContext(t.Context(), `SELECT `+is+` (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND `+condition+`)`).Scan(&holds)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Close does not wait for a commit of which nobody knows when it ends.
func TestCloseWaitsForNoLateCommit(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var h heard
	c.Subscribe(user.Subscriber{Name: "test", Committed: h.Committed})
	dbtest.HoldCommits(t, dbtest.SQL(t, c, u), "event_outbox")
	loseCommit(t, c, u)
	c.Databases.Close()
	c.Databases.Close()
	if n := len(h.commits()); n != 1 {
		t.Errorf("subscribers are told %d times, want once", n)
	}
}
