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

// However many outcomes are recorded at once, each finds its delivery by its id: nothing looks through all that is pending.
func TestOutcomesAreFoundByTheirIDs(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	c := open(t, cfg)
	u := dbtest.User(t, c, "alice")
	const many = 3000
	inboxes := make([]db.Inbox, many)
	for n := range inboxes {
		inboxes[n] = inboxOn("p.example", n)
	}
	var rows []db.Delivery
	write(t, c, u, func(ctx context.Context, tx *db.Tx) (err error) {
		rows, err = tx.EnqueueLeased(ctx, job("Create", ""), inboxes, now, db.DeliveryLeases{Owner: "me", Until: now.Add(lease), Most: many})
		return err
	})
	outcomes := make([]db.Outcome, len(rows))
	for n, r := range rows {
		outcomes[n] = db.Outcome{Delivery: r.ID, Status: db.DeliveryDelivered, Spent: true}
	}
	conn := session(t, databaseOf(t, c, u))
	read := func() (n int64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'deliveries')
			+ (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'deliveries')`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	c.Close() // with the session its counts are published
	before := read()
	c = open(t, cfg)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		finished, err := tx.FinishDeliveries(ctx, "me", outcomes, now)
		if len(finished) != many {
			t.Errorf("%d outcomes are recorded, want %d", len(finished), many)
		}
		return err
	})
	c.Close()
	if n := read() - before; n > 5*many {
		t.Errorf("%d rows and entries of indexes were read for %d outcomes", n, many)
	}
}
