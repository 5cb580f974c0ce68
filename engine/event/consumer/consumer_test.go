package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/event/consumer"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a server with the stream of alice.
type rig struct {
	*testing.T
	*redistest.Server
	alice vocab.Username
	store *keyspace.Store // as a program with the access of user redis-acl reaches it
}

func newRig(t *testing.T) *rig {
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, Server: redistest.Start(t), alice: alice}
	engine := r.open(r.URL())
	access := engine.StreamAccess(alice, event.Stream, "secret")
	if _, err := engine.GrantAccess(t.Context(), access); err != nil {
		t.Fatal(err)
	}
	r.store = r.open("redis://" + access.Name + ":secret@" + r.Addr)
	r.Do("XGROUP", "CREATE", "alice:events", "llm", "0", "MKSTREAM")
	return r
}

func (r *rig) open(url string) *keyspace.Store {
	r.Helper()
	k, err := keyspace.Open(keyspace.Config{CacheURL: url, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := k.Close(); err != nil {
			r.Error(err)
		}
	})
	return k.Events
}

// emit adds events with these numbers.
func (r *rig) emit(numbers ...int) {
	r.Helper()
	for _, n := range numbers {
		r.Do("XADD", "alice:events", fmt.Sprint("1-", n), "type", "create.received", "source", "ap", "payload", fmt.Sprintf(`{"eventId":"event-%d"}`, n), "timestamp", "2026-02-21T12:00:00Z")
	}
}

// handled are the numbers of events in the order in which they were handled.
type handled struct {
	mu      sync.Mutex
	numbers []int
	fails   func(number int) error // what becomes of the handling; may be nil
}

func (h *handled) handle(_ context.Context, e event.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.numbers = append(h.numbers, int(e.ID.Seq))
	if h.fails != nil {
		return h.fails(int(e.ID.Seq))
	}
	return nil
}

func (h *handled) list() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]int{}, h.numbers...)
}

// start runs a consumer until its test ends or stop is called, which waits for its end.
func (r *rig) start(name string, idle time.Duration, handle func(context.Context, event.Event) error) (stop func()) {
	r.Helper()
	c := consumer.New(consumer.Config{Events: r.store, User: r.alice, Group: "llm", Name: name, Idle: idle, Log: slog.New(slog.NewTextHandler(r.Output(), nil))}, handle)
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			r.Errorf("the consumer ended with %v", err)
		}
	})
	r.Cleanup(stop)
	return stop
}

func (r *rig) wantHandled(h *handled, numbers ...int) {
	r.Helper()
	redistest.Eventually(r, fmt.Sprint("handled are ", numbers), func() bool { return len(h.list()) >= len(numbers) })
	if d := cmp.Diff(numbers, h.list()); d != "" {
		r.Error("handled (-want +got):\n", d)
	}
}

// wantPending waits until so many events are handed out and not acknowledged.
func (r *rig) wantPending(n int) {
	r.Helper()
	redistest.Eventually(r, fmt.Sprint(n, " are pending"), func() bool {
		return strings.HasPrefix(r.Do("XPENDING", "alice:events", "llm")+" ", fmt.Sprint(n, " "))
	})
}

func TestEventsAreHandledInOrderAndAcknowledged(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	r.emit(1, 2, 5)
	r.start("a", time.Minute, h.handle)
	r.wantHandled(h, 1, 2, 5)
	r.emit(6)
	r.wantHandled(h, 1, 2, 5, 6)
	r.wantPending(0)
}

// A consumer that ends between an event and its acknowledgement handles it again at its next start,
// before what came later.
func TestAConsumerGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.emit(1, 2, 3)
	first, began := &handled{}, make(chan struct{})
	stop := r.start("a", time.Minute, func(ctx context.Context, e event.Event) error {
		if e.ID.Seq == 1 {
			return first.handle(ctx, e)
		}
		close(began)
		<-ctx.Done()
		return ctx.Err()
	})
	<-began
	stop()
	r.emit(4)
	h := &handled{}
	r.start("a", time.Minute, h.handle)
	r.wantHandled(first, 1)
	r.wantHandled(h, 2, 3, 4)
	r.wantPending(0)
}

