package user_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestCloseWaitsForTransactionsAndRefusesNewOnes(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	c := open(t, cfg)
	u := dbtest.User(t, c, "alice")
	inside, finish, written := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		written <- c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
			close(inside)
			<-finish
			_, err := tx.Activities.Claim(ctx, by(bob, "https://a.example/1"))
			return err
		})
	}()
	<-inside
	var closed sync.WaitGroup
	closed.Go(c.Close)
	closed.Go(func() { close(finish) })
	if err := <-written; err != nil {
		t.Errorf("the transaction under way = %v", err)
	}
	closed.Wait()
	if err := c.Write(t.Context(), u, nil); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Write after Close = %v, want Unavailable", err)
	}
}

func TestWriteRollsBackAndKeepsTheErrorOfItsWork(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	ids := []vocab.ID{"https://a.example/1"}
	mine := errors.New("mine")
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Activities.Claim(ctx, by(bob, ids...)); err != nil {
			return err
		}
		return fault.Wrap(fault.Conflict, "taken", mine)
	})
	if !errors.Is(err, mine) || fault.KindOf(err) != fault.Conflict {
		t.Errorf("Write = %v, want its work's error and kind", err)
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		fresh, err := tx.Activities.Claim(ctx, by(bob, ids...))
		if !fresh[user.Owned{ID: ids[0], Actor: bob}] {
			t.Error("the claim of a transaction that failed holds")
		}
		return err
	})
	func() {
		defer func() { _ = recover() }() // work() panics on purpose
		_ = c.Write(t.Context(), u, func(context.Context, *user.Tx) error { panic("work") })
	}()
	write(t, c, u, func(context.Context, *user.Tx) error { return nil })
}

func TestReadChangesNothing(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	err := c.Read(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Activities.Claim(ctx, by(bob, "https://a.example/1"))
		return err
	})
	if err == nil {
		t.Error("a claim in Read succeeded")
	}
}

func TestWriteRunsADeadlockLosersWorkAgain(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	other := session(t, databaseOf(t, c, u))
	exec := func(q string) {
		if _, err := other.Exec(t.Context(), q); err != nil {
			t.Error(err)
		}
	}
	exec(`INSERT INTO seen (digest) VALUES ('a')`)
	// The other session has locked b and waits for a. Write has locked a and waits for b.
	// Write notices the deadlock first.
	exec(`SET deadlock_timeout = '1min'`)
	tries := 0
	done := make(chan struct{})
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if tries++; tries > 1 {
			<-done
			return nil
		}
		if err := user.Exec(ctx, tx, `SET LOCAL deadlock_timeout = '10ms'`); err != nil {
			return err
		}
		if err := user.Exec(ctx, tx, `SELECT FROM seen WHERE digest = 'a' FOR UPDATE`); err != nil {
			return err
		}
		exec(`BEGIN`)
		exec(`INSERT INTO seen (digest) VALUES ('b')`)
		go func() {
			defer close(done)
			exec(`SELECT FROM seen WHERE digest = 'a' FOR UPDATE`)
			exec(`COMMIT`)
		}()
		dbtest.AwaitLock(t, c, u, nil)
		return user.Exec(ctx, tx, `INSERT INTO seen (digest) VALUES ('b')`)
	})
	if tries != 2 {
		t.Errorf("the work ran %d times, want 2", tries)
	}
}

func TestWriteGivesUpAfterFiveConflicts(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	tries := 0
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		tries++
		return user.Exec(ctx, tx, `DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40001'; END $$`)
	})
	if tries != 5 || err == nil {
		t.Errorf("the work ran %d times, then %v; want 5 and an error", tries, err)
	}
}

// A client that goes away during the commit does not end it: Write waits for the outcome.
func TestACommitOutlivesItsContext(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var h heard
	c.Subscribe(user.Subscriber{Name: "test", Committed: h.Committed})
	release := dbtest.HoldCommits(t, dbtest.SQL(t, c, u), "event_outbox")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Write(ctx, u, addEvent) }()
	dbtest.AwaitLock(t, c, u, done)
	cancel()
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if all := h.commits(); len(all) != 1 || all[0].Unknown || len(all[0].Events) != 1 {
		t.Errorf("subscribers are told %+v, want the commit of one event", all)
	}
}

// A context that has ended before the commit is sent ends the transaction.
func TestNothingIsCommittedWhoseContextHasEnded(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Activities.Find(ctx, bob) // so that the connection counts as alive
		cancel()
		return errors.Join(err, addEvent(ctx, tx))
	})
	if err == nil {
		t.Error("Write succeeds")
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		events, err := tx.Events.List(ctx, 0, 10)
		if len(events) != 0 {
			t.Errorf("%d events are stored", len(events))
		}
		return err
	})
}
