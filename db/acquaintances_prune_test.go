package db_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// night prunes a user's acquaintances, and wants so many removed.
func night(t *testing.T, c *db.Cluster, u vocab.Username, at time.Time, want int) {
	t.Helper()
	for _, dryRun := range []bool{true, false} {
		if n, err := c.PruneAcquaintances(t.Context(), u, at, dryRun); err != nil || n != want {
			t.Errorf("PruneAcquaintances(dry run %t) = %d, %v, want %d", dryRun, n, err, want)
		}
	}
}

// acquaint commits that these actors concern a user.
func acquaint(t *testing.T, c *db.Cluster, u vocab.Username, actors ...vocab.ID) {
	t.Helper()
	for _, a := range actors {
		if err := c.Acquaint(t.Context(), a, []vocab.Username{u}, false); err != nil {
			t.Fatal(err)
		}
	}
}

func isAcquainted(t *testing.T, c *db.Cluster, u vocab.Username, a vocab.ID) bool {
	t.Helper()
	users, err := c.Acquainted(t.Context(), a, false)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(users, u)
}

// Two nights must find nothing of an actor, and nothing may come between them.
func TestIdleAcquaintancesGoAfterTwoNights(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u, other := dbtest.User(t, c, "alice"), dbtest.User(t, c, "bob")
	id := func(name string) vocab.ID { return vocab.ID("https://peer.example/" + name) }
	writes := func(actor vocab.ID) {
		t.Helper()
		write(t, c, u, func(ctx context.Context, tx *db.Tx) error { return addNote(ctx, tx, actor, 1, now) })
	}
	acquaint(t, c, u, id("held"), id("idle"), id("called"), id("wrote"), id("ended"))
	acquaint(t, c, other, id("idle"))
	run(t, cfg.Name, `INSERT INTO acquaintances SELECT 'https://many.example/' || n, 'alice' FROM generate_series(1, 1000) n`) // more than a page
	writes(id("held"))
	writes(id("ended"))
	night(t, c, u, now, 0)
	night(t, c, u, now.Add(11*time.Hour), 0)
	acquaint(t, c, u, id("called"))
	writes(id("wrote"))
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error { _, err := tx.ForgetActor(ctx, id("ended")); return err })
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
	night(t, c, u, now.Add(48*time.Hour), 2) // called, given a day by the call, and ended
}

// What waits in the journal may be of anybody.
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

// Whatever is in a user's database of an actor keeps the acquaintance.
func TestAnythingOfAnActorKeepsTheAcquaintance(t *testing.T) {
	t.Parallel()
	c := open(t, destroyed(t, dbtest.Config(t)))
	u := dbtest.User(t, c, "alice")
	holds := map[string]string{
		"relationships":      `INSERT INTO relationships VALUES (gen_random_uuid(), $a, 'friend', 'x', 'pending', 'f')`,
		"actors":             `INSERT INTO actors VALUES ($a, 'Person', 'x', 'i', '', NULL, '', '{}', now(), now())`,
		"activities":         `INSERT INTO activities VALUES (gen_random_uuid(), $a || '/act', 'inbound', 'Create', $a, NULL, now(), '{}')`,
		"group_members":      `WITH g AS (INSERT INTO groups VALUES (gen_random_uuid(), 'g', 'https://g', now(), 'https://a') RETURNING id) INSERT INTO group_members SELECT id, $a, now(), 'https://a' FROM g`,
		"reactions":          `INSERT INTO reactions VALUES ('o', $a, 'review', 'Like', 'l')`,
		"votes":              `INSERT INTO votes VALUES ('q', $a, 1, now())`,
		"pins":               `INSERT INTO pins VALUES ($a, 'o', 'a', now())`,
		"feed":               `INSERT INTO feed VALUES (gen_random_uuid(), 'x', $a, now())`,
		"requests":           `INSERT INTO requests VALUES ('r', $a, 'h', now())`,
		"correspondents":     `INSERT INTO correspondents VALUES ($a, now())`,
		"blocks":             `INSERT INTO blocks VALUES ('\x01', 'outbound', $a, 'b', now())`,
		"unnamed_recipients": `INSERT INTO unnamed_recipients VALUES ('https://o', 'https://g', ARRAY[$a])`,
		"objects":            `INSERT INTO objects (id, uri, raw, published) VALUES (gen_random_uuid(), $a || '/o', jsonb_build_object('attributedTo', $a), now())`,
		"objects, embedded":  `INSERT INTO objects (id, uri, raw, published) VALUES (gen_random_uuid(), $a || '/o', jsonb_build_object('attributedTo', jsonb_build_array(jsonb_build_object('id', $a))), now())`,
	}
	for name, query := range holds {
		actor := vocab.ID("https://peer.example/" + name[:4] + fmt.Sprint(len(name)))
		acquaint(t, c, u, actor)
		run(t, databaseOf(t, c, u), strings.ReplaceAll(query, "$a", "'"+string(actor)+"'::text"))
	}
	acquaint(t, c, u, "https://peer.example/nothing")
	night(t, c, u, now, 0)
	night(t, c, u, now.Add(24*time.Hour), 1)
}

// An arrival meets the night that is about to remove its row: whatever was applied has one.
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
			write(t, c, u, func(ctx context.Context, tx *db.Tx) error { return addNote(ctx, tx, actor, n, now) })
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
