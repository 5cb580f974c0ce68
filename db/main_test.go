package db_test

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) {
	if cfg := os.Getenv(childConfig); cfg != "" {
		migrateAsChild(cfg)
	}
	dbtest.Main(dbtest.Tidy{M: m})
}

var (
	quiet = slog.New(slog.DiscardHandler)
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

const (
	bob   vocab.ID = "https://peer.example/users/bob"
	carol vocab.ID = "https://other.example/users/carol"
)

// These are short names of functions of dbtest.
var (
	alice       = dbtest.Alice
	open        = dbtest.Connect
	destroyed   = dbtest.Destroyed
	write       = dbtest.Write
	read        = dbtest.Read
	session     = dbtest.Session
	run         = dbtest.Run
	upgraded    = dbtest.Upgraded
	nextRelease = dbtest.NextRelease
	name        = dbtest.Name
	held        = dbtest.Rows
	actorOf     = dbtest.ActorOf
	databaseOf  = dbtest.DatabaseOf
	usable      = dbtest.Usable
	number      = dbtest.Number
	addNote     = dbtest.AddNote
)
