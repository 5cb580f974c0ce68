package user_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestATransactionReadsWhatItHasJustAdded(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		a, o, e := note(bob, 1, now)
		if _, err := tx.Activities.ClaimAhead(ctx, by(bob, a.URI), []vocab.ID{bob}, by(bob, o.URI)); err != nil {
			return err
		}
		if there, err := tx.Objects.Find(ctx, o.URI); there != nil || err != nil {
			t.Errorf("Object before it was added = %v, %v", there, err)
		}
		for _, want := range []bool{true, false} {
			if added, err := tx.Objects.Add(ctx, o); added != want || err != nil {
				t.Errorf("Objects.Add = %t, %v; want %t", added, err, want)
			}
		}
		if there, err := tx.Objects.Find(ctx, o.URI); there == nil || err != nil {
			t.Errorf("Object after it was added = %v, %v", there, err)
		}
		if err := tx.Activities.Add(ctx, a); err != nil {
			return err
		}
		if err := tx.Feed.Add(ctx, e); err != nil {
			return err
		}
		if there, err := tx.Activities.Find(ctx, a.URI); there == nil || err != nil {
			t.Errorf("Activities.Find = %v, %v", there, err)
		}
		if items, err := tx.Feed.List(ctx, nil, 10); len(items) != 1 || items[0].Object == nil || err != nil {
			t.Errorf("Feed.List = %v, %v", items, err)
		}
		return nil
	})
}

func TestAnObjectThatWasAddedAndSentIsThereForTheRestOfTheTransaction(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		a, o, _ := note(bob, 1, now)
		if _, err := tx.Activities.ClaimAhead(ctx, by(bob, a.URI), []vocab.ID{bob}, by(bob, o.URI)); err != nil {
			return err
		}
		if added, err := tx.Objects.Add(ctx, o); !added || err != nil {
			t.Errorf("Objects.Add = %t, %v", added, err)
		}
		if _, err := tx.Activities.Find(ctx, a.URI); err != nil { // reading sends the unsent rows first
			return err
		}
		if there, err := tx.Objects.Find(ctx, o.URI); there == nil || err != nil {
			t.Errorf("Object after it was sent = %v, %v", there, err)
		}
		added, err := tx.Objects.Add(ctx, o)
		if added {
			t.Error("the object was added a second time")
		}
		return err
	})
}

func TestWhatWasReadAheadIsForgottenWhenItChanges(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Activities.ClaimAhead(ctx, by(bob, bob+"/1"), []vocab.ID{bob, carol}, by(bob, post))
		if err != nil {
			return err
		}
		follows := func(want bool) {
			t.Helper()
			if r, err := tx.Relationships.Find(ctx, user.Following, bob); (r != nil) != want || err != nil {
				t.Errorf("Relationships.Find = %v, %v; want one: %t", r, err, want)
			}
		}
		follows(false)
		if err := tx.Relationships.Set(ctx, user.Relationship{Actor: bob, Type: user.Following, Status: user.Accepted, Activity: bob + "/f"}, now); err != nil {
			return err
		}
		follows(true)
		if _, err := tx.Actors.Forget(ctx, bob); err != nil {
			return err
		}
		follows(false)
		if err := addNote(ctx, tx, bob, 1, now); err != nil {
			return err
		}
		if _, err := tx.Objects.Bury(ctx, user.Grave{URI: post, Author: bob, Tombstone: []byte(headline)}, now); err != nil {
			return err
		}
		if o, err := tx.Objects.Find(ctx, post); o == nil || o.DeletedAt == nil || err != nil {
			t.Errorf("Objects.Find = %v, %v; want a tombstone", o, err)
		}
		_, o, _ := note(bob, 1, now)
		if added, err := tx.Objects.Add(ctx, o); added || err != nil {
			t.Errorf("AddObject of a deleted one = %t, %v", added, err)
		}
		return nil
	})
}

func TestAnObjectThatAnotherTransactionStoredMeanwhileIsSeenByTheNextRun(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	runs := 0
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		runs++
		a, o, _ := note(bob, 1, now)
		fresh, err := tx.Activities.ClaimAhead(ctx, by(bob, a.URI), nil, by(bob, o.URI))
		if err != nil || !fresh[user.Owned{ID: a.URI, Actor: bob}] {
			t.Errorf("run %d: Activities.ClaimAhead = %v, %v", runs, fresh, err)
		}
		if runs == 1 {
			write(t, c, u, func(ctx context.Context, other *user.Tx) error { return addNote(ctx, other, bob, 1, now) })
		}
		added, err := tx.Objects.Add(ctx, o)
		if added != (runs == 1) {
			t.Errorf("run %d: Objects.Add = %t", runs, added)
		}
		return err
	})
	if runs != 2 {
		t.Errorf("it ran %d times, want 2", runs)
	}
}

// A transaction sends large activities to the database before its commit, so that memory does not
// hold a batch of them twice.
func TestMuchThatIsUnsentIsSentBeforeTheCommit(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	raw := fmt.Appendf(nil, `{"content":"%s"}`, bytes.Repeat([]byte("x"), 1<<20))
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n := range 10 {
			id := vocab.ID(fmt.Sprint(bob, "/large/", n))
			if err := tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: id, Direction: user.Inbound, Type: "Create", Actor: bob, Published: now, Raw: raw}); err != nil {
				return err
			}
		}
		if n := user.Unsent(tx); n > 4 {
			t.Errorf("%d activities of 1 MiB wait to be sent", n)
		}
		return nil
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if n, err := tx.Activities.Count(ctx, user.Inbound, nil); n != 10 || err != nil {
			t.Errorf("Activities.Count = %d, %v", n, err)
		}
		return nil
	})
}

func TestADocumentThatCannotBeStoredFailsTheTransaction(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: bob + "/1", Direction: user.Inbound, Type: "Create", Actor: bob, Published: time.Now(), Raw: []byte(`{"a":"\u0000"}`)})
	})
	if err == nil {
		t.Error("a document that PostgreSQL refuses was committed")
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if n, err := tx.Activities.Count(ctx, user.Inbound, nil); n != 0 || err != nil {
			t.Errorf("Activities.Count = %d, %v", n, err)
		}
		return nil
	})
}

func TestAnEventIsStoredWhateverBytesAPeerHasSent(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	for _, tt := range []struct{ name, payload, want string }{
		{"NUL in a value", `{"error":"a\u0000b"}`, `{"error":"a\ufffdb"}`},
		{"NUL in a name", `{"a\u0000":1}`, `{"a\ufffd":1}`},
		{"NUL after a backslash", `{"error":"\\\u0000"}`, `{"error":"\\\ufffd"}`},
		{"a text that looks like the escape", `{"error":"\\u0000"}`, `{"error":"\\u0000"}`},
		{"no UTF-8", "{\"error\":\"a\xff\"}", `{"error":"a\ufffd"}`},
	} {
		e := user.Event{Type: "delivery.failed", Source: "ap", Payload: []byte(tt.payload), At: now}
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			tx.Events.Withhold(e)
			return tx.Events.Add(ctx, e)
		})
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			events, err := tx.Events.List(ctx, 0, 100)
			if len(events) < 2 {
				t.Fatalf("%s: %d events, want the added one and the withheld ones", tt.name, len(events))
			}
			added := slices.DeleteFunc(events, func(e user.Event) bool { return bytes.Contains(e.Payload, []byte(`"count"`)) })
			sameJSON(t, added[len(added)-1].Payload, []byte(tt.want))
			return err
		})
	}
}
