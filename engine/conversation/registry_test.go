package conversation_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// gate is a store that calls functions of the test before its transactions and within them.
type gate struct {
	*db.Cluster
	before   atomic.Pointer[func() error]
	within   atomic.Pointer[func()] // called after work() and before the commit
	patience atomic.Int64           // the nanoseconds that a transaction may take; 0 for no limit
}

func (g *gate) Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	if before := g.before.Load(); before != nil {
		if err := (*before)(); err != nil {
			return err
		}
	}
	if patience := g.patience.Load(); patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(patience))
		defer cancel()
	}
	return g.Cluster.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		err := work(ctx, tx)
		if within := g.within.Load(); within != nil {
			(*within)()
		}
		return err
	})
}

func (g *gate) set(before func() error) { g.before.Store(&before) }

func (g *gate) setWithin(within func()) { g.within.Store(&within) }

// gated returns a scene with bob, and a gate. The scene's registry uses the gate as its store.
func gated(t *testing.T) (*scene, *gate) {
	t.Helper()
	s := newScene(t).withBob()
	g := &gate{Cluster: s.store}
	s.registry = s.node(g)
	return s, g
}

// Row 16.
func TestRow16ACallerThatGoesAwayTakesBackWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	s, g := gated(t)
	begun, free := make(chan struct{}, 10), make(chan struct{})
	g.set(func() error { begun <- struct{}{}; <-free; return nil })
	first, next := s.request(s.alice, s.group, mlstest.Change{})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { _, err := s.registry.Commit(ctx, s.at, first); gone <- err }()
	<-begun // the work has reached the gate; its transaction has not begun
	leave()
	if err := <-gone; fault.KindOf(err) != fault.Busy {
		t.Errorf("the caller that left was told %v", err)
	}
	close(free)
	second, _ := s.request(s.alice, s.group, mlstest.Change{})
	if a, err := s.registry.Commit(t.Context(), s.at, second); err != nil || a.Epoch != 2 {
		t.Errorf("the next commit of the epoch: %+v, %v, want it accepted", a, err)
	}
	_, err := s.registry.Commit(t.Context(), s.at, first)
	s.wantConflict("the one that was taken back", err, "epoch_conflict")
	if n := s.registry.Waiting(s.at); n != 0 {
		t.Errorf("%d requests wait, want none", n)
	}
	_ = next // unused: no accepted commit made this group
}

// Row 16 of docs/conversations.md, Cases and their tests: a commit is stored even if its caller
// leaves during the transaction. When the request is repeated with its key, it gets the answer.
func TestWhatHasBegunIsDoneThoughItsCallerLeft(t *testing.T) {
	t.Parallel()
	s, g := gated(t)
	begun, free := make(chan struct{}), make(chan struct{})
	g.setWithin(func() { close(begun); <-free })
	r, _ := s.request(s.alice, s.group, mlstest.Change{})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { _, err := s.registry.Commit(ctx, s.at, r); gone <- err }()
	<-begun
	leave()
	if err := <-gone; fault.KindOf(err) != fault.Busy {
		t.Errorf("the caller that left was told %v", err)
	}
	close(free)
	a, err := s.node(s.store).Commit(t.Context(), s.at, r)
	if err != nil || a.Epoch != 2 || len(s.log()) != 2 {
		t.Errorf("the answer is %+v, %v, with %d entries", a, err, len(s.log()))
	}
}

// Row 18.
func TestRow18APanicIsAnsweredAndPanicsAgainAndAgainRest(t *testing.T) {
	t.Parallel()
	s, g := gated(t)
	g.setWithin(func() { panic("a mistake") })
	for range 6 {
		if _, err := s.send(s.bob, s.group.Message()); fault.KindOf(err) != fault.Internal {
			t.Fatalf("a panic is answered with %v", err)
		}
	}
	g.within.Store(nil)
	_, err := s.send(s.bob, s.group.Message())
	s.wantRefused("after six panics", err, fault.Unavailable, "mls_quarantined")
	s.later(61 * time.Second)
	if a, err := s.send(s.bob, s.group.Message()); err != nil || a.Seq != 2 {
		t.Errorf("after its rest: %+v, %v", a, err)
	}
	g.setWithin(func() { panic("one mistake") })
	if _, err := s.send(s.bob, s.group.Message()); err == nil {
		t.Error("a panic is answered with success")
	}
	g.within.Store(nil)
	if _, err := s.send(s.bob, s.group.Message()); err != nil {
		t.Errorf("after one panic: %v", err)
	}
}

func TestTheEpochIsReadWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	if epoch, known := s.registry.Epoch(s.at); !known || epoch != 1 {
		t.Errorf("the epoch is %d (%v), want 1", epoch, known)
	}
	if _, known := s.node(s.store).Epoch(s.at); known {
		t.Error("a process knows an epoch of which it has heard nothing")
	}
}

func TestAClosedRegistryRefuses(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	if err := s.registry.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := s.send(s.bob, s.group.Message())
	s.wantRefused("after Close", err, fault.Unavailable, "mls_closing")
}

// A live conversation must not hold its database row in memory. The GroupInfo in a row may have 1
// MiB, and 10,000 conversations may be live.
func TestALiveConversationHoldsNoRow(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	if s.registry.HoldsRow(s.at) {
		t.Error("after a commit the conversation holds its row, with the GroupInfo")
	}
}
