package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// breakage is one way in which the engine's surroundings break. A breakage of one user breaks
// things for the user u. Everything works again after mend() returns.
type breakage struct {
	name   string
	fills  bool // whether it fills the disk
	kills  bool // whether it kills the engine
	breaks func(t *testing.T, c *twoFaults, u *enginetest.User) (mend func())
}

var breakages = []breakage{
	{name: "a user's database is slow", breaks: func(t *testing.T, c *twoFaults, u *enginetest.User) func() {
		return slow(t, c.home.SQL(t, "lightweb_"+u.Name), "activities", "objects", "deliveries", "event_outbox")
	}},
	{name: "a user's database refuses connections", breaks: func(t *testing.T, c *twoFaults, u *enginetest.User) func() {
		away(t, c.home, u, true)
		return func() { away(t, c.home, u, false) }
	}},
	{name: "a user's database is gone", breaks: func(t *testing.T, c *twoFaults, u *enginetest.User) func() {
		rename(t, c.home, "lightweb_"+u.Name, "put_aside")
		return func() { rename(t, c.home, "put_aside", "lightweb_"+u.Name) }
	}},
	{name: "the instance database is slow", breaks: func(t *testing.T, c *twoFaults, _ *enginetest.User) func() {
		return slow(t, c.home.SQL(t, "lightweb"), "intake", "intake_waiting", "users", "acquaintances")
	}},
	{name: "the engine is killed", kills: true, breaks: func(t *testing.T, c *twoFaults, _ *enginetest.User) func() {
		c.home.Kill()
		if c.isFull { // no engine can start on a full disk
			c.isDown = true
			return func() {
				c.home.Start(t)
				c.isDown = false
			}
		}
		c.home.Start(t)
		return func() {}
	}},
	{name: "the disk is full", fills: true, breaks: func(t *testing.T, c *twoFaults, _ *enginetest.User) func() {
		c.disk.Fill(t)
		c.isFull = true
		enginetest.Eventually(t, "PostgreSQL has no room for its log", func() bool {
			return c.writesLog(t) != nil
		})
		return func() {
			c.disk.Free(t)
			c.isFull = false
			if !c.isDown { // the engine starts PostgreSQL again
				enginetest.Eventually(t, "PostgreSQL writes its log again", func() bool { return c.writesLog(t) == nil })
			}
		}
	}},
	{name: "a peer stalls", breaks: func(_ *testing.T, c *twoFaults, _ *enginetest.User) func() { return c.peer.Stall() }},
}

// writesLog makes PostgreSQL begin another segment of its write-ahead log. That fails when the
// disk is full.
func (c *twoFaults) writesLog(t *testing.T) error {
	_, err := c.home.SQL(t, "postgres").ExecContext(t.Context(), `SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()`)
	return err
}

// slow locks the tables one after the other, each for a while, so that transactions wait.
func slow(t *testing.T, database *sql.DB, tables ...string) (mend func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var locked atomic.Int64
	go func() {
		defer close(done)
		again := time.NewTicker(10 * time.Millisecond) // the pause between two tries, also while PostgreSQL cannot be reached
		defer again.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			if lockFor(ctx, database, tables[n%len(tables)]) == nil {
				locked.Add(1)
			}
			<-again.C
		}
	}()
	mend = func() {
		cancel()
		<-done
	}
	t.Cleanup(mend)
	enginetest.Eventually(t, "a table was locked", func() bool { return locked.Load() > 0 })
	return mend
}

// lockFor locks a table for 200 ms.
func lockFor(ctx context.Context, database *sql.DB, table string) error {
	tx, err := database.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // PostgreSQL may have ended, and the lock with it
	_, err = tx.ExecContext(ctx, `LOCK TABLE `+table+` IN ACCESS EXCLUSIVE MODE`)
	if err == nil {
		_, err = tx.ExecContext(ctx, `SELECT pg_sleep(0.2)`)
	}
	return err
}

// rename ends the connections to a database and renames the database.
func rename(t *testing.T, home *enginetest.Instance, from, to string) {
	t.Helper()
	enginetest.Eventually(t, from+" is "+to, func() bool {
		for _, q := range []string{
			fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'`, from),
			fmt.Sprintf(`ALTER DATABASE %s RENAME TO %s`, from, to),
		} {
			if _, err := home.SQL(t, "postgres").ExecContext(t.Context(), q); err != nil {
				return false
			}
		}
		return true
	})
}
