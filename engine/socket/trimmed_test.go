package socket_test

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/keyspace"
)

// A program reads old events, and the next ones are dropped meanwhile. The program gets a reset.
// The event that counts withheld events is never dropped, but the engine must still notice the
// gap.
func TestAProgramIsToldOfEventsThatWereTrimmedWhileItReads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u := dbtest.User(t, r.store, "alice")
	live := r.open(u, nil)
	live.settle()
	r.add(u, 1)
	live.await(1)
	err := r.store.Write(t.Context(), u, func(_ context.Context, tx *user.Tx) error {
		tx.Events.Withhold(r.event("events.withheld"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.add(u, 450)
	redisHas(r, u, 451)
	numbers := r.numbers(u)
	c := r.open(u, &live.ids[0])
	c.await(200)
	err = r.store.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Events.DropEmitted(ctx, int64(numbers[len(numbers)-1]), 5)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.redis.Do("XTRIM", "alice:events", "MAXLEN", "5")
	kept := r.numbers(u)[1:] // the first event only counts withheld events
	frames := c.next()
	if frames[0].Type != "reset" || frames[1].ID.Seq != kept[0] {
		t.Fatalf("after the events were dropped came %s and %s, want a reset and event %d", frames[0].Body, frames[1].Body, kept[0])
	}
	c.await(200 + len(kept))
	checkStart(r, u, "the cursor of the reset", keyspace.ID{Milli: frames[1].ID.Milli, Seq: kept[0] - 1}, "", keyspace.ID{})
}
