package db_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMultiplyMakesWhatTheEngineWouldHaveStored(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	a, o, _ := note(bob, 1, now)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		if _, err := tx.Claim(ctx, []vocab.ID{a.URI}); err != nil {
			return err
		}
		return addNote(ctx, tx, bob, 1, now)
	})
	const n = 25
	var told int
	if err := c.Multiply(t.Context(), u, a.URI, o.URI, n, func(done, all int) { told = done }); err != nil {
		t.Fatal(err)
	}
	activities, shown, err := c.Received(t.Context(), u, bob)
	if err != nil || activities != n || shown != n || told != n {
		t.Errorf("there are %d activities, %d in the feed, told of %d (%v), want %d of each", activities, shown, told, err, n)
	}
	last := vocab.ID(fmt.Sprintf("%s-%d", o.URI, n-1))
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		if object, err := tx.Object(ctx, last); err != nil || object == nil {
			t.Errorf("the last copy of the object is %v (%v)", object, err)
		}
		fresh, err := tx.Claim(ctx, []vocab.ID{last + "/activity"})
		if len(fresh) != 0 {
			t.Error("the id of a copy can be claimed again")
		}
		items, err2 := tx.Feed(ctx, nil, 2)
		if err2 != nil || len(items) != 2 || items[0].Published.Sub(items[1].Published).Milliseconds() != 1 {
			t.Errorf("the feed begins with %v (%v), want copies a millisecond apart", items, err2)
		}
		return err
	})
}

func TestServerSaysWhatItIs(t *testing.T) {
	t.Parallel()
	c, _ := alice(t)
	s, err := c.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Version == "" || s.Settings["synchronous_commit"] == "" || s.Settings["max_connections"] == "" || s.Backend == 0 {
		t.Errorf("the server says of itself %+v", s)
	}
	if _, err := c.Waits(t.Context()); err != nil {
		t.Error(err)
	}
}
