package instance_test

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	bob   vocab.ID = "https://peer.example/users/bob"
	carol vocab.ID = "https://other.example/users/carol"
)

// alice returns a cluster with the user alice.
func alice(t testing.TB) (*dbtest.Cluster, vocab.Username) {
	t.Helper()
	c := dbtest.New(t)
	return c, dbtest.User(t, c, "alice")
}

// name returns a username.
func name(t testing.TB, s string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// actorOf returns an actor with the parameter id as its id. The JSON in the parameter fields is
// added to the actor's document.
func actorOf(t testing.TB, id vocab.ID, fields string) *vocab.Actor {
	t.Helper()
	a, err := vocab.ParseActor([]byte(`{"id":"` + string(id) + `","type":"Person","preferredUsername":"x","inbox":"` + string(id) + `/inbox"` + fields + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return a
}
