package socket_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A program reconnects with the id of its last event. It gets every event that it missed once. The
// events come from the stream. If Redis is down or has lost the stream, they come from the
// database. New events may be added meanwhile.
func TestAProgramResumesWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*rig){
		"from the stream":             func(*rig) {},
		"Redis is away":               func(r *rig) { r.redis.Kill() },
		"Redis was emptied":           func(r *rig) { r.redis.Do("FLUSHALL") },
		"the stream was trimmed":      func(r *rig) { r.redis.Do("XTRIM", "alice:events", "MAXLEN", "5") },
		"the stream was trimmed away": func(r *rig) { r.redis.Do("XTRIM", "alice:events", "MAXLEN", "0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			u := dbtest.User(t, r.store, "alice")
			first := r.open(u, nil)
			r.add(u, 3)
			first.await(3)
			first.leave()
			// more events than two reads return, and more than the buffer holds
			r.add(u, 450)
			redisHas(r, u, 453)
			meanwhile(r)
			second := r.open(u, &first.ids[2])
			var all sync.WaitGroup
			all.Go(func() {
				for range 50 {
					r.add(u, 1)
				}
			})
			second.await(500)
			all.Wait()
			second.wantNumbers(r.numbers(u)[3:])
		})
	}
}

// redisHas waits until the user's stream has n entries.
func redisHas(r *rig, u vocab.Username, n int) {
	r.Helper()
	limit := time.After(20 * time.Second)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		if got := r.redis.Do("XLEN", u.String()+":events"); got == fmt.Sprint(n) {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			r.Fatalf("the stream does not get %d entries", n)
		}
	}
}

// Another process adds events without notifying the hub. The hub finds them when it compares the
// stream.
func TestEventsOfOtherProcessesAreFoundOnTheStream(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u := dbtest.User(t, r.store, "alice")
	c := r.open(u, nil)
	c.settle()
	r.store.Subscribe() // the hub's store does not learn of this commit
	r.add(u, 2)
	c.settle()
	// the emitter would do this
	r.redis.Do("XADD", "alice:events", "9999999999999-2", "type", "x")
	r.hub.CompareStreams(t.Context())
	c.await(2)
	c.wantNumbers(r.numbers(u))
}

// A program connects with a cursor at which the hub cannot continue. It gets a reset with a new
// cursor and the reason.
func TestACursorThatDoesNotLeadOnIsReset(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u := dbtest.User(t, r.store, "alice")
	r.add(u, 20)
	redisHas(r, u, 20)
	all := r.open(u, &keyspace.ID{})
	all.await(20)
	last := all.ids[19]
	for _, tt := range []struct {
		name   string
		after  keyspace.ID
		reason string
	}{
		{"the last event", last, ""},
		{"before the first", keyspace.ID{}, ""},
		{"a number that was never given", keyspace.ID{Milli: last.Milli + 1, Seq: last.Seq + 1}, "ahead"},
		{"a number that the state before a restore had", keyspace.ID{Milli: last.Milli - 1, Seq: last.Seq + 1}, "ahead"},
		{"a time that was not yet", keyspace.ID{Milli: last.Milli + 60_000, Seq: last.Seq}, "ahead"},
	} {
		checkStart(r, u, tt.name, tt.after, tt.reason, last)
	}
	err := r.store.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Events.DropEmitted(ctx, int64(last.Seq), 5)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.redis.Do("XTRIM", "alice:events", "MAXLEN", "5")
	beforeKept := keyspace.ID{Milli: all.ids[15].Milli, Seq: all.ids[15].Seq - 1}
	checkStart(r, u, "trimmed, Redis has as much", all.ids[3], "trimmed", beforeKept)
	checkStart(r, u, "just before what is kept", all.ids[14], "", last)
	r.redis.Kill()
	checkStart(r, u, "trimmed, without Redis", all.ids[3], "trimmed", beforeKept)
	checkStart(r, u, "kept, without Redis", all.ids[15], "", last)
	checkStart(r, u, "ahead, without Redis", keyspace.ID{Milli: last.Milli, Seq: last.Seq + 9}, "ahead", last)
}

// checkStart opens a socket at the cursor after and checks its hello. If reason is not empty, a
// reset with that reason and with the cursor last must follow, and after "trimmed" the five events
// that are kept.
func checkStart(r *rig, u vocab.Username, name string, after keyspace.ID, reason string, last keyspace.ID) {
	r.Helper()
	c := r.open(u, &after)
	defer c.leave()
	cursor, want := after, 1
	if reason != "" {
		cursor, want = last, 2
	}
	hello := string(c.was[0].Body)
	if len(c.was) != want || !strings.Contains(hello, `"cursor":"`+cursor.String()+`"`) || !strings.Contains(hello, `"heartbeat":30`) {
		r.Errorf("%s: begins with %s and %d frames, want cursor %s and %d", name, hello, len(c.was), cursor, want)
	}
	if reason != "" && len(c.was) == 2 && !strings.Contains(string(c.was[1].Body), `{"type":"reset","cursor":"`+cursor.String()+`","reason":"`+reason+`"}`) {
		r.Errorf("%s: is told %s, want reset because of %s", name, c.was[1].Body, reason)
	}
	if reason == "trimmed" {
		c.await(5) // the events that are kept
	}
}

