package enginetest

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/embedded"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// rows gives a test its own access to the instance's databases, while the engine serves.
type rows struct {
	server    *embedded.Cluster
	cluster   *db.Cluster
	databases map[string]*sql.DB
}

// attach opens the instance's PostgreSQL for the test. PostgreSQL then keeps running after the
// engine's process ends.
func (i *Instance) attach(t testing.TB) *rows {
	t.Helper()
	if i.rows != nil {
		return i.rows
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, err := embedded.Open(ctx, embedded.Config{Dir: i.DataDir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal("reach the engine's PostgreSQL: ", err)
	}
	i.rows = &rows{server: server, databases: map[string]*sql.DB{}}
	return i.rows
}

// detach ends the access to PostgreSQL that attach began. The next use of rows begins it again.
func (i *Instance) detach(t testing.TB) {
	t.Helper()
	r := i.rows
	if r == nil {
		return
	}
	i.rows = nil
	if r.cluster != nil {
		r.cluster.Close()
	}
	for _, d := range r.databases {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.server.Close(ctx); err != nil {
		t.Error("let go of the engine's PostgreSQL: ", err)
	}
}

// DB returns the instance's databases through the engine's own package db.
func (i *Instance) DB(t testing.TB) *db.Cluster {
	t.Helper()
	r := i.attach(t)
	if r.cluster == nil {
		var err error
		if r.cluster, err = db.Open(t.Context(), db.Config{URL: r.server.ConnString(), MaxConnections: 4}, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal("open the engine's databases: ", err)
		}
	}
	return r.cluster
}

// SQL returns one of the instance's databases, such as "lightweb" or "lightweb_alice". Use it for
// queries that package db has no function for.
func (i *Instance) SQL(t testing.TB, database string) *sql.DB {
	t.Helper()
	r := i.attach(t)
	d := r.databases[database]
	if d == nil {
		var err error
		if d, err = dbtest.Open(r.server.ConnString(), database); err != nil {
			t.Fatal(err)
		}
		d.SetMaxOpenConns(1)
		r.databases[database] = d
	}
	return d
}

// Column returns the first column of a query in the user's database, as text. NULL becomes "".
func (u *User) Column(t testing.TB, query string, args ...any) []string {
	t.Helper()
	found, err := u.Home.SQL(t, "lightweb_"+u.Name).QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer found.Close()
	var column []string
	for found.Next() {
		var s sql.NullString
		if err := found.Scan(&s); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		column = append(column, s.String)
	}
	if err := found.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return column
}

// Events returns up to 1000 of the user's events whose numbers are higher than the parameter
// after, the oldest first.
func (u *User) Events(t testing.TB, after int64) (all []user.Event) {
	t.Helper()
	name, err := vocab.ParseUsername(u.Name)
	if err != nil {
		t.Fatal(err)
	}
	err = u.Home.DB(t).Read(t.Context(), name, func(ctx context.Context, tx *user.Tx) error {
		all, err = tx.Events.List(ctx, after, 1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
