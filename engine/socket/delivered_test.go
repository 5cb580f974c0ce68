package socket_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The position of the group ws is the last event that was sent to a program of the user. Events
// that were sent to LLM engines do not count. The hello of a new socket contains the position.
func TestTheGroupOfSocketsSaysWhatWasDelivered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	if err := r.keys.Events.Of(alice).CreateGroup(t.Context(), event.Stream, "ws", keyspace.ID{}); err != nil {
		t.Fatal(err)
	}
	mark := func() keyspace.ID {
		t.Helper()
		r.hub.MarkDelivered(t.Context())
		found, err := r.keys.Events.Groups(t.Context(), []vocab.Username{alice}, event.Stream)
		if err != nil {
			t.Fatal(err)
		}
		return found[0][slices.IndexFunc(found[0], func(g keyspace.Group) bool { return g.Name == "ws" })].Delivered
	}
	early := r.open(alice, nil)
	early.settle()
	assistant := r.openAs(socket.Request{User: alice, Kind: socket.SSE, Assistant: true})
	r.add(alice, 3)
	assistant.await(3)
	assistant.settle()
	if got := mark(); got != (keyspace.ID{}) {
		t.Errorf("after an LLM engine was sent events the group is at %v", got)
	}
	early.await(3)
	early.leave() // the position may not yet include the last event of early
	if got := mark(); got.Seq > early.ids[2].Seq {
		t.Errorf("the group is at %v, beyond %v", got, early.ids[2])
	}
	late := r.open(alice, &keyspace.ID{})
	late.await(3)
	late.settle()
	if got := mark(); got != early.ids[2] {
		t.Errorf("after all events were delivered the group is at %v, want %v", got, early.ids[2])
	}
	again := r.open(alice, &early.ids[0])
	again.await(2)
	again.settle()
	if got := mark(); got != early.ids[2] {
		t.Errorf("after older events were delivered again the group is at %v, want %v", got, early.ids[2])
	}
	bob := dbtest.User(t, r.store, "bob")
	r.relate(alice, local{}.ID(bob), user.Accepted, user.Accepted)
	r.relate(bob, local{}.ID(alice), user.Accepted, user.Accepted)
	r.add(alice, 1)
	r.program(bob, maySignal).Signal(t.Context(), []byte(`{"type":"typing","on":true,"to":"`+string(local{}.ID(alice))+`"}`))
	again.await(3)
	again.settle()
	if got := mark(); got != again.ids[2] {
		t.Errorf("after an event and a signal were sent at once the group is at %v, want %v", got, again.ids[2])
	}
	if hello := string(again.was[0].Body); !strings.Contains(hello, `"delivered":"`+early.ids[2].String()+`"`) {
		t.Errorf("a program that comes is told %s", hello)
	}
}

// Redis refuses to move the group. The hub moves the group once Redis can write again.
func TestAMarkThatRedisRefusesIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	if err := r.keys.Events.Of(alice).CreateGroup(t.Context(), event.Stream, "ws", keyspace.ID{}); err != nil {
		t.Fatal(err)
	}
	c := r.open(alice, nil)
	r.add(alice, 1)
	c.await(1)
	c.settle()
	r.redis.FailWrites()
	r.hub.MarkDelivered(t.Context())
	r.redis.Do("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
	r.hub.MarkDelivered(t.Context())
	found, err := r.keys.Events.Groups(t.Context(), []vocab.Username{alice}, event.Stream)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range found[0] {
		if g.Name == "ws" && g.Delivered != c.ids[0] {
			t.Errorf("the group is at %v, want %v", g.Delivered, c.ids[0])
		}
	}
}
