package event_test

import (
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// Each commit that adds events waits while events are dropped or their ids are raised. So one
// transaction changes only so many, however many there are.
func TestNoTransactionChangesAllEventsOfAUser(t *testing.T) {
	t.Parallel()
	const most = 10_000
	r := newRig(t)
	r.keep = 500
	alice := dbtest.User(t, r.store, "alice")
	r.sql(alice, `CREATE TABLE changes (kind text, n int);
		CREATE FUNCTION count_changes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO changes SELECT tg_op, count(*) FROM changed; RETURN NULL; END $$;
		CREATE TRIGGER deletes AFTER DELETE ON event_outbox REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_changes();
		CREATE TRIGGER updates AFTER UPDATE ON event_outbox REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_changes();
		INSERT INTO event_outbox (type, source, payload, created_at, ms) SELECT 'x', 'ap', '{}', now(), n FROM generate_series(1, 12000) n`)
	r.redis.Do("XADD", "alice:events", "99999-1", "event", "{}") // the stream has reached a later time
	r.sql(alice, `UPDATE event_outbox SET ms = 99999 WHERE seq = 1; DELETE FROM changes`)
	r.start()
	r.tell(alice)
	redistest.Eventually(t, "old events are dropped", func() bool { return len(r.rows(alice)) == 500 })
	for _, kind := range []string{"UPDATE", "DELETE"} {
		var all, largest int
		row := dbtest.Database(t, dbtest.DatabaseOf(t, r.store, alice)).QueryRowContext(t.Context(), `SELECT coalesce(sum(n), 0), coalesce(max(n), 0) FROM changes WHERE kind = $1`, kind)
		if err := row.Scan(&all, &largest); err != nil {
			t.Fatal(err)
		}
		if all < 11_000 || largest > most {
			t.Errorf("%s of %d events, at most %d in one transaction; want all, and at most %d", kind, all, largest, most)
		}
	}
}
