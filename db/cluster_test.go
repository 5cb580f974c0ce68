package db_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestOpenWithoutAServerIsUnavailableAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // nothing was written
	_ = closed.Close()                       // so that nobody listens there
	for _, tt := range []struct{ name, url string }{
		{"nobody listens", "postgres://u@" + closed.Addr().String() + "/?sslmode=disable"},
		{"no socket", "host=" + filepath.Join(t.TempDir(), "none") + " user=u"},
		{"the server never answers", "postgres://u@" + silent.Addr().String() + "/?sslmode=disable&connect_timeout=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := db.Open(t.Context(), db.Config{URL: tt.url}, quiet)
			if fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" {
				t.Errorf("Open = %v, kind %d, hint %q; want Unavailable with a hint", err, fault.KindOf(err), fault.Hint(err))
			}
		})
	}
}

func TestOpenWithAWrongURLIsAConfigFaultThatKeepsThePassword(t *testing.T) {
	t.Parallel()
	_, err := db.Open(t.Context(), db.Config{URL: "postgres://u:secret@host:port/"}, quiet)
	if fault.KindOf(err) != fault.Config || strings.Contains(err.Error(), "secret") {
		t.Errorf("Open = %v, kind %d; want Config without the password", err, fault.KindOf(err))
	}
}

func TestPingAndServerVersion(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	if err := c.Instance.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := c.Instance.ServerVersion(t.Context()); err != nil || v == "" || strings.Contains(v, " ") {
		t.Errorf("ServerVersion = %q, %v; want a bare version", v, err)
	}
}

func TestKilledConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	database := databaseOf(t, c, u)
	nothing := func(context.Context, *db.Tx) error { return nil }
	kill := func() {
		run(t, "postgres", `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1`, database)
	}
	write(t, c, u, nothing)
	kill()
	if err := c.Write(t.Context(), u, nothing); err != nil {
		t.Errorf("Write over a connection that died while idle = %v, want it replaced", err)
	}
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *db.Tx) error {
		kill()
		return tx.AddEvent(ctx, db.Event{Type: "x", Source: "x", Payload: []byte(`{}`), At: now})
	})
	if fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Write whose connection dies = %v, want Unavailable", err)
	}
	if err := c.Write(t.Context(), u, nothing); err != nil {
		t.Errorf("the next Write = %v, want it to work", err)
	}
	run(t, "postgres", `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname LIKE $1`, strings.TrimSuffix(database, "_alice"))
	for range 3 { // a pool of several: each must be noticed
		_, err = c.Instance.Users.All(t.Context())
	}
	if err != nil {
		t.Errorf("Users after the instance's connections died = %v", err)
	}
}

func TestAUserWhoseDatabaseIsUnusableIsUnavailableAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, spoil, hint string }{
		{"behind", `UPDATE schema_migrations SET version = 0`, "lightweb db migrate alice"},
		{"ahead", `UPDATE schema_migrations SET version = 9999`, "newer lightweb"},
		{"dirty", `UPDATE schema_migrations SET dirty = true`, "lightweb db migrate alice --repair"},
		{"without a schema", `DROP TABLE schema_migrations`, "backup"},
		{"dropped", "", "backup"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u := alice(t)
			other := dbtest.User(t, c, "bob")
			if tt.spoil != "" {
				run(t, databaseOf(t, c, u), tt.spoil)
			} else {
				run(t, "postgres", `DROP DATABASE `+databaseOf(t, c, u))
			}
			nothing := func(context.Context, *db.Tx) error { return nil }
			err := c.Write(t.Context(), u, nothing)
			if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || f.Code != "user_unavailable" || !strings.Contains(f.Hint, tt.hint) {
				t.Errorf("Write = %v, fault %+v; want user_unavailable with a hint about %q", err, f, tt.hint)
			}
			if strings.Contains(fault.Public(err), "_alice") {
				t.Errorf("the public words %q name the database", fault.Public(err))
			}
			write(t, c, other, nothing)
		})
	}
}

