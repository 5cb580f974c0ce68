package dump_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/dump"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// addEvent adds an event. It returns the event's number.
func addEvent(t *testing.T, c *db.Cluster, u vocab.Username) int64 {
	t.Helper()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Events.Add(ctx, user.Event{Type: "create.received", Source: "ap", Payload: []byte(`{}`), At: now})
	})
	return number(t, databaseOf(t, c, u), `SELECT max(seq) FROM event_outbox`)
}

// mostExact is the largest integer that JavaScript represents exactly.
const mostExact = 1<<53 - 1

// A client stores the number of the last event that it has seen. No other event gets that number,
// even if a backup is restored twice.
func TestABackupThatIsRestoredTwiceAssignsNoNumberTwice(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u := dbtest.User(t, c, "alice")
	seen := addEvent(t, c, u)
	b := take(t, c)
	for round := range 2 { // the first restore replaces the database of the backup, the second one the restored database
		for range 3 {
			seen = addEvent(t, c, u)
		}
		c = replaced(t, c, cfg, b, u)
		got := addEvent(t, c, u)
		if got <= seen || got > mostExact {
			t.Errorf("round %d: the next event has number %d, want it above %d and at most %d", round, got, seen, mostExact)
		}
		seen = got
	}
	c.Close()
	run(t, "postgres", `DROP DATABASE "`+cfg.Name+`_alice"`) // so the restore cannot read the highest number of that database
	c = open(t, cfg)
	restoring(t, c, func(r *dump.Restoration) {
		build(t, r, b, u)
		if _, err := r.Commit(t.Context(), u, false); err != nil {
			t.Fatal(err)
		}
	})
	if got := addEvent(t, c, u); got <= seen || got > mostExact {
		t.Errorf("without the database of before the next event has number %d, want it above %d", got, seen)
	}
}

func TestNumbersGoOnAboveThoseOfTheDatabaseThatIsPutAside(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u := dbtest.User(t, c, "alice")
	b := take(t, c)
	const given = 1 << 52 // a clock that was ahead could have assigned this number
	number(t, databaseOf(t, c, u), fmt.Sprintf(`SELECT setval('event_outbox_seq_seq', %d)`, int64(given)))
	c = replaced(t, c, cfg, b, u)
	if got := addEvent(t, c, u); got <= given || got > mostExact {
		t.Errorf("the next event has number %d, want it above %d", got, int64(given))
	}
}
