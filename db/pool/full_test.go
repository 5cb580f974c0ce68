package pool

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
)

// fullAt makes the server refuse further connections once n are open, as PostgreSQL does.
func (s *server) fullAt(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room = n
}

var errFull = postgres.Fault("open database", &pgconn.PgError{Code: "53300", Message: "sorry, too many clients already"})

func TestWhoFindsTheServerFullWaitsForAConnectionThereIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(64)
		var log bytes.Buffer
		c.log = slog.New(slog.NewTextHandler(&log, nil))
		s.fullAt(3)
		var all sync.WaitGroup
		for n := range 40 {
			all.Go(func() {
				l, err := c.Acquire(t.Context(), Class(n%2), string(rune('a'+n)), nil)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(10 * time.Millisecond) // on the fake clock of synctest
				c.Release(l)
			})
		}
		all.Wait()
		if s.most > 3 {
			t.Errorf("%d connections were open", s.most)
		}
		if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "max_connections of PostgreSQL") || !strings.Contains(log.String(), "database.max_connections=64") {
			t.Errorf("the log has %d lines:\n%s", lines, log.String())
		}
		if full := testutil.ToFloat64(c.metrics.full); full == 0 || full != float64(s.refused) {
			t.Errorf("%v refusals for want of room are counted, want %d", full, s.refused)
		}
		s.fullAt(0)
		time.Sleep(time.Minute)
		available(t, c, 64) // the pool has noticed that the server accepts more connections again
		c.Close()
	})
}

func TestAFullServerIsTriedAgainSparingly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(64)
		s.fullAt(3)
		var all sync.WaitGroup
		over := time.Now().Add(20 * time.Second)
		for n := range 10 {
			all.Go(func() {
				for time.Now().Before(over) {
					l, err := c.Acquire(t.Context(), Work, string(rune('a'+n)), nil)
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
					c.Release(l)
				}
			})
		}
		all.Wait()
		if s.refused > 10+20*64/16 {
			t.Errorf("in 20 seconds %d connections were refused, want at most 4 a second", s.refused)
		}
		c.Close()
	})
}

func TestAServerWithoutAnyRoomIsUnavailableAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(8)
		s.refuses = errFull
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				_, err := c.Acquire(t.Context(), Work, "alice", nil)
				f := fault.Of(err)
				if f == nil || f.Kind != fault.Unavailable || f.Code != "database_full" || f.RetryAfter == 0 || !strings.Contains(f.Hint, "max_connections") {
					t.Errorf("acquire = %v, want database_full", err)
				}
			})
		}
		all.Wait()
		s.refuses = nil
		time.Sleep(time.Minute)
		available(t, c, 8)
		c.Close()
	})
}

func TestADatabaseThatCannotBeUsedIsTriedOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(8)
		began := time.Now().UTC().Format(time.RFC3339)
		s.refuses = postgres.UserFault(errors.New("it is behind"), "migrate")
		for range 10_000 {
			_, err := c.Acquire(t.Context(), Work, "alice", nil)
			if f := fault.Of(err); !postgres.IsUserFault(err) || f.Hint != "migrate" {
				t.Fatalf("acquire = %v, want what is wrong with the database", err)
			}
			time.Sleep(time.Millisecond)
		}
		if s.refused < 8 || s.refused > 13 {
			t.Errorf("in 10 seconds it was tried %d times, want about 10", s.refused)
		}
		if _, err := c.Acquire(t.Context(), Work, "alice", nil); err == nil || !strings.Contains(err.Error(), "known since "+began) {
			t.Errorf("acquire = %v, want since when: %s", err, began)
		}
		for n := range 3000 {
			_, _ = c.Acquire(t.Context(), Work, "user"+string(rune(0x4e00+n)), nil) // the server refuses it
		}
		if len(c.broken) != maxBroken {
			t.Errorf("%d databases are remembered, want %d", len(c.broken), maxBroken)
		}
		s.refuses = nil
		if !now(c, Work, "bob") {
			t.Error("another user's database was refused too")
		}
		time.Sleep(2 * time.Second)
		if !now(c, Work, "alice") {
			t.Error("the database was not tried again")
		}
		s.refuses = postgres.UserFault(errors.New("it is behind"), "migrate")
		c.closeIdle(func(*Lease) bool { return true })
		_ = now(c, Work, "alice") // the server refuses it
		s.refuses = nil
		c.Retry("alice")
		if !now(c, Work, "alice") {
			t.Error("the database was not tried again when that was asked for")
		}
		c.Close()
	})
}

func TestAFailureThatIsNotTheDatabasesIsNotRemembered(t *testing.T) {
	t.Parallel()
	c, s := managed(8)
	defer c.Close()
	s.refuses = postgres.Fault("open", errors.New("no"))
	for range 3 {
		_ = now(c, Work, "alice") // the server refuses it
	}
	s.refuses = nil
	if s.refused != 3 || !now(c, Work, "alice") {
		t.Errorf("the server was asked %d times, want 3, and once more", s.refused)
	}
}
