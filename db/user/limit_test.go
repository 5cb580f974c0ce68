package user_test

import (
	"context"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
)

func TestATransactionWithoutADeadlineIsLimited(t *testing.T) {
	t.Parallel()
	store := dbtest.New(t)
	alice := dbtest.User(t, store, "alice")
	waits := func(ctx context.Context, _ *user.Tx) error { <-ctx.Done(); return ctx.Err() }
	store.LimitTransactions(time.Minute)
	read(t, store, alice, func(context.Context, *user.Tx) error { return nil }) // so that the pool has an open connection
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := store.Read(short, alice, waits); fault.KindOf(err) != fault.Busy {
		t.Errorf("a deadline that the caller set: %v", err)
	}
	for name, begin := range map[string]func(context.Context) error{
		"Read":  func(ctx context.Context) error { return store.Read(ctx, alice, waits) },
		"Write": func(ctx context.Context) error { return store.Write(ctx, alice, waits) },
	} {
		store.LimitTransactions(time.Minute)
		read(t, store, alice, func(context.Context, *user.Tx) error { return nil }) // so that the pool has an open connection
		store.LimitTransactions(50 * time.Millisecond)
		if err := begin(t.Context()); fault.KindOf(err) != fault.Busy {
			t.Errorf("%s: %v", name, err)
		}
	}
}
