package event_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// logged is a log that a test may read while other goroutines write to it.
type logged struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.String()
}

// remove does the steps of instance.RemoveUser. If isCut is true, it does all but the last step.
func (r *rig) remove(u vocab.Username, isCut bool) {
	r.t.Helper()
	ctx, users := r.t.Context(), r.store.Instance.Users
	steps := []func() error{
		func() error { _, err := users.BeginDeletion(ctx, u, time.Now()); return err },
		func() error { return users.BeginRemoval(ctx, u) },
		func() error { return r.store.DropUserDatabase(ctx, u) },
		func() error {
			return r.keys.Events.Sweep(ctx, false, func(user, _ string) bool { return user == u.String() })
		},
		func() error { return users.FinishDeletion(ctx, u) },
	}
	if isCut {
		steps = steps[:len(steps)-1]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestTheStreamOfARemovedUserIsForgotten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		events int
		isCut  bool
	}{{"with events", 3, false}, {"without events", 0, false}, {"whose removal was cut short", 3, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			alice, bob := dbtest.User(t, r.store, "alice"), dbtest.User(t, r.store, "bob")
			r.start()
			r.add(alice, tt.events)
			r.add(bob, 1)
			r.wantSame(alice)
			r.wantSame(bob)
			r.wantDelivered(alice, "llm", 0)
			r.wantDelivered(alice, "ws", 0)
			r.remove(alice, tt.isCut)
			redistest.Eventually(t, "the stream is forgotten", func() bool { return !r.emits.HasStream(alice) })
			if log := r.log.String(); strings.Contains(log, "user=alice") {
				t.Errorf("the log tells of the removed user:\n%s", log)
			}
			r.add(bob, 1)
			r.wantSame(bob)
		})
	}
}

// A user exists, and the user's database cannot be read. The emitter keeps the user's stream and
// tries again.
func TestTheStreamOfAUserWhoseDatabaseFailsIsKept(t *testing.T) {
	t.Parallel()
	r, alice := emitted(t, 1)
	if err := r.store.DropUserDatabase(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	r.redis.Do("FLUSHALL") // so that the emitter reads the database again
	redistest.Eventually(t, "the error is logged", func() bool { return strings.Contains(r.log.String(), "user=alice") })
	if !r.emits.HasStream(alice) {
		t.Error("the stream is forgotten, want it tried again")
	}
}
