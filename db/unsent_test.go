package db_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestATransactionReadsWhatItHasJustAdded(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		a, o, e := note(bob, 1, now)
		if _, err := tx.ClaimAhead(ctx, by(bob, a.URI), []vocab.ID{bob}, by(bob, o.URI)); err != nil {
			return err
		}
		if there, err := tx.Object(ctx, o.URI); there != nil || err != nil {
			t.Errorf("Object before it was added = %v, %v", there, err)
		}
		for _, want := range []bool{true, false} {
			if added, err := tx.AddObject(ctx, o); added != want || err != nil {
				t.Errorf("AddObject = %t, %v; want %t", added, err, want)
			}
		}
		if there, err := tx.Object(ctx, o.URI); there == nil || err != nil {
			t.Errorf("Object after it was added = %v, %v", there, err)
		}
		if err := tx.AddActivity(ctx, a); err != nil {
			return err
		}
		if err := tx.AddFeedEntry(ctx, e); err != nil {
			return err
		}
		if there, err := tx.Activity(ctx, a.URI); there == nil || err != nil {
			t.Errorf("Activity = %v, %v", there, err)
		}
		if items, err := tx.Feed(ctx, nil, 10); len(items) != 1 || items[0].Object == nil || err != nil {
			t.Errorf("Feed = %v, %v", items, err)
		}
		return nil
	})
}

func TestAnObjectThatWasAddedAndSentIsThereForTheRestOfTheTransaction(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		a, o, _ := note(bob, 1, now)
		if _, err := tx.ClaimAhead(ctx, by(bob, a.URI), []vocab.ID{bob}, by(bob, o.URI)); err != nil {
			return err
		}
		if added, err := tx.AddObject(ctx, o); !added || err != nil {
			t.Errorf("AddObject = %t, %v", added, err)
		}
		if _, err := tx.Activity(ctx, a.URI); err != nil { // sends it
			return err
		}
		if there, err := tx.Object(ctx, o.URI); there == nil || err != nil {
			t.Errorf("Object after it was sent = %v, %v", there, err)
		}
		added, err := tx.AddObject(ctx, o)
		if added {
			t.Error("the object was added a second time")
		}
		return err
	})
}

func TestWhatWasReadAheadIsForgottenWhenItChanges(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		_, err := tx.ClaimAhead(ctx, by(bob, bob+"/1"), []vocab.ID{bob, carol}, by(bob, post))
		if err != nil {
			return err
		}
		follows := func(want bool) {
			t.Helper()
			if r, err := tx.Relationship(ctx, db.Following, bob); (r != nil) != want || err != nil {
				t.Errorf("Relationship = %v, %v; want one: %t", r, err, want)
			}
		}
		follows(false)
		if err := tx.SetRelationship(ctx, db.Relationship{Actor: bob, Type: db.Following, Status: db.Accepted, Activity: bob + "/f"}, now); err != nil {
			return err
		}
		follows(true)
		if _, err := tx.ForgetActor(ctx, bob); err != nil {
			return err
		}
		follows(false)
		if err := addNote(ctx, tx, bob, 1, now); err != nil {
			return err
		}
		if _, err := tx.BuryObject(ctx, db.Grave{URI: post, Author: bob, Tombstone: []byte(headline)}, now); err != nil {
			return err
		}
		if o, err := tx.Object(ctx, post); o == nil || o.DeletedAt == nil || err != nil {
			t.Errorf("Object = %v, %v; want a tombstone", o, err)
		}
		_, o, _ := note(bob, 1, now)
		if added, err := tx.AddObject(ctx, o); added || err != nil {
			t.Errorf("AddObject of a deleted one = %t, %v", added, err)
		}
		return nil
	})
}

func TestAnObjectThatAnotherTransactionStoredMeanwhileIsSeenByTheNextRun(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	runs := 0
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		runs++
		a, o, _ := note(bob, 1, now)
		fresh, err := tx.ClaimAhead(ctx, by(bob, a.URI), nil, by(bob, o.URI))
		if err != nil || !fresh[db.Owned{ID: a.URI, Actor: bob}] {
			t.Errorf("run %d: ClaimAhead = %v, %v", runs, fresh, err)
		}
		if runs == 1 {
			write(t, c, u, func(ctx context.Context, other *db.Tx) error { return addNote(ctx, other, bob, 1, now) })
		}
		added, err := tx.AddObject(ctx, o)
		if added != (runs == 1) {
			t.Errorf("run %d: AddObject = %t", runs, added)
		}
		return err
	})
	if runs != 2 {
		t.Errorf("it ran %d times, want 2", runs)
	}
}

// A batch of the largest activities does not lie in memory twice.
func TestMuchThatIsUnsentIsSentBeforeTheCommit(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	raw := fmt.Appendf(nil, `{"content":"%s"}`, bytes.Repeat([]byte("x"), 1<<20))
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for n := range 10 {
			id := vocab.ID(fmt.Sprint(bob, "/large/", n))
			if err := tx.AddActivity(ctx, db.Activity{ID: uuid.New(), URI: id, Direction: db.Inbound, Type: "Create", Actor: bob, Published: now, Raw: raw}); err != nil {
				return err
			}
		}
		if n := db.Unsent(tx); n > 4 {
			t.Errorf("%d activities of 1 MiB wait to be sent", n)
		}
		return nil
	})
	read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		if n, err := tx.CountActivities(ctx, db.Inbound, nil); n != 10 || err != nil {
			t.Errorf("CountActivities = %d, %v", n, err)
		}
		return nil
	})
}

func TestADocumentThatCannotBeStoredFailsTheTransaction(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *db.Tx) error {
		return tx.AddActivity(ctx, db.Activity{ID: uuid.New(), URI: bob + "/1", Direction: db.Inbound, Type: "Create", Actor: bob, Published: time.Now(), Raw: []byte(`{"a":"\u0000"}`)})
	})
	if err == nil {
		t.Error("a document that PostgreSQL refuses was committed")
	}
	read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		if n, err := tx.CountActivities(ctx, db.Inbound, nil); n != 0 || err != nil {
			t.Errorf("CountActivities = %d, %v", n, err)
		}
		return nil
	})
}
