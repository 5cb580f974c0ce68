package engine_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/enginetest"
)

// Beside a serving engine, commands migrate and repair databases. The engine serves the users of
// these databases at once.
func TestMigratingByTheCommandLine(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	i.CreateUser(t, "alice")
	bob := i.CreateUser(t, "bob")
	served := func(want int) {
		t.Helper()
		enginetest.Eventually(t, fmt.Sprint("bob's feed is answered ", want), func() bool {
			return bob.Ask(t, http.MethodGet, "/api/feed?feed=main", nil).Status == want
		})
	}
	runAll(t, i, []command{
		{"db migrate --check -q", 0, ""},
		{"db migrate nobody_here", 67, "no user"},
		{"db migrate Alice", 65, "not a username"},
	})

	// A migration was killed before it had made a table.
	for _, q := range []string{`DROP SCHEMA public CASCADE`, `CREATE SCHEMA public`,
		`CREATE TABLE schema_migrations (version bigint PRIMARY KEY, dirty boolean NOT NULL)`, `INSERT INTO schema_migrations VALUES (1, true)`} {
		bob.Column(t, q)
	}
	dbtest.EndConnections(t, i.SQL(t, "lightweb_bob"))
	served(http.StatusServiceUnavailable)
	runAll(t, i, []command{
		{"db migrate alice -q", 0, ""},
		{"db migrate --check -q", 4, "1 of 2 databases are not at schema"},
		{"db migrate --check -q --json", 4, `"code":"pending"`},
		{"db migrate -q", 3, "lightweb db migrate bob --repair"},
		{"db migrate bob --repair --check -q", 4, ""},
	})
	var status struct {
		Instance struct{ Database string }
		Users    []struct {
			User, Hint    string
			Dirty, Usable bool
		}
	}
	i.Run(t, "db", "status", "--json").Decode(t, &status)
	if len(status.Users) != 2 || status.Instance.Database != "lightweb" || !status.Users[0].Usable || status.Users[1].Usable || !status.Users[1].Dirty ||
		status.Users[1].Hint != "lightweb db migrate bob --repair" {
		t.Errorf("db status --json wrote %+v", status)
	}
	var report struct{ Databases, Migrated, Unchanged, Failed int }
	i.Run(t, "db", "migrate", "--repair", "--json").Decode(t, &report)
	if report.Databases != 2 || report.Migrated != 1 || report.Unchanged != 1 || report.Failed != 0 {
		t.Errorf("db migrate --repair --json wrote %+v, want one of two migrated", report)
	}
	served(http.StatusOK)

	mark := func(dirty bool) {
		t.Helper()
		if _, err := i.SQL(t, "lightweb").ExecContext(t.Context(), `UPDATE schema_migrations SET dirty = $1`, dirty); err != nil {
			t.Fatal(err)
		}
	}
	mark(true)
	runAll(t, i, []command{{"db migrate --check", 4, "lightweb db migrate --repair"}, {"db migrate", 78, "lightweb db migrate --repair"}, {"user list", 78, ""}})
	mark(false)

	// Another process holds the lock for migrations.
	lock, err := i.SQL(t, "lightweb").Conn(t.Context())
	if err == nil {
		_, err = lock.ExecContext(t.Context(), `SELECT pg_advisory_lock(7305808869232649)`)
	}
	if err != nil {
		t.Fatal(err)
	}
	runAll(t, i, []command{{"db migrate", 75, "another process keeps 'lightweb db migrate' from running"}, {"db migrate --check -q", 0, ""}})
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}
