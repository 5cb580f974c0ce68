package instance_test

import (
	"context"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Another transaction has locked all tables that the calls use, so none of them is answered.
// Without a deadline of the caller, each call ends when the limit is over, and gives its connection
// back.
func TestWorkWithoutADeadlineIsLimited(t *testing.T) {
	t.Parallel()
	store, alice := dbtest.Alice(t)
	db := store.Instance
	release := dbtest.Hold(t, dbtest.InstanceSQL(t, store, alice), `LOCK TABLE users, hosts, wishes, intake, origin IN ACCESS EXCLUSIVE MODE`)
	db.LimitTransactions(50 * time.Millisecond)
	for name, call := range map[string]func(context.Context) error{
		"one row":     func(ctx context.Context) error { _, err := db.Origin(ctx); return err },
		"rows":        func(ctx context.Context) error { _, err := db.Users.All(ctx); return err },
		"a state":     func(ctx context.Context) error { _, err := db.Users.State(ctx, alice); return err },
		"a change":    func(ctx context.Context) error { return db.Users.SetState(ctx, alice, instance.UserActive) },
		"a batch":     func(ctx context.Context) error { return db.Journal.Finish(ctx, []instance.IntakeRow{{Seq: 1}}) },
		"transaction": func(ctx context.Context) error { return db.Users.FinishDeletion(ctx, alice) },
	} {
		for range instance.MaxConnections + 1 { // so often that kept connections would be missed
			ended := make(chan error, 1)
			go func() { ended <- call(t.Context()) }()
			select {
			case err := <-ended:
				if !fault.IsPassing(err) { // Busy, or Unavailable if the limit ended while a connection was opened
					t.Errorf("%s = %v, want that time ran out", name, err)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%s did not end", name)
			}
		}
	}
	release()
	db.LimitTransactions(time.Minute)
	if _, err := db.Users.State(t.Context(), alice); err != nil {
		t.Error(err)
	}
	if all, err := db.Users.All(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("users are %v, %v, want alice", all, err)
	}
	if owned, err := db.Users.Active(t.Context(), []vocab.Username{alice}); err != nil || len(owned) != 1 {
		t.Errorf("active are %v, %v, want alice", owned, err)
	}
}