// CLI-03: the engine closes the socket of a program that reads nothing. Other sockets still get
// all events. So does the slow program when it reconnects.
func TestASlowProgramIsCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u := dbtest.User(t, r.store, "alice")
	slow, other := r.open(u, nil), r.open(u, nil)
	slow.settle()
	other.settle()
	for range 30 {
		r.add(u, 10)
		other.await(len(other.ids) + 10)
	}
	if err := slow.closing(); !errors.Is(err, socket.TooSlow) {
		t.Errorf("the slow socket ends with %v, want %v", err, socket.TooSlow)
	}
	other.wantNumbers(r.numbers(u))
	first := other.ids[0]
	again := r.open(u, &first)
	again.await(299)
	again.wantNumbers(r.numbers(u)[1:])
}

// CLI-02, CLI-02b: a socket ends when its token is revoked or expires, or when its user is
// suspended.
func TestASocketEndsWithItsToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := dbtest.User(t, r.store, "alice"), dbtest.User(t, r.store, "bob")
	open := func(u vocab.Username, id uuid.UUID) *client {
		return r.openAs(socket.Request{User: u, Kind: socket.WebSocket, Token: id})
	}
	soon := time.Now().Add(time.Hour)
	kept, revoked, expiring, suspended := r.token(alice, nil), r.token(alice, nil), r.token(alice, &soon), r.token(bob, nil)
	one, two, three, four := open(alice, kept), open(alice, revoked), open(alice, expiring), open(bob, suspended)
	check := func(when string, want ...bool) {
		t.Helper()
		r.hub.CheckTokens(t.Context())
		for n, c := range []*client{one, two, three, four} {
			_, err := c.Next(t.Context(), time.Millisecond)
			if ended := errors.Is(err, socket.Revoked); ended != want[n] || !ended && err != nil {
				t.Errorf("%s: socket %d: %v, want it ended: %v", when, n, err, want[n])
			}
		}
	}
	check("at first", false, false, false, false)
	if err := r.store.Instance.Tokens.Remove(t.Context(), alice, revoked); err != nil {
		t.Fatal(err)
	}
	check("one is revoked", false, true, false, false)
	r.now.Store(int64(2 * time.Hour))
	check("one has expired", false, true, true, false)
	if err := r.store.Instance.Users.SetState(t.Context(), bob, instance.UserSuspended); err != nil {
		t.Fatal(err)
	}
	check("bob is suspended", false, true, true, true)
}

// An LLM engine gets no events about private messages of strangers.
func TestAnAssistantIsNotToldOfRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u := dbtest.User(t, r.store, "alice")
	assistant := r.openAs(socket.Request{User: u, Kind: socket.SSE, Assistant: true})
	owner := r.open(u, nil)
	assistant.settle()
	owner.settle()
	var cursor keyspace.ID
	for range 2 { // first on a live socket, then on a socket that reads stored events
		err := r.store.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
			return errors.Join(tx.Events.Add(ctx, r.event("request.received")), tx.Events.Add(ctx, r.event("create.received")))
		})
		if err != nil {
			t.Fatal(err)
		}
		owner.await(len(owner.ids) + 2)
		assistant.await(1)
		if len(assistant.ids) != 1 || assistant.was[len(assistant.was)-1].Type != "create.received" {
			t.Errorf("the assistant was told of %+v, want create.received alone", assistant.was)
		}
		cursor = owner.ids[1]
		assistant.leave()
		assistant = nil
		if len(owner.ids) == 2 {
			assistant = r.openAs(socket.Request{User: u, Kind: socket.SSE, Assistant: true, After: &cursor})
		}
	}
}

// Close ends every socket with GoingAway. After that no socket can be opened.
func TestCloseEndsEverySocket(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u := dbtest.User(t, r.store, "alice")
	c := r.open(u, nil)
	ended := make(chan error, 1)
	go func() {
		ended <- c.closing()
		c.leave()
	}()
	if err := r.hub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, socket.GoingAway) {
		t.Errorf("the socket ends with %v, want %v", err, socket.GoingAway)
	}
	if _, err := r.hub.Open(socket.Request{User: u, Kind: socket.SSE}); fault.KindOf(err) != fault.Busy {
		t.Errorf("Open after Close: %v, want it refused", err)
	}
}

// Some events are withheld. A row counts them and is not an event yet. A socket does not wait for
// that row.
func TestACountThatGrowsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u := dbtest.User(t, r.store, "alice")
	live := r.open(u, nil)
	live.settle()
	withhold := func() {
		err := r.store.Write(t.Context(), u, func(_ context.Context, tx *user.Tx) error {
			tx.Events.Withhold(r.event("events.withheld"))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.add(u, 1)
	withhold()
	r.add(u, 1)
	withhold()
	live.await(2)
	live.settle()
	late := r.open(u, &live.ids[0])
	late.await(1)
	late.settle()
	if late.ids[0] != live.ids[1] {
		t.Errorf("the late program got %v, want %v", late.ids, live.ids[1:])
	}
}
