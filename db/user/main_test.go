package user_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(dbtest.Tidy{M: m}) }

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	bob   vocab.ID = "https://peer.example/users/bob"
	carol vocab.ID = "https://other.example/users/carol"
)

// These are short names of functions of dbtest.
var (
	alice      = dbtest.Alice
	open       = dbtest.Connect
	destroyed  = dbtest.Destroyed
	write      = dbtest.Write
	read       = dbtest.Read
	session    = dbtest.Session
	run        = dbtest.Run
	hosted     = dbtest.Hosted
	stateOf    = dbtest.StateOf
	held       = dbtest.Rows
	actorOf    = dbtest.ActorOf
	by         = dbtest.By
	databaseOf = dbtest.DatabaseOf
	number     = dbtest.Number
	named      = dbtest.Named
	note       = dbtest.Note
	addNote    = dbtest.AddNote
)

// committed runs work() in a transaction that must succeed. It returns the Commit that subscribers
// get.
func committed(t testing.TB, c *dbtest.Cluster, u vocab.Username, work func(context.Context, *user.Tx) error) user.Commit {
	t.Helper()
	commit, err := c.WriteTold(t.Context(), u, work)
	if err != nil || commit == nil {
		t.Fatalf("committed %v, %v", commit, err)
	}
	return *commit
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
