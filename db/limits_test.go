package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/embedded"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func nothing(context.Context, *user.Tx) error { return nil }

func TestWhoHoldsAUsersConnectionGetsNoOther(t *testing.T) {
	t.Parallel()
	c, alice := alice(t)
	other := dbtest.User(t, c, "bob")
	for _, tt := range []struct {
		name string
		ask  func(context.Context) error
	}{
		{"another user's", func(ctx context.Context) error { return c.Read(ctx, other, nothing) }},
		{"one more of its own", func(ctx context.Context) error { return c.As(pool.Owner).Write(ctx, alice, nothing) }},
		{"a row of the instance's", func(ctx context.Context) error { _, err := c.Instance.Users.CountActive(ctx); return err }},
		{"rows of the instance's", func(ctx context.Context) error { _, err := c.Instance.Users.All(ctx); return err }},
		{"to change the instance's", func(ctx context.Context) error { return c.Instance.Acquaintances.Add(ctx, carol, nil, false) }},
		{"to change it in a transaction", func(ctx context.Context) error {
			return c.Instance.Actors.Save(ctx, instance.RemoteActor{Actor: actorOf(t, bob, ""), FetchedAt: now})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := c.Write(t.Context(), alice, func(ctx context.Context, _ *user.Tx) error { return recovered(func() error { return tt.ask(ctx) }) })
			if err == nil || fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), "a holder of a connection to a user's database") {
				t.Errorf("asking for it = %v, want an Internal error that says what is wrong", err)
			}
			if err := tt.ask(t.Context()); err != nil {
				t.Errorf("asking for it afterwards = %v", err)
			}
		})
	}
}

// recovered returns the error of work(). In some builds work() panics: the error is then that of
// the panic.
func recovered(work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = r.(error)
		}
	}()
	return work()
}

func TestNoMoreConnectionsAreOpenOnTheServerThanMayBe(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	cfg.MaxConnections = 2
	c := open(t, cfg)
	var users []vocab.Username
	for n := range 5 {
		users = append(users, dbtest.User(t, c, fmt.Sprint("user", n)))
	}
	watch := session(t, "postgres")
	for range 4 {
		for _, u := range users {
			write(t, c, u, func(ctx context.Context, _ *user.Tx) error {
				var n int
				err := watch.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE starts_with(datname, $1) AND backend_type = 'client backend'`, cfg.Name+"_").Scan(&n)
				if n > 2 {
					t.Errorf("the server has %d connections, want at most 2", n)
				}
				return err
			})
		}
	}
}

// tinyServer starts a PostgreSQL server that takes few connections, and returns its connection
// string.
func tinyServer(t *testing.T, connections int) string {
	t.Helper()
	dbtest.URL(t) // skips the test where there is no PostgreSQL
	dir, err := os.MkdirTemp("", "lw-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })  // if this fails, only files in the temporary directory are left
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL may have to run as another user
		t.Fatal(err)
	}
	start := func() *embedded.Cluster {
		s, err := embedded.Open(t.Context(), embedded.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	stop := func(s *embedded.Cluster) {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	stop(start())
	conf, err := os.OpenFile(filepath.Join(dir, "pg", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conf, "\nmax_connections = %d\nfsync = off\n", connections)
	if err := errors.Join(err, conf.Close()); err != nil {
		t.Fatal(err)
	}
	server := start()
	t.Cleanup(func() { stop(server) })
	return server.ConnString()
}

func TestAServerThatTakesFewConnectionsServesEverybodyWithThem(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	c, err := db.Open(t.Context(), db.Config{URL: tinyServer(t, 8), MaxConnections: 16, Migrate: true, Metrics: metrics}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var users []vocab.Username
	for n := range 12 {
		users = append(users, dbtest.User(t, c, fmt.Sprint("user", n)))
	}
	var all sync.WaitGroup
	for _, u := range users {
		all.Go(func() {
			for range 10 {
				if err := c.Write(t.Context(), u, nothing); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if lines := strings.Count(log.String(), "server took no more connections"); lines != 1 {
		t.Errorf("the log says %d times that the server is full, want once:\n%s", lines, &log)
	}
	if n := gathered(t, metrics, "lightweb_db_user_connections_full_total"); n == 0 {
		t.Error("no connection was counted as refused")
	}
	if err := c.Fit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"server takes fewer connections than configured", "max_connections=8", "database.max_connections=16", "used=4"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &log)
		}
	}
	if n := gathered(t, metrics, "lightweb_db_user_connections_limit"); n > 4 {
		t.Errorf("after that there may be %v connections, want at most 4", n)
	}
}

// gathered returns the value of a metric without labels.
func gathered(t *testing.T, metrics *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
