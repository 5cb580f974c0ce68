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
	database := dbtest.DatabaseOf(t, s.Store, s.Alice)
	dbtest.Run(t, database, fmt.Sprintf(`ALTER DATABASE %q SET lock_timeout = '20ms'`, database))
	dbtest.EndConnections(t, dbtest.Database(t, database))
	release := dbtest.Hold(t, dbtest.Database(t, database), `LOCK TABLE activities`)
	if err := accept(s, mine, wave("p:/carol", 1)); err != nil {
		t.Fatal(err)
	}
	release()
	settled(t, s)
	if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox`); !slices.Equal(got, []string{"wave.received"}) || len(poisoned(t, s)) != 0 {
		t.Errorf("events: %q, set aside: %+v; want the one applied", got, poisoned(t, s))
	}
}
