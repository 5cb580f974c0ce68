package dump_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/dump"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(dbtest.Tidy{M: m}) }

var (
	quiet = slog.New(slog.DiscardHandler)
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// These are short names of functions of dbtest.
var (
	open       = dbtest.Connect
	destroyed  = dbtest.Destroyed
	write      = dbtest.Write
	session    = dbtest.Session
	run        = dbtest.Run
	upgraded   = dbtest.Upgraded
	name       = dbtest.Name
	databaseOf = dbtest.DatabaseOf
	usable     = dbtest.Usable
	number     = dbtest.Number
)

// named returns a cluster and its configuration. The test may close the cluster.
func named(t *testing.T) (*db.Cluster, db.Config) {
	t.Helper()
	cfg := destroyed(t, dbtest.Config(t))
	return open(t, cfg), cfg
}

// replaced closes c and replaces u's database by the one of a backup. It then opens the instance
// again, and returns that cluster.
func replaced(t *testing.T, c *db.Cluster, cfg db.Config, b backup, u vocab.Username) *db.Cluster {
	t.Helper()
	c.Close()
	c = open(t, cfg)
	restoring(t, c, func(r *dump.Restoration) {
		build(t, r, b, u)
		aside, err := r.Commit(t.Context(), u, true)
		if err != nil {
			t.Fatal(err)
		}
		run(t, "postgres", `DROP DATABASE "`+aside+`"`)
	})
	return c
}