func TestOneProcessServesAnInstance(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	one, two := open(t, cfg), open(t, cfg)
	release, lost, err := one.Instance.Locks.Serve(t.Context(), "lightweb serve")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := two.Instance.Locks.Serve(t.Context(), "lightweb serve"); fault.KindOf(err) != fault.Conflict || fault.Hint(err) == "" {
		t.Fatalf("second LockServe = %v, want Conflict with a hint", err)
	}
	if _, _, err := two.Instance.Locks.Serve(t.Context(), "lightweb serve"); !strings.Contains(fmt.Sprint(err), "another 'lightweb serve' runs (process ") {
		t.Errorf("second LockServe = %v, want who serves", err)
	}
	release()
	<-lost
	release, _, err = one.Instance.Locks.Serve(t.Context(), "lightweb restore")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := two.Instance.Locks.Serve(t.Context(), "lightweb serve"); fault.KindOf(err) != fault.Conflict || !strings.HasPrefix(fmt.Sprint(err), "'lightweb restore' runs (process ") {
		t.Errorf("LockServe during a restore = %v, want who restores", err)
	}
	release()
	release, lost, err = two.Instance.Locks.Serve(t.Context(), "lightweb serve")
	if err != nil {
		t.Fatalf("LockServe after release = %v", err)
	}
	defer release()
	run(t, "postgres", `SELECT pg_terminate_backend(pid, 5000) FROM pg_locks JOIN pg_database d ON d.oid = database
		WHERE locktype = 'advisory' AND datname = $1`, cfg.Name)
	<-lost
	again, _, err := one.Instance.Locks.Serve(t.Context(), "lightweb serve")
	if err != nil {
		t.Fatalf("LockServe after the holder's backend was killed = %v", err)
	}
	again()
}

func TestTheServeLockOutlivesTheContextItWasTakenUnder(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	release, lost, err := c.Instance.Locks.Serve(ctx, "lightweb serve")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	cancel()
	if _, _, err := c.Instance.Locks.Serve(t.Context(), "lightweb serve"); fault.KindOf(err) != fault.Conflict {
		t.Errorf("LockServe = %v, want Conflict", err)
	}
	select {
	case <-lost:
		t.Error("the lock was lost with the context")
	default:
	}
}

func TestCloseWaitsForTransactionsAndRefusesNewOnes(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	c := open(t, cfg)
	u := dbtest.User(t, c, "alice")
	inside, finish, written := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		written <- c.Write(t.Context(), u, func(ctx context.Context, tx *db.Tx) error {
			close(inside)
			<-finish
			_, err := tx.Claim(ctx, by(bob, "https://a.example/1"))
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
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *db.Tx) error {
		if _, err := tx.Claim(ctx, by(bob, ids...)); err != nil {
			return err
		}
		return fault.Wrap(fault.Conflict, "taken", mine)
	})
	if !errors.Is(err, mine) || fault.KindOf(err) != fault.Conflict {
		t.Errorf("Write = %v, want its work's error and kind", err)
	}
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		fresh, err := tx.Claim(ctx, by(bob, ids...))
		if !fresh[db.Owned{ID: ids[0], Actor: bob}] {
			t.Error("the claim of a transaction that failed holds")
		}
		return err
	})
	func() {
		defer func() { _ = recover() }() // the panic is the test's
		_ = c.Write(t.Context(), u, func(context.Context, *db.Tx) error { panic("work") })
	}()
	write(t, c, u, func(context.Context, *db.Tx) error { return nil })
}

func TestReadChangesNothing(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	err := c.Read(t.Context(), u, func(ctx context.Context, tx *db.Tx) error {
		_, err := tx.Claim(ctx, by(bob, "https://a.example/1"))
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
	// The other session holds b and asks for a; Write, which looks for deadlocks first, holds a
	// and asks for b.
	exec(`SET deadlock_timeout = '1min'`)
	tries := 0
	done := make(chan struct{})
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		if tries++; tries > 1 {
			<-done
			return nil
		}
		if err := db.Exec(ctx, tx, `SET LOCAL deadlock_timeout = '10ms'`); err != nil {
			return err
		}
		if err := db.Exec(ctx, tx, `SELECT FROM seen WHERE digest = 'a' FOR UPDATE`); err != nil {
			return err
		}
		exec(`BEGIN`)
		exec(`INSERT INTO seen (digest) VALUES ('b')`)
		go func() {
			defer close(done)
			exec(`SELECT FROM seen WHERE digest = 'a' FOR UPDATE`)
			exec(`COMMIT`)
		}()
		return db.AwaitLock(ctx, tx, `INSERT INTO seen (digest) VALUES ('b')`)
	})
	if tries != 2 {
		t.Errorf("the work ran %d times, want 2", tries)
	}
}

func TestWriteGivesUpAfterFiveConflicts(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	tries := 0
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *db.Tx) error {
		tries++
		return db.Exec(ctx, tx, `DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40001'; END $$`)
	})
	if tries != 5 || err == nil {
		t.Errorf("the work ran %d times, then %v; want 5 and an error", tries, err)
	}
}
