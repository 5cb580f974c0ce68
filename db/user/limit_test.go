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
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	store.LimitTransactions(time.Minute)
	if err := store.Read(short, alice, waits); fault.KindOf(err) != fault.Busy {
		t.Errorf("a deadline that the caller set: %v", err)
	}
	store.LimitTransactions(50 * time.Millisecond)
	for name, begin := range map[string]func(context.Context) error{
		"Read":  func(ctx context.Context) error { return store.Read(ctx, alice, waits) },
		"Write": func(ctx context.Context) error { return store.Write(ctx, alice, waits) },
	} {
		if err := begin(t.Context()); fault.KindOf(err) != fault.Busy {
			t.Errorf("%s: %v", name, err)
		}
	}
}
