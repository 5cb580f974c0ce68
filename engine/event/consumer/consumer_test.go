package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
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

// rig is a Redis server with alice's stream.
type rig struct {
	*testing.T
	*redistest.Server
	alice vocab.Username
	store *keyspace.Store // opened with the access that user redis-acl grants to a program

	mu       sync.Mutex
	outcomes map[consumer.Outcome]int // outcomes of all consumers together
}

func newRig(t *testing.T) *rig {
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, Server: redistest.Start(t), alice: alice, outcomes: map[consumer.Outcome]int{}}
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

// emit adds events with the numbers in its parameter to alice's stream.
func (r *rig) emit(numbers ...int) {
	r.Helper()
	for _, n := range numbers {
		r.Do("XADD", "alice:events", fmt.Sprint("1-", n), "type", "create.received", "source", "ap", "payload", fmt.Sprintf(`{"eventId":"event-%d"}`, n), "timestamp", "2026-02-21T12:00:00Z")
	}
}

// handled records the numbers of events in the order in which they were handled.
type handled struct {
	mu      sync.Mutex
	numbers []int
	fails   func(number int) error // if not nil, gives the result of handling an event
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

// start runs a consumer. The consumer runs until stop is called or the test ends. stop() waits
// until the consumer has ended.
func (r *rig) start(name string, idle time.Duration, handle func(context.Context, event.Event) error) (stop func()) {
	r.Helper()
	c := consumer.New(consumer.Config{Events: r.store, User: r.alice, Group: "llm", Name: name, Idle: idle, Log: slog.New(slog.NewTextHandler(r.Output(), nil)), Observe: r.observe}, handle)
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

func (r *rig) observe(o consumer.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes[o]++
}

// wantOutcomes waits until each outcome has occurred as often as the parameter want says.
func (r *rig) wantOutcomes(want map[consumer.Outcome]int) {
	r.Helper()
	redistest.Eventually(r, fmt.Sprint("the outcomes are ", want), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return maps.Equal(r.outcomes, want)
	})
}

func (r *rig) wantHandled(h *handled, numbers ...int) {
	r.Helper()
	redistest.Eventually(r, fmt.Sprint("handled are ", numbers), func() bool { return len(h.list()) >= len(numbers) })
	if d := cmp.Diff(numbers, h.list()); d != "" {
		r.Error("handled (-want +got):\n", d)
	}
}

// wantPending waits until n events are delivered to consumers and not acknowledged.
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

// A consumer is stopped before it acknowledges an event. At its next start it handles that event
// again, before newer events.
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
	if tries != consumer.MaxTries || !strings.Contains(letter, "id 1-2") || !strings.Contains(letter, "tries 5") || !strings.Contains(letter, "error no reason") || !strings.Contains(letter, "event-2") {
		t.Errorf("%d tries, and the letter says %s", tries, letter)
	}
	r.wantOutcomes(map[consumer.Outcome]int{consumer.Handled: 2, consumer.Failed: consumer.MaxTries, consumer.Dead: 1})
}

// Redis has no memory left, and refuses a dead letter for a while. The consumer tries again until
// Redis accepts the dead letter.
func TestAConsumerGoesOnWhenRedisRefusesNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := &handled{fails: func(int) error { return errors.New("no reason") }}
	r.emit(1)
	r.Do("CONFIG", "SET", "maxmemory", "1")
	r.start("a", time.Millisecond, h.handle)
	redistest.Eventually(t, "the letter is refused", func() bool { return strings.Contains(r.Do("INFO", "errorstats"), "errorstat_OOM") })
	r.Do("CONFIG", "SET", "maxmemory", "0")
	redistest.Eventually(t, "the event is buried", func() bool { return r.Do("XLEN", "alice:events:dead") == "1" })
	r.wantPending(0)
}

// The handling of an event ends the process every time. After MaxTries the event becomes a dead
// letter. For the events after it, these ends do not count as tries.
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

// If an engine cannot know whether an event was emitted, it emits the event again. The consumer
// drops the repeated event.
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
	r.wantOutcomes(map[consumer.Outcome]int{consumer.Handled: 3, consumer.Repeated: 2})
}

