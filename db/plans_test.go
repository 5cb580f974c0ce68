package db_test

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Plans are kept for as long as a connection lives, and the statistics of a new user's tables say that they are empty:
// what is asked for each batch must not read a table whole for that.
func TestANewUsersTablesAreNotReadWholeWhileTheyGrow(t *testing.T) {
	t.Parallel()
	c := open(t, destroyed(t, dbtest.Config(t)))
	u := dbtest.User(t, c, "alice")
	database := databaseOf(t, c, u)
	for batch := range 20 {
		write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			var ids, objects []vocab.ID
			for n := range 50 {
				a, o, _ := note(bob, batch*50+n, now)
				ids, objects = append(ids, a.URI), append(objects, o.URI)
			}
			if _, err := tx.ClaimAhead(ctx, ids, []vocab.ID{bob}, objects); err != nil {
				return err
			}
			for n := range 50 {
				if err := addNote(ctx, tx, bob, batch*50+n, now); err != nil {
					return err
				}
				if err := tx.AddEvent(ctx, event(n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	c.Close() // with the session its counts are published
	rows, err := session(t, database).Query(t.Context(), `SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE seq_tup_read > 1000`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		var read int64
		if err := rows.Scan(&table, &read); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%d rows of %s were read in scans of the whole table", read, table)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
