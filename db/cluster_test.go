package db_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
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
	t.Cleanup(func() { _ = silent.Close() }) // closing a listener loses no data
	_ = closed.Close()                       // so that no process listens at this address
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
	hers, instances := dbtest.SQL(t, c, u), dbtest.InstanceSQL(t, c, u)
	nothing := func(context.Context, *user.Tx) error { return nil }
	kill := func() { dbtest.EndConnections(t, hers) }
	write(t, c, u, nothing)
	kill()
	if err := c.Write(t.Context(), u, nothing); err != nil {
		t.Errorf("Write over a connection that died while idle = %v, want it replaced", err)
	}
	err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		kill()
		return tx.Events.Add(ctx, user.Event{Type: "x", Source: "x", Payload: []byte(`{}`), At: now})
	})
	if fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Write whose connection dies = %v, want Unavailable", err)
	}
	if err := c.Write(t.Context(), u, nothing); err != nil {
		t.Errorf("the next Write = %v, want it to work", err)
	}
	dbtest.EndConnections(t, instances)
	for range 3 { // the pool holds several dead connections; each round finds one
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
			nothing := func(context.Context, *user.Tx) error { return nil }
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

func TestNoUserIsRemovedDuringABackup(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	one, two := open(t, cfg), open(t, cfg)
	var backups []func()
	for _, c := range []*db.Cluster{one, two} {
		release, err := c.Instance.Locks.Backup(t.Context())
		if err != nil {
			t.Fatalf("the lock of one of two backups: %v", err)
		}
		backups = append(backups, release)
	}
	for n, release := range backups {
		if _, err := one.Instance.Locks.Removal(t.Context()); fault.KindOf(err) != fault.Busy || !strings.HasPrefix(fmt.Sprint(err), "'lightweb backup' runs (process ") {
			t.Errorf("a removal beside %d backups: %v, want Busy and where a backup runs", len(backups)-n, err)
		}
		release()
	}
	release, err := one.Instance.Locks.Removal(t.Context())
	if err != nil {
		t.Fatalf("a removal after the backups: %v", err)
	}
	if _, err := two.Instance.Locks.Removal(t.Context()); fault.KindOf(err) != fault.Busy {
		t.Errorf("a second removal at once: %v, want Busy", err)
	}
	got := make(chan error, 1)
	go func() {
		release, err := two.Instance.Locks.Backup(t.Context())
		if err == nil {
			release()
		}
		got <- err
	}()
	waiter(t, cfg.Name, "advisory")
	release()
	if err := <-got; err != nil {
		t.Errorf("a backup that waited for a removal: %v", err)
	}
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
