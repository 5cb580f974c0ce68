package db_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func name(t testing.TB, s string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestMakingAUserMayEndAnywhereAndBeDoneAgain(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	steps := []func(context.Context, vocab.Username) error{
		func(ctx context.Context, u vocab.Username) error { _, err := c.ReserveUser(ctx, u); return err },
		c.CreateUserDatabase,
		func(ctx context.Context, u vocab.Username) error {
			if err := c.ActivateUser(ctx, u); fault.KindOf(err) != fault.Conflict {
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
		row, err := c.User(t.Context(), u)
		if err != nil || row.State != db.UserActive || row.SchemaVersion != db.Schema() {
			t.Errorf("killed after %d steps: %+v, %v; want an active user", done, row, err)
		}
		write(t, c, u, func(context.Context, *db.Tx) error { return nil })
	}
	if n, err := c.CountUsers(t.Context()); n != len(steps)+1 || err != nil {
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
	users, err := c.Users(t.Context())
	if err != nil || len(users) != 1 || users[0].State != db.UserActive {
		t.Errorf("Users = %+v, %v; want one", users, err)
	}
}

func TestAUserIsActivatedOnce(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	if err := c.ActivateUser(t.Context(), u); fault.KindOf(err) != fault.Conflict {
		t.Errorf("ActivateUser of an active user = %v, want fault.Conflict: who made it first has it", err)
	}
}

func TestMakingAUserAgainLosesNothing(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error { return addNote(ctx, tx, bob, 1, now) })
	dbtest.User(t, c, "alice")
	read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		if o, err := tx.Object(ctx, bob+"/notes/1"); o == nil {
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
	for _, state := range []string{db.UserSuspended, db.UserDeleted} {
		run(t, cfg.Name, `UPDATE users SET state = $1`, state)
		dbtest.User(t, c, "alice")
		row, err := c.User(t.Context(), u)
		if err != nil || row.State != state {
			t.Errorf("state %q, %v; want %q", row.State, err, state)
		}
		if active, err := c.ActiveUsers(t.Context(), []vocab.Username{u}); len(active) != 0 || err != nil {
			t.Errorf("ActiveUsers = %v, %v; want none", active, err)
		}
	}
}

func TestAnUnknownUserIsNoUser(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	_, err := c.User(t.Context(), name(t, "nobody"))
	if fault.KindOf(err) != fault.NoUser {
		t.Errorf("User = %v, want NoUser", err)
	}
}

// Inbound work may fill every connection to the instance database: other servers still learn who is here.
func TestWhoIsHereIsToldWhateverElseIsDone(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	release, err := c.TakeInstance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused := make(chan error, 1)
	go func() {
		_, err := c.Acquainted(waiting, bob, false)
		refused <- err
	}()
	for range 2 { // asked, and remembered
		if state, err := c.State(t.Context(), u); err != nil || state != db.UserActive {
			t.Errorf("State = %s, %v, want active", state, err)
		}
	}
	if state, err := c.State(t.Context(), name(t, "nobody")); fault.KindOf(err) != fault.NoUser {
		t.Errorf("State of nobody = %s, %v, want NoUser", state, err)
	}
	cancel()
	if err := <-refused; err == nil {
		t.Error("there was a connection left for what waited")
	}
}

func TestAcquaintancesMaySayTooMuchNeverTooLittle(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	c := open(t, cfg)
	a, b, d := dbtest.User(t, c, "a"), dbtest.User(t, c, "b"), dbtest.User(t, c, "d")
	acquaint := func(follows bool, users ...vocab.Username) {
		t.Helper()
		if err := c.Acquaint(t.Context(), bob, users, follows); err != nil {
			t.Fatal(err)
		}
	}
	check := func(follows bool, want ...vocab.Username) {
		t.Helper()
		got, err := c.Acquainted(t.Context(), bob, follows)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Acquainted(follows %t) = %v, %v; want %v", follows, got, err, want)
		}
	}
	check(false)
	acquaint(false)
	acquaint(false, b, a, a)
	check(false, a, b)
	check(true)
	acquaint(true, b, d, d)
	check(true, b, d)
	acquaint(false, b) // a follow is never forgotten
	check(true, b, d)
	check(false, a, b, d)
	run(t, cfg.Name, `UPDATE users SET state = 'suspended' WHERE username = 'b'`)
	check(true, d)
	if got, err := c.Acquainted(t.Context(), carol, false); len(got) != 0 || err != nil {
		t.Errorf("a stranger is acquainted with %v, %v", got, err)
	}
	elsewhere := open(t, cfg) // which does not remember who was active just now
	if active, err := elsewhere.ActiveUsers(t.Context(), []vocab.Username{d, b, a}); err != nil || !slices.Equal(active, []vocab.Username{a, d}) {
		t.Errorf("ActiveUsers = %v, %v", active, err)
	}
	if active, err := c.ActiveUsers(t.Context(), nil); err != nil || len(active) != 0 {
		t.Errorf("ActiveUsers of none = %v, %v", active, err)
	}
}

func TestAcquaintWithTheSameUsersFromManySides(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	users := []vocab.Username{dbtest.User(t, c, "a"), dbtest.User(t, c, "b"), dbtest.User(t, c, "d")}
	reversed := slices.Clone(users)
	slices.Reverse(reversed)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			order := users
			if n%2 == 0 {
				order = reversed
			}
			if err := c.Acquaint(t.Context(), bob, order, n%3 == 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
