package user_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// errUndo makes a transaction roll back.
var errUndo = errors.New("undo")

// mallory is another actor on bob's server.
const mallory vocab.ID = "https://peer.example/users/mallory"

func TestAnIDThatOneActorTookIsFreeForAnother(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const id = bob + "/1"
	claims := func(actor vocab.ID, want int) {
		t.Helper()
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			for n, claim := range []func() (map[user.Owned]bool, error){
				func() (map[user.Owned]bool, error) { return tx.Activities.Claim(ctx, by(actor, id)) },
				func() (map[user.Owned]bool, error) { return tx.Activities.ClaimAhead(ctx, by(actor, id), nil, nil) },
			} {
				if fresh, err := claim(); err != nil || len(fresh) != want*(1-n) {
					t.Errorf("%s claims for the %dth time: %v, %v; want %d", actor, n+1, fresh, err, want)
				}
			}
			return nil
		})
	}
	claims(mallory, 1)
	claims(bob, 1)
	claims(bob, 0)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.Activities.Unclaim(ctx, by(mallory, id)) })
	claims(bob, 0)
	claims(mallory, 1)
}

// Earlier engines stored ids without an actor. An id in such a row counts as used by every actor.
func TestAnIDFromBeforeIsTakenForEverybody(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	run(t, databaseOf(t, c, u), `INSERT INTO seen (digest) VALUES (sha256(convert_to($1, 'UTF8')))`, string(bob+"/1"))
	run(t, databaseOf(t, c, u), `INSERT INTO tombstones (digest) VALUES (sha256(convert_to($1, 'UTF8')))`, string(post))
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, actor := range []vocab.ID{bob, mallory} {
			if fresh, err := tx.Activities.Claim(ctx, by(actor, bob+"/1")); err != nil || len(fresh) != 0 {
				t.Errorf("%s claims an id from before: %v, %v", actor, fresh, err)
			}
			if added, err := tx.Objects.Add(ctx, noteBy(actor)); added || err != nil {
				t.Errorf("%s writes under an id that was deleted before: %t, %v", actor, added, err)
			}
			if buried, err := tx.Objects.IsBuried(ctx, user.Owned{ID: post, Actor: actor}); !buried || err != nil {
				t.Errorf("what was deleted before is buried for %s: %t, %v", actor, buried, err)
			}
		}
		trace, err := tx.Activities.Trace(ctx, bob+"/1", bob)
		if trace.SeenAt == nil {
			t.Error("the id from before is not found")
		}
		return err
	})
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.Activities.Unclaim(ctx, by(bob, bob+"/1")) })
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		fresh, err := tx.Activities.Claim(ctx, by(bob, bob+"/1"))
		if len(fresh) != 1 {
			t.Error("an id from before that was given back is taken")
		}
		return err
	})
}

// noteBy returns a version of the object post, with the actor as its author.
func noteBy(actor vocab.ID) user.Object {
	return user.Object{ID: uuid.Must(uuid.NewV7()), URI: post, Author: actor, Published: now, Raw: mustJSON(map[string]any{"id": post, "type": "Note", "attributedTo": actor, "content": actor})}
}

func TestADeletionKeepsNobodyElsesObjectAway(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	for name, ahead := range map[string]bool{"read ahead": true, "asked for": false} {
		err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
			if _, err := tx.Objects.Bury(ctx, user.Grave{URI: post, Author: mallory, Tombstone: []byte(headline)}, now); err != nil {
				return err
			}
			if ahead {
				if _, err := tx.Activities.ClaimAhead(ctx, nil, nil, append(by(mallory, post), by(bob, post)...)); err != nil {
					return err
				}
			}
			if added, err := tx.Objects.Add(ctx, noteBy(mallory)); added || err != nil {
				t.Errorf("%s: what mallory deleted comes back: %t, %v", name, added, err)
			}
			if added, err := tx.Objects.Add(ctx, noteBy(bob)); !added || err != nil {
				t.Errorf("%s: what bob writes is kept away: %t, %v", name, added, err)
			}
			return errUndo
		})
		if err == nil {
			t.Fatal("nothing was undone")
		}
	}
}

func TestWhatAnObjectDisplacesIsGone(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	create := func(ctx context.Context, tx *user.Tx, actor, id vocab.ID) error {
		if err := tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: id, Direction: user.Inbound, Type: "Create", Actor: actor, Object: post, Published: now, Raw: []byte(`{}`)}); err != nil {
			return err
		}
		return tx.Feed.Add(ctx, user.FeedEntry{ID: uuid.Must(uuid.NewV7()), Activity: id, Actor: actor, Published: now})
	}
	const same = post + "/create" // the id of mallory's Create and of bob's
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := create(ctx, tx, mallory, same); err != nil {
			return err
		}
		if err := create(ctx, tx, bob, same); err != nil {
			return err
		}
		if _, err := tx.Objects.Add(ctx, noteBy(mallory)); err != nil {
			return err
		}
		if err := tx.Pins.Set(ctx, user.Pin{Actor: mallory, Object: post, Activity: same}, now); err != nil {
			return err
		}
		return tx.Objects.Displace(ctx, noteBy(bob))
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		items, err := tx.Feed.List(ctx, nil, 10)
		if err != nil || len(items) != 1 || items[0].Actor != bob || string(items[0].Object) == "" {
			t.Errorf("the feed holds %v, %v; want bob's note", items, err)
		}
		o, err := tx.Objects.Find(ctx, post)
		if err != nil || o == nil {
			t.Fatalf("the object is %v, %v", o, err)
		}
		if parsed, err := o.Parse(); err != nil || parsed.AttributedTo != bob {
			t.Errorf("the object is %s, %v; want bob's", o.Raw, err)
		}
		if a, err := tx.Activities.FindBy(ctx, user.Owned{ID: same, Actor: mallory}); a != nil || err != nil {
			t.Errorf("mallory's Create is %v, %v", a, err)
		}
		return nil
	})
}
