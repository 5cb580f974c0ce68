package keyspace_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// On the stand-in a group may exist before the first entry of its stream, as on a server.
func TestTheStandInAppendsToAStreamWithoutEntries(t *testing.T) {
	k := open(t, keyspace.Config{CacheURL: redistest.StandIn(t), IsStandIn: true})
	alice, users := k.Events.Of(user(t, "alice")), []vocab.Username{user(t, "alice"), user(t, "bob")}
	if err := alice.CreateGroup(t.Context(), "events", "ws", keyspace.ID{}); err != nil {
		t.Fatal(err)
	}
	if ids, err := k.Events.LastIDs(t.Context(), users, "events"); err != nil || ids[0] != (keyspace.ID{}) {
		t.Errorf("LastIDs = %v, %v, want zero", ids, err)
	}
	if last, err := alice.LastID(t.Context(), "events"); err != nil || last != (keyspace.ID{}) {
		t.Errorf("LastID = %v, %v, want zero", last, err)
	}
	last, err := alice.Append(t.Context(), "events", keyspace.ID{}, 100, []keyspace.Entry{entry(5, 1, "a")})
	if err != nil || last != (keyspace.ID{Milli: 5, Seq: 1}) {
		t.Errorf("Append = %v, %v, want 5-1", last, err)
	}
}

// The stand-in has no XGROUP SETID. Groups are moved all the same, and their members read on from
// there.
func TestTheStandInMovesGroups(t *testing.T) {
	k := open(t, keyspace.Config{CacheURL: redistest.StandIn(t), IsStandIn: true})
	alice, users := k.Events.Of(user(t, "alice")), []vocab.Username{user(t, "alice"), user(t, "bob"), user(t, "carol")}
	for _, u := range []keyspace.Space{alice, k.Events.Of(user(t, "carol"))} {
		if _, err := u.Append(t.Context(), "events", keyspace.ID{}, 100, []keyspace.Entry{entry(5, 1, "a"), entry(6, 2, "b")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, group := range []string{"llm", "ws"} {
		if err := alice.CreateGroup(t.Context(), "events", group, keyspace.ID{}); err != nil {
			t.Fatal(err)
		}
	}
	to := keyspace.ID{Milli: 5, Seq: 1}
	if err := k.Events.MoveGroups(t.Context(), users, "events", "ws", []keyspace.ID{to, to, to}); err != nil {
		t.Error(err)
	}
	found, err := k.Events.Groups(t.Context(), users, "events")
	if err != nil || len(found[0]) != 2 || len(found[1]) != 0 || len(found[2]) != 0 {
		t.Fatalf("Groups = %v, %v, want alice's two alone", found, err)
	}
	for _, g := range found[0] {
		if want := map[string]keyspace.ID{"ws": to}[g.Name]; g.Delivered != want {
			t.Errorf("the group %s is at %v, want %v", g.Name, g.Delivered, want)
		}
	}
	wantDelivered(t, keyspace.ID{Milli: 6, Seq: 2}, 1)(keyspace.Member{Space: alice, Stream: "events", Group: "ws", Name: "p"}.Next(t.Context(), time.Second))
}

// The stand-in looks at every field of a stream that it measures. Many streams take it longer than
// a call may take.
func TestTheStandInMeasuresManyLongStreams(t *testing.T) {
	const users, length, each, fields = 20, 2000, 50, 50
	k := open(t, keyspace.Config{CacheURL: redistest.StandIn(t), IsStandIn: true})
	var all []vocab.Username
	for n := range users {
		all = append(all, user(t, fmt.Sprint("user", n)))
		for last := (keyspace.ID{}); last.Seq < length; {
			var entries []keyspace.Entry
			for m := range uint64(each) {
				e := entry(1, last.Seq+m+1, "long")
				e.Fields = slices.Repeat(e.Fields, fields)
				entries = append(entries, e)
			}
			redistest.Eventually(t, "entries are appended", func() bool {
				now, err := k.Events.Of(all[n]).Append(t.Context(), "events", last, length, entries)
				if err == nil {
					last = now // a call without an answer may have appended them
				}
				return err == nil
			})
		}
	}
	redistest.Eventually(t, "all streams are measured", func() bool {
		sizes, err := k.Events.Sizes(t.Context(), all, "events")
		return err == nil && slices.Min(sizes) > length*fields
	})
}
