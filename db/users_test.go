package db_test

import (
	"context"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMakingAUserMayEndAnywhereAndBeDoneAgain(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	steps := []func(context.Context, vocab.Username) error{
		func(ctx context.Context, u vocab.Username) error {
			_, err := c.Instance.Users.Reserve(ctx, u)
			return err
		},
		c.CreateUserDatabase,
		func(ctx context.Context, u vocab.Username) error {
			if err := c.Instance.Users.Activate(ctx, u); fault.KindOf(err) != fault.Conflict {
				return err
			}
			return nil
		},
	}
	for done := range len(steps) + 1 {
		u := name(t, "user"+string(rune('0'+done)))
		for _, n := range []int{done, len(steps)} {
			for _, step := range steps[:n] {
				if err := step(t.Context(), u); err != nil {
					t.Fatalf("killed after %d steps: %v", done, err)
				}
			}
		}
		row, err := c.Instance.Users.Find(t.Context(), u)
		if err != nil || row.State != instance.UserActive || row.SchemaVersion != dbtest.Schema() {
			t.Errorf("killed after %d steps: %+v, %v; want an active user", done, row, err)
		}
		write(t, c, u, func(context.Context, *user.Tx) error { return nil })
	}
	if n, err := c.Instance.Users.CountActive(t.Context()); n != len(steps)+1 || err != nil {
		t.Errorf("CountUsers = %d, %v", n, err)
	}
}

func TestManyMakeOneUserAtOnce(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { dbtest.User(t, c, "alice") })
	}
	all.Wait()
	users, err := c.Instance.Users.All(t.Context())
	if err != nil || len(users) != 1 || users[0].State != instance.UserActive {
		t.Errorf("Users = %+v, %v; want one", users, err)
	}
}

func TestAUserIsActivatedOnce(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	if err := c.Instance.Users.Activate(t.Context(), u); fault.KindOf(err) != fault.Conflict {
		t.Errorf("ActivateUser of an active user = %v, want fault.Conflict: who made it first has it", err)
	}
}

func TestMakingAUserAgainLosesNothing(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return addNote(ctx, tx, bob, 1, now) })
	dbtest.User(t, c, "alice")
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if o, err := tx.Objects.Find(ctx, bob+"/notes/1"); o == nil {
			t.Errorf("Object = nil, %v", err)
		}
		return nil
	})
}

func TestASuspendedOrDeletedUserIsNotActivatedByMakingItAgain(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	c := open(t, cfg)
	u := dbtest.User(t, c, "alice")
	for _, state := range []string{instance.UserSuspended, instance.UserDeleted} {
		run(t, cfg.Name, `UPDATE users SET state = $1`, state)
		dbtest.User(t, c, "alice")
		row, err := c.Instance.Users.Find(t.Context(), u)
		if err != nil || row.State != state {
			t.Errorf("state %q, %v; want %q", row.State, err, state)
		}
		if active, err := c.Instance.Users.Active(t.Context(), []vocab.Username{u}); len(active) != 0 || err != nil {
			t.Errorf("ActiveUsers = %v, %v; want none", active, err)
		}
	}
}

func TestAnUnknownUserIsNoUser(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	_, err := c.Instance.Users.Find(t.Context(), name(t, "nobody"))
	if fault.KindOf(err) != fault.NoUser {
		t.Errorf("User = %v, want NoUser", err)
	}
}
