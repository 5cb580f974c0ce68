package event_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// failing is a Users of which the first answer of each method gets lost.
type failing struct {
	event.Users
	all, listed, cleared atomic.Bool // whether an answer of All, ListEventsDue and ClearEventsDue was lost
}

var errLost = errors.New("the connection broke")

func (f *failing) All(ctx context.Context) ([]instance.User, error) {
	all, err := f.Users.All(ctx)
	if f.all.CompareAndSwap(false, true) {
		return nil, errLost
	}
	return all, err
}

func (f *failing) ListEventsDue(ctx context.Context) ([]instance.EventsDue, error) {
	due, err := f.Users.ListEventsDue(ctx)
	if len(due) > 0 && f.listed.CompareAndSwap(false, true) {
		return nil, errLost
	}
	return due, err
}

func (f *failing) ClearEventsDue(ctx context.Context, all []instance.EventsDue) error {
	if f.cleared.CompareAndSwap(false, true) {
		return errLost
	}
	return f.Users.ClearEventsDue(ctx, all)
}

func TestEventsOfAnEarlierProcessAreEmittedThoughTheUsersCouldNotBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	r.add(alice, 3) // no emitter runs yet
	r.users = &failing{Users: r.users}
	r.start()
	r.wantSame(alice)
}

func TestEventsOfOtherProcessesAreEmittedThoughAnAnswerIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	users := &failing{Users: r.users}
	users.all.Store(true)
	r.users = users
	r.start()
	r.add(alice, 1)
	r.wantSame(alice)
	r.wantNoneDue() // the creation of alice
	users.listed.Store(false)
	users.cleared.Store(false)
	emits := r.emits
	r.emits = nil // as if another process added the next events
	r.add(alice, 2)
	if err := r.store.Instance.Users.MarkEventsDue(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	r.emits = emits
	r.wantSame(alice)
	r.wantNoneDue()
	if !users.listed.Load() || !users.cleared.Load() {
		t.Error("no answer was lost")
	}
}

// wantNoneDue waits until no user is marked as having events of other processes.
func (r *rig) wantNoneDue() {
	r.t.Helper()
	redistest.Eventually(r.t, "the marks are cleared", func() bool {
		due, err := r.store.Instance.Users.ListEventsDue(r.t.Context())
		return err == nil && len(due) == 0
	})
}

func TestEventsOfOtherProcessesAreEmitted(t *testing.T) {
	t.Parallel()
	r, alice := emitted(t, 1)
	r.wantNoneDue() // the creation of alice
	emits := r.emits
	r.emits = nil
	r.add(alice, 1)
	if err := r.store.Instance.Users.MarkEventsDue(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	r.emits = emits
	r.wantSame(alice)
}

func TestAServerThatRefusesEventsIsToldOf(t *testing.T) {
	t.Parallel()
	r, alice := emitted(t, 1)
	if r.emits.IsRefused() {
		t.Error("Redis takes the events, and is said to refuse them")
	}
	r.redis.Do("CONFIG", "SET", "maxmemory", "1")
	r.add(alice, 1)
	redistest.Eventually(t, "the events are refused", r.emits.IsRefused)
	r.redis.Do("CONFIG", "SET", "maxmemory", "0")
	r.wantSame(alice)
	redistest.Eventually(t, "the events are refused no more", func() bool { return !r.emits.IsRefused() })
}

// restless is a Store. At each read it notifies the emitter of another commit, so that the emitter
// is always busy.
type restless struct {
	event.Store
	rig *rig
}

func (s *restless) Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	err := s.Store.Read(ctx, u, work)
	s.rig.emits.Committed(ctx, user.Commit{User: u, Unknown: true})
	return err
}

func TestWithheldEventsAreToldWhileTheStreamIsBusy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	if err := r.store.Write(t.Context(), alice, func(_ context.Context, tx *user.Tx) error {
		tx.Events.Withhold(user.Event{Type: "events.withheld", Source: "ap", Payload: []byte(`{"count": 1, "eventId": "w"}`), At: time.Now()})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	r.over = &restless{r.store, r}
	r.start()
	r.now.Store(int64(61 * time.Minute))
	redistest.Eventually(t, "the count is emitted", func() bool { return strings.Contains(strings.Join(r.stream(alice), "\n"), "events.withheld") })
}

// If the streams take too much memory, the emitter shortens them, each only as far as necessary.
// It begins with the streams of the users who have been idle for longest. Readers get the dropped
// events from the databases.
func TestStreamsFitTheirMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	idle, busy := dbtest.User(t, r.store, "idle"), dbtest.User(t, r.store, "busy")
	r.start()
	for _, u := range []vocab.Username{idle, busy} {
		r.add(u, 500)
		r.wantSame(u)
	}
	r.stop()
	sizes, err := r.keys.Events.Sizes(t.Context(), []vocab.Username{idle, busy}, event.Stream)
	if err != nil {
		t.Fatal(err)
	}
	last := r.stream(idle)[499]
	for _, tt := range []struct {
		name       string
		memory     int64
		idle, busy int // number of events that stay on each stream
		warnings   int
	}{
		{"all fit", 4 * (sizes[0] + sizes[1]), 500, 500, 0},
		{"some do not", (sizes[0]/2 + sizes[1]) * 10 / 9, 100, 500, 0},
		{"most do not", sizes[1] / 2, 1, 100, 0},
		{"one is too much", 1, 1, 1, 1},
		{"as before", 1, 1, 1, 1},
		{"again all fit", 4 * (sizes[0] + sizes[1]), 1, 1, 1},
		{"again one is too much", 1, 1, 1, 2},
	} {
		r.emits.Memory = tt.memory
		r.emits.MakeRoom(t.Context())
		if a, b := len(r.stream(idle)), len(r.stream(busy)); a != tt.idle || b != tt.busy {
			t.Errorf("%s: %d events of the idle user and %d of the busy one stay, want %d and %d", tt.name, a, b, tt.idle, tt.busy)
		}
		if warnings := strings.Count(r.log.String(), "do not fit events.memory"); warnings != tt.warnings {
			t.Errorf("%s: %d warnings, want %d", tt.name, warnings, tt.warnings)
		}
	}
	if now := r.stream(idle); now[0] != last {
		t.Errorf("the event that stays is %s, want the newest, %s", now[0], last)
	}
}
