package user_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func block(actor vocab.ID, direction string) user.Block {
	return user.Block{Actor: actor, Direction: direction, Activity: actor + "/blocks/1"}
}

func TestABlockHoldsHoweverTheActorIsWritten(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Blocks.Add(ctx, block("https://peer.example/carol", user.Outbound), time.Now()); err != nil {
			return err
		}
		return tx.Blocks.Add(ctx, block("https://peer.example/dave", user.Inbound), time.Now())
	})
	const disguised = "HTTPS://Peer.example:443/carol"
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		got, err := tx.Blocks.FindAmong(ctx, []vocab.ID{disguised, "https://peer.example/dave", "https://peer.example/carol2"})
		if err != nil || !got[disguised] || got["https://peer.example/dave"] || got["https://peer.example/carol2"] {
			t.Errorf("Blocks.FindAmong = %v, %v; want carol alone", got, err)
		}
		if removed, err := tx.Blocks.Remove(ctx, user.Inbound, disguised); err != nil || removed {
			t.Errorf("carol's block of the user: %v, %v; want none", removed, err)
		}
		removed, err := tx.Blocks.Remove(ctx, user.Outbound, disguised)
		if err != nil || !removed {
			t.Errorf("Blocks.Remove = %v, %v; want it removed", removed, err)
		}
		left, err := tx.Blocks.Find(ctx, user.Outbound, disguised)
		if err != nil || left != nil {
			t.Errorf("Blocks.Find = %+v, %v; want none", left, err)
		}
		return nil
	})
}

func TestABlockWaitsForNoBackup(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const carol = vocab.ID("https://peer.example/carol")
	err := c.Read(t.Context(), u, func(ctx context.Context, long *user.Tx) error {
		if _, err := long.Blocks.FindAmong(ctx, []vocab.ID{carol}); err != nil {
			return err
		}
		return c.Write(context.WithoutCancel(t.Context()), u, func(ctx context.Context, tx *user.Tx) error {
			if err := user.Exec(ctx, tx, `SET LOCAL lock_timeout = '10s'`); err != nil {
				return err
			}
			if err := tx.ChangeAudience(ctx); err != nil {
				return err
			}
			return tx.Blocks.Add(ctx, block(carol, user.Outbound), time.Now())
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// A follow is applied while its actor is being blocked. Either the block ends the follow, or the
// follow is refused because of the block.
func TestNothingSlipsInBesideABlock(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const carol = vocab.ID("https://peer.example/carol")
	asked, blocking := make(chan struct{}), make(chan error, 1)
	go func() {
		<-asked
		blocking <- c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
			if err := tx.ChangeAudience(ctx); err != nil {
				return err
			}
			if err := tx.Blocks.Add(ctx, block(carol, user.Outbound), time.Now()); err != nil {
				return err
			}
			ended, err := tx.Relationships.End(ctx, user.Follower, carol, now)
			if err == nil && !ended {
				t.Error("the block found no follow to end")
			}
			return err
		})
	}()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Activities.ClaimAhead(ctx, nil, []vocab.ID{carol}, nil); err != nil {
			return err
		}
		if blocked, err := tx.Blocks.FindAmong(ctx, []vocab.ID{carol}); err != nil || blocked[carol] {
			t.Errorf("blocked = %v, %v; want nobody yet", blocked, err)
		}
		close(asked)
		dbtest.AwaitLock(t, c, u, blocking)
		return tx.Relationships.Set(ctx, user.Relationship{Actor: carol, Type: user.Follower, Status: user.Accepted, Activity: carol + "/follows/1"}, time.Now())
	})
	if err := <-blocking; err != nil {
		t.Fatal(err)
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		rel, err := tx.Relationships.Find(ctx, user.Follower, carol)
		if err == nil && rel != nil {
			t.Errorf("carol is %+v, want nothing of hers beside the block", rel)
		}
		return err
	})
}

func TestWhatABlockedActorDidIsNoNotification(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const me, carol = vocab.ID("https://us.example/users/alice"), vocab.ID("https://peer.example/carol")
	listed := func(want int, when string) {
		t.Helper()
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			items, err := tx.Feed.ListNotifications(ctx, me, nil, 10)
			if len(items) != want {
				t.Errorf("%s: %d notifications, want %d", when, len(items), want)
			}
			return err
		})
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: carol + "/follows/1", Direction: user.Inbound, Type: "Follow", Actor: carol,
			Object: me, Published: time.Now(), Raw: []byte(`{}`)})
	})
	listed(1, "before")
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Blocks.Add(ctx, block(carol, user.Outbound), time.Now())
	})
	listed(0, "blocked")
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Blocks.Remove(ctx, user.Outbound, carol); err != nil {
			return err
		}
		return tx.Blocks.Add(ctx, block(carol, user.Inbound), time.Now())
	})
	listed(1, "while carol blocks the user")
}
