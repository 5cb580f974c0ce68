package user_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// night prunes a user's acquaintances at the time at. It fails the test unless it removes as many
// as the parameter want says.
func night(t *testing.T, c *dbtest.Cluster, u vocab.Username, at time.Time, want int) {
	t.Helper()
	for _, dryRun := range []bool{true, false} {
		if n, err := c.PruneAcquaintances(t.Context(), u, at, dryRun); err != nil || n != want {
			t.Errorf("PruneAcquaintances(dry run %t) = %d, %v, want %d", dryRun, n, err, want)
		}
	}
}

// acquaint stores that a user is acquainted with the actors.
func acquaint(t *testing.T, c *dbtest.Cluster, u vocab.Username, actors ...vocab.ID) {
	t.Helper()
	for _, a := range actors {
		if err := c.Instance.Acquaintances.Add(t.Context(), a, []vocab.Username{u}, false); err != nil {
			t.Fatal(err)
		}
	}
}

func isAcquainted(t *testing.T, c *dbtest.Cluster, u vocab.Username, a vocab.ID) bool {
	t.Helper()
	users, err := c.Instance.Acquaintances.Users(t.Context(), a, false)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(users, u)
}

// An acquaintance is removed when the user's database has no row of its actor on two nights in a
// row, and the actor did nothing between the nights.
func TestIdleAcquaintancesGoAfterTwoNights(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u, other := dbtest.User(t, c, "alice"), dbtest.User(t, c, "bob")
	id := func(name string) vocab.ID { return vocab.ID("https://peer.example/" + name) }
	writes := func(actor vocab.ID) {
		t.Helper()
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return addNote(ctx, tx, actor, 1, now) })
	}
	acquaint(t, c, u, id("held"), id("idle"), id("called"), id("wrote"), id("ended"))
	acquaint(t, c, other, id("idle"))
	run(t, cfg.Name, `INSERT INTO acquaintances SELECT 'https://many.example/' || n, 'alice' FROM generate_series(1, 1000) n`) // more rows than a page has
	writes(id("held"))
	writes(id("ended"))
	night(t, c, u, now, 0)
	night(t, c, u, now.Add(11*time.Hour), 0)
	acquaint(t, c, u, id("called"))
	writes(id("wrote"))
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { _, err := tx.Actors.Forget(ctx, id("ended")); return err })
	run(t, databaseOf(t, c, u), `DELETE FROM objects WHERE raw ->> 'attributedTo' = '`+string(id("ended"))+`'`)
	night(t, c, u, now.Add(24*time.Hour), 1001)
	for name, want := range map[string]bool{"held": true, "idle": false, "called": true, "wrote": true, "ended": true} {
		if got := isAcquainted(t, c, u, id(name)); got != want {
			t.Errorf("acquainted with %s: %t, want %t", name, got, want)
		}
	}
	if !isAcquainted(t, c, other, id("idle")) {
		t.Error("another user's row is removed")
	}
	night(t, c, u, now.Add(48*time.Hour), 2) // "called", which the call kept for another day, and "ended"
}

// While an activity waits in the journal, no acquaintance is removed, because any actor may have
// sent the activity.
func TestNoAcquaintanceGoesWhileSomethingWaits(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]string{
		"applied now":   `INSERT INTO intake (uri_digest, actor_digest, raw, recipients) VALUES ('\x01', '\x01', '{}', '{alice}')`,
		"for later":     `WITH i AS (INSERT INTO intake (uri_digest, actor_digest, raw, recipients) VALUES ('\x01', '\x01', '{}', '{}') RETURNING seq) INSERT INTO intake_waiting SELECT 'alice', seq FROM i`,
		"of other user": `INSERT INTO intake (uri_digest, actor_digest, raw, recipients) VALUES ('\x01', '\x01', '{}', '{bob}')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, cfg := named(t)
			u := dbtest.User(t, c, "alice")
			acquaint(t, c, u, bob)
			night(t, c, u, now, 0)
			run(t, cfg.Name, wait)
			want := map[bool]int{true: 1}[name == "of other user"]
			night(t, c, u, now.Add(24*time.Hour), want)
		})
	}
}

// An activity may arrive while its actor's acquaintance is being removed. Afterwards the
// acquaintance must be stored.
func TestNoAcquaintanceGoesUnderAnArrival(t *testing.T) {
	t.Parallel()
	c := open(t, destroyed(t, dbtest.Config(t)))
	u := dbtest.User(t, c, "alice")
	for n := range 40 {
		actor := vocab.ID(fmt.Sprintf("https://peer.example/%d", n))
		acquaint(t, c, u, actor)
		at := now.AddDate(0, 0, n)
		night(t, c, u, at, 0)
		var arrival sync.WaitGroup
		arrival.Go(func() {
			acquaint(t, c, u, actor)
			write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return addNote(ctx, tx, actor, n, now) })
		})
		if _, err := c.PruneAcquaintances(t.Context(), u, at.Add(13*time.Hour), false); err != nil {
			t.Error(err)
		}
		arrival.Wait()
		if !isAcquainted(t, c, u, actor) {
			t.Errorf("the row of %s is gone, and its note is here", actor)
		}
	}
}
