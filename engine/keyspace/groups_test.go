package keyspace_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestGroups(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	k := open(t, keyspace.Config{CacheURL: server.URL()})
	alice, users := k.Events.Of(user(t, "alice")), []vocab.Username{user(t, "alice"), user(t, "bob")}
	if _, err := alice.Append(t.Context(), "events", keyspace.ID{}, 100, []keyspace.Entry{entry(5, 1, "a"), entry(6, 2, "b"), entry(6, 3, "c")}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call changes nothing
		if err := alice.CreateGroup(t.Context(), "events", "llm", keyspace.ID{Milli: 5, Seq: 1}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(delivered, pending keyspace.ID, unacknowledged, consumers int64) {
		t.Helper()
		found, err := k.Events.Groups(t.Context(), users, "events")
		if err != nil || len(found[0]) != 1 || len(found[1]) != 0 || found[0][0] != (keyspace.Group{Name: "llm", Delivered: delivered, Pending: pending, Unacknowledged: unacknowledged, Consumers: consumers}) {
			t.Errorf("Groups = %v, %v", found, err)
		}
	}
	want(keyspace.ID{Milli: 5, Seq: 1}, keyspace.ID{}, 0, 0)
	server.Do("XREADGROUP", "GROUP", "llm", "p", "STREAMS", "alice:events", ">")
	server.Do("XACK", "alice:events", "llm", "6-2")
	want(keyspace.ID{Milli: 6, Seq: 3}, keyspace.ID{Milli: 6, Seq: 3}, 1, 1)
	if err := k.Events.MoveGroups(t.Context(), users, "events", "llm", []keyspace.ID{{Milli: 5, Seq: 1}, {Milli: 5, Seq: 1}}); err != nil { // bob has no groups
		t.Error(err)
	}
	want(keyspace.ID{Milli: 5, Seq: 1}, keyspace.ID{Milli: 6, Seq: 3}, 1, 1)
	if ids, err := k.Events.Oldest(t.Context(), users, "events"); err != nil || ids[0] != (keyspace.ID{Milli: 5, Seq: 1}) || ids[1] != (keyspace.ID{}) {
		t.Errorf("Oldest = %v, %v", ids, err)
	}
}

// A server that cannot move groups now is no reason to forget where they belong.
func TestAGroupThatCannotBeMovedIsAnError(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	k := open(t, keyspace.Config{CacheURL: server.URL()})
	alice, users := k.Events.Of(user(t, "alice")), []vocab.Username{user(t, "bob"), user(t, "alice")}
	if err := alice.CreateGroup(t.Context(), "events", "ws", keyspace.ID{}); err != nil {
		t.Fatal(err)
	}
	ids := []keyspace.ID{{Milli: 5, Seq: 1}, {Milli: 5, Seq: 1}}
	server.FailWrites()
	if err := k.Events.MoveGroups(t.Context(), users, "events", "ws", ids); !keyspace.IsRefusal(err) {
		t.Errorf("MoveGroups while the server cannot write = %v, want a refusal", err)
	}
	server.Do("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
	for _, group := range []string{"ws", "gone"} {
		if err := k.Events.MoveGroups(t.Context(), users, "events", group, ids); err != nil {
			t.Errorf("MoveGroups of %s = %v", group, err)
		}
	}
	server.Do("SET", "bob:events", "no stream")
	if err := k.Events.MoveGroups(t.Context(), users, "events", "ws", ids); err == nil {
		t.Error("MoveGroups of a key that is no stream returns no error")
	}
}
