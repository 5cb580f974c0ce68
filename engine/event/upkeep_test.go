package event_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// failing are users of which the first answer of each kind is lost.
type failing struct {
	event.Users
	all, listed, cleared atomic.Bool // an answer was lost
}

var errLost = errors.New("the connection broke")

func (f *failing) All(ctx context.Context) ([]instance.User, error) {
	all, err := f.Users.All(ctx)
	if f.all.CompareAndSwap(false, true) {
		return nil, errLost
	}
	return all, err
}

func (f *failing) ListEventsDue(ctx context.Context) ([]instance.EventsDue, error) {
	due, err := f.Users.ListEventsDue(ctx)
	if len(due) > 0 && f.listed.CompareAndSwap(false, true) {
		return nil, errLost
	}
	return due, err
}

func (f *failing) ClearEventsDue(ctx context.Context, all []instance.EventsDue) error {
	if f.cleared.CompareAndSwap(false, true) {
		return errLost
	}
	return f.Users.ClearEventsDue(ctx, all)
}

func TestEventsOfAnEarlierProcessAreEmittedThoughTheUsersCouldNotBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	r.add(alice, 3) // nobody serves yet
	r.users = &failing{Users: r.users}
	r.start()
	r.wantSame(alice)
}

func TestEventsOfOtherProcessesAreEmittedThoughAnAnswerIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	users := &failing{Users: r.users}
	users.all.Store(true)
	r.users = users
	r.start()
	r.add(alice, 1)
	r.wantSame(alice)
	emits := r.emits
	r.emits = nil // another process adds the next ones
	r.add(alice, 2)
	if err := r.store.Instance.Users.MarkEventsDue(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	r.emits = emits
	r.wantSame(alice)
	redistest.Eventually(t, "the mark is cleared", func() bool {
		due, err := r.store.Instance.Users.ListEventsDue(t.Context())
		return err == nil && len(due) == 0
	})
	if !users.listed.Load() || !users.cleared.Load() {
		t.Error("no answer was lost")
	}
}

func TestEventsOfOtherProcessesAreEmitted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	r.start()
	r.add(alice, 1)
	r.wantSame(alice)
	emits := r.emits
	r.emits = nil
	r.add(alice, 1)
	if err := r.store.Instance.Users.MarkEventsDue(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	r.emits = emits
	r.wantSame(alice)
}
