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

// A member moves while one of its groups is being deleted. The move succeeds, and the deleted
// group stays deleted.
func TestAMemberMovesWhileItsGroupIsDeleted(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const old, now = vocab.ID("https://peer.example/carol"), vocab.ID("https://peer.example/caroline")
	family, friends := uuid.New(), uuid.New()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for name, id := range map[string]uuid.UUID{"family": family, "friends": friends} {
			if err := tx.Groups.Add(ctx, user.Group{ID: id, Name: name, URI: vocab.ID("https://us.example/groups/" + name)}, time.Now()); err != nil {
				return err
			}
			if err := tx.Groups.AddMember(ctx, id, old, "", time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	deleted, moving := make(chan struct{}), make(chan error, 1)
	go func() {
		<-deleted
		moving <- c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error { return tx.Groups.MoveMember(ctx, old, now) })
	}()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Groups.Remove(ctx, friends); err != nil {
			return err
		}
		if g, err := tx.Groups.Find(ctx, "friends"); err != nil || g != nil {
			t.Errorf("the group is %+v, %v", g, err)
		}
		close(deleted)
		dbtest.AwaitLock(t, c, u, moving)
		return nil
	})
	if err := <-moving; err != nil {
		t.Fatal(err)
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Groups.List(ctx)
		if len(all) != 1 || all[0].ID != family || len(all[0].Members) != 1 || all[0].Members[0] != now {
			t.Errorf("groups %+v, want family with the new account", all)
		}
		return err
	})
}

func TestAMemberIsAddedOnce(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const carol, first = vocab.ID("https://peer.example/carol"), vocab.ID("https://us.example/activities/1")
	g := user.Group{ID: uuid.New(), Name: "friends", URI: "https://us.example/groups/1"}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.Groups.Add(ctx, g, time.Now()) })
	for _, add := range []vocab.ID{first, "https://us.example/activities/2"} { // the second Add is a repetition by the user, or made by a Move
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			return tx.Groups.AddMember(ctx, g.ID, carol, add, time.Now())
		})
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if by, err := tx.Groups.FindMembership(ctx, g.ID, carol); err != nil || by != first {
			t.Errorf("a member by %q, %v; want the first", by, err)
		}
		return nil
	})
}