// After a restore, the database assigns used numbers to other events, so these events have used
// ids. They are no repeats, and the consumer handles them.
func TestAnotherEventUnderTheSameIDIsHandled(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	r.emit(1, 2)
	r.start("a", time.Minute, h.handle)
	r.wantHandled(h, 1, 2)
	r.Do("FLUSHALL")
	r.Do("XGROUP", "CREATE", "alice:events", "llm", "0", "MKSTREAM")
	r.Do("XADD", "alice:events", "1-2", "type", "like.received", "source", "ap", "payload", `{"eventId":"another"}`, "timestamp", "2026-02-21T12:00:00Z")
	r.wantHandled(h, 1, 2, 2)
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

// An event was delivered to a consumer that has not handled it, and the stream drops the event.
// The consumer counts the event as lost, and continues.
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
	r.wantOutcomes(map[consumer.Outcome]int{consumer.Handled: 2, consumer.Lost: 1})
}

// An event was delivered to another consumer, and the stream drops the event. The consumer that
// takes over counts the event as lost, and continues.
func TestAConsumerPassesOverWhatTheStreamDroppedUnderAnother(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	r.emit(1, 2)
	r.Do("XREADGROUP", "GROUP", "llm", "dead", "STREAMS", "alice:events", ">")
	r.Do("XTRIM", "alice:events", "MAXLEN", "1")
	r.start("b", time.Millisecond, h.handle)
	r.wantHandled(h, 2)
	r.wantPending(0)
	r.wantOutcomes(map[consumer.Outcome]int{consumer.Handled: 1, consumer.Lost: 1})
}

// A busy consumer has only the event that it handles. Another consumer handles the next events.
func TestABusyConsumerHoldsOneEvent(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	r.emit(1, 2, 3)
	began := make(chan struct{})
	r.start("busy", time.Minute, func(ctx context.Context, _ event.Event) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	})
	<-began
	r.start("b", time.Minute, h.handle)
	r.wantHandled(h, 2, 3)
	r.wantPending(1)
}

// While a consumer handles an event, the event is not idle, even if the handling takes long.
func TestAnEventThatIsBeingHandledIsNotIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.emit(1)
	began := make(chan struct{})
	r.start("slow", 400*time.Millisecond, func(ctx context.Context, _ event.Event) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	})
	<-began
	for range 2 { // each time, the consumer ends the idle time that XCLAIM sets
		r.Do("XCLAIM", "alice:events", "llm", "slow", "0", "1-1", "IDLE", "90000", "JUSTID")
		redistest.Eventually(t, "the event is held", func() bool {
			pending := strings.Fields(r.Do("XPENDING", "alice:events", "llm", "-", "+", "1"))
			idle, err := strconv.Atoi(pending[2])
			return err == nil && idle < 90_000 && pending[1] == "slow" && pending[3] == "1"
		})
	}
}

// A consumer is stopped while it handles an event. It finishes the event, and acknowledges it.
func TestAnEventThatIsHandledIsAcknowledgedAfterTheStop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.emit(1)
	began := make(chan struct{})
	stop := r.start("a", time.Minute, func(ctx context.Context, _ event.Event) error {
		close(began)
		<-ctx.Done()
		return nil
	})
	<-began
	stop()
	r.wantPending(0)
	r.wantOutcomes(map[consumer.Outcome]int{consumer.Handled: 1})
}

// A consumer that waits for events ends when it is stopped.
func TestAWaitingConsumerStops(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	stop := r.start("a", time.Minute, h.handle)
	redistest.Eventually(t, "it waits", r.IsWaitedOn)
	stop()
}

// If a consumer has no access to the stream, it ends, because further tries would not help.
func TestAConsumerEndsWhenItsAccessIsTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bob, err := vocab.ParseUsername("bob")
	if err != nil {
		t.Fatal(err)
	}
	c := consumer.New(consumer.Config{Events: r.store, User: bob, Group: "llm", Name: "a", Log: slog.New(slog.DiscardHandler)}, (&handled{}).handle)
	if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("the events of another user: %v", err)
	}
}

// Redis stops to answer while an event is handled. The consumer continues once Redis answers
// again.
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