func TestAConsumerTakesOverFromOneThatDied(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	r.emit(1, 2)
	r.Do("XREADGROUP", "GROUP", "llm", "dead", "STREAMS", "alice:events", ">")
	r.start("b", time.Millisecond, h.handle)
	r.wantHandled(h, 1, 2)
	r.wantPending(0)
}

func TestAnEventThatFailsIsADeadLetterInTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := &handled{fails: func(number int) error {
		if number == 2 {
			return errors.New("no reason")
		}
		return nil
	}}
	r.emit(1, 2, 3)
	r.start("a", time.Millisecond, h.handle)
	redistest.Eventually(t, "the event is buried", func() bool { return r.Do("XLEN", "alice:events:dead") == "1" })
	r.wantPending(0)
	tries := 0
	for _, n := range h.list() {
		if n == 2 {
			tries++
		}
	}
	letter := r.Do("XRANGE", "alice:events:dead", "-", "+")
	if tries != consumer.MaxTries || !strings.Contains(letter, "id 1-2") || !strings.Contains(letter, "error no reason") || !strings.Contains(letter, "event-2") {
		t.Errorf("%d tries, and the letter says %s", tries, letter)
	}
}

// An event whose handling ends the process each time must not end it for ever; those behind it lose
// no try by it.
func TestAnEventThatEndsItsConsumersIsADeadLetterInTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.emit(1, 2)
	for range consumer.MaxTries {
		began := make(chan struct{})
		stop := r.start("a", time.Minute, func(ctx context.Context, e event.Event) error {
			close(began)
			<-ctx.Done()
			return ctx.Err()
		})
		<-began
		stop()
	}
	h := &handled{}
	r.start("a", time.Minute, h.handle)
	r.wantHandled(h, 2)
	if letter := r.Do("XRANGE", "alice:events:dead", "-", "+"); !strings.Contains(letter, "id 1-1") {
		t.Errorf("the dead letters are %q", letter)
	}
	r.wantPending(0)
}

// An engine emits an event again when it cannot know that it was emitted.
func TestRepeatsAreDropped(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	r.emit(1, 2)
	r.start("a", time.Minute, h.handle)
	r.wantHandled(h, 1, 2)
	r.Do("FLUSHALL")
	r.Do("XGROUP", "CREATE", "alice:events", "llm", "0", "MKSTREAM")
	r.emit(1, 2, 3)
	r.wantHandled(h, 1, 2, 3)
	r.wantPending(0)
}

func TestAConsumerWaitsForItsGroup(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	r.emit(1)
	r.start("a", time.Minute, h.handle)
	r.wantHandled(h, 1)
	r.Do("XGROUP", "DESTROY", "alice:events", "llm")
	r.emit(2)
	r.Do("XGROUP", "CREATE", "alice:events", "llm", "1-1")
	r.wantHandled(h, 1, 2)
}

// Events that the stream dropped under a consumer are not waited for.
func TestAConsumerPassesOverWhatTheStreamDropped(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	r.emit(1, 2)
	r.Do("XREADGROUP", "GROUP", "llm", "a", "STREAMS", "alice:events", ">")
	r.Do("XTRIM", "alice:events", "MAXLEN", "1")
	r.emit(3)
	r.start("a", time.Minute, h.handle)
	r.wantHandled(h, 2, 3)
	r.wantPending(0)
}

// Redis goes away and comes back between events, and within the handling of one.
func TestAConsumerGoesOnWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	h.fails = func(number int) error {
		if number == 2 {
			r.Pause()
		}
		return nil
	}
	r.emit(1, 2, 3)
	r.start("a", time.Minute, h.handle)
	redistest.Eventually(t, "the second is handled", func() bool { return len(h.list()) == 2 })
	r.Resume()
	r.wantHandled(h, 1, 2, 3)
	r.wantPending(0)
}
