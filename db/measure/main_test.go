package measure_test

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(dbtest.Tidy{M: m}) }

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const bob vocab.ID = "https://peer.example/users/bob"

// These are short names of functions of dbtest.
var (
	alice   = dbtest.Alice
	write   = dbtest.Write
	read    = dbtest.Read
	by      = dbtest.By
	note    = dbtest.Note
	addNote = dbtest.AddNote
)
