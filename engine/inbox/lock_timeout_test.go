package inbox_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
)

func TestALockThatLastsTooLongSetsNothingAside(t *testing.T) {
	s := newScene(t)
	s.Inbox.Backoff(5*time.Millisecond, 50*time.Millisecond)
	sql := dbtest.SQL(t, s.Store, s.Alice)
	exec := func(query string) {
		t.Helper()
		if _, err := sql.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	var name string
	if err := sql.QueryRowContext(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	exec(fmt.Sprintf(`ALTER DATABASE %q SET lock_timeout = '20ms'`, name))
	exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	other, err := sql.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback() }() // fails unless the test fails first, because the transaction has ended
	if _, err := other.ExecContext(t.Context(), `LOCK TABLE activities`); err != nil {
		t.Fatal(err)
	}
	if err := accept(s, mine, wave("p:/carol", 1)); err != nil {
		t.Fatal(err)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	settled(t, s)
	if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox`); !slices.Equal(got, []string{"wave.received"}) || len(poisoned(t, s)) != 0 {
		t.Errorf("events: %q, set aside: %+v; want the one applied", got, poisoned(t, s))
	}
}
