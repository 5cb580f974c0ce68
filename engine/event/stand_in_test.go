package event_test

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// onStandIn returns a rig with the stand-in for Redis and a running emitter.
func onStandIn(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.open(keyspace.Config{CacheURL: redistest.StandIn(t), IsStandIn: true})
	r.start()
	return r
}

// The stand-in itself limits no memory.
func TestStreamsOnTheStandInFitTheirMemory(t *testing.T) {
	r := onStandIn(t)
	idle, busy := dbtest.User(t, r.store, "idle"), dbtest.User(t, r.store, "busy")
	for _, u := range []vocab.Username{idle, busy} {
		r.wantDelivered(u, "llm", 0) // a group counts, too
		r.add(u, 500)
		r.wantSame(u)
	}
	r.stop()
	sizes, err := r.keys.Events.Sizes(t.Context(), []vocab.Username{idle, busy}, event.Stream)
	if err != nil || sizes[0] < 500*100 {
		t.Fatalf("the streams have %v bytes, %v", sizes, err)
	}
	for _, tt := range []struct {
		memory     int64
		idle, busy int // number of events that stay on each stream
	}{
		{4 * (sizes[0] + sizes[1]), 500, 500},
		{(sizes[0]/2 + sizes[1]) * 10 / 9, 100, 500},
		{1, 1, 1},
	} {
		r.emits.Memory = tt.memory
		r.emits.MakeRoom(t.Context())
		if a, b := len(r.stream(idle)), len(r.stream(busy)); a != tt.idle || b != tt.busy {
			t.Errorf("with %d bytes %d events of the idle user and %d of the busy one stay, want %d and %d", tt.memory, a, b, tt.idle, tt.busy)
		}
	}
	if !strings.Contains(r.log.String(), "do not fit events.memory") {
		t.Error("the log does not tell that one event of each user is too much")
	}
}
