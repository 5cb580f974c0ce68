package dump_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(dbtest.Tidy{M: m}) }

var (
	quiet = slog.New(slog.DiscardHandler)
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// Rows and connections for tests.
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

// named returns a cluster with the name of its instance database, which a test may close.
func named(t *testing.T) (*db.Cluster, db.Config) {
	t.Helper()
	cfg := destroyed(t, dbtest.Config(t))
	return open(t, cfg), cfg
}
