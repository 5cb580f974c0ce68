package conversation

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// away is a store whose databases do not answer.
type away struct{ Store }

var errAway = fault.New(fault.Unavailable, "the database does not answer")

func (away) Write(context.Context, vocab.Username, func(context.Context, *user.Tx) error) error {
	return errAway
}

type nobody struct{ Actors }

func (nobody) ID(vocab.Username) vocab.ID { return "" }

func newIdle() *Registry {
	return NewRegistry(Deps{Store: away{}, Actors: nobody{}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
}

// An idle conversation has no goroutine. If a goroutine is left at the end, synctest fails the
// test.
func TestAConversationIsDroppedOnceItIsIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, at := newIdle(), Place{ID: uuid.New()}
		ask := func() {
			t.Helper()
			if _, err := r.AskReset(t.Context(), at, ""); !errors.Is(err, errAway) {
				t.Errorf("AskReset: %v", err)
			}
		}
		ask()
		time.Sleep(idleTime - time.Second)
		ask()
		time.Sleep(2 * time.Second)
		if all, _ := (collector{r}).count(); all != 1 {
			t.Errorf("%d conversations are live that were used a moment ago, want 1", all)
		}
		time.Sleep(2 * idleTime)
		if all, _ := (collector{r}).count(); all != 0 {
			t.Errorf("%d conversations are live, want none", all)
		}
		if r.sweeper != nil {
			t.Error("a timer runs for no conversation")
		}
	})
}

func TestThereIsABoundToLiveConversations(t *testing.T) {
	t.Parallel()
	r := newIdle()
	for range maxLive {
		r.mu.Lock()
		r.start(Place{ID: uuid.New()}).usedAt = time.Now()
		r.mu.Unlock()
	}
	if _, err := r.AskReset(t.Context(), Place{ID: uuid.New()}, ""); !errors.Is(err, errAway) {
		t.Errorf("one more: %v, want an idle one to make room", err)
	}
	if all, _ := (collector{r}).count(); all > maxLive {
		t.Errorf("%d are live, want %d at most", all, maxLive)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// lone is a store of one conversation. Its transactions do nothing, and fail the test if more than
// one worker waits for them. A transaction may find no work, for another one may have taken it.
type lone struct {
	away
	t        *testing.T
	carriers *carriers
}

func (s *lone) Write(_ context.Context, u vocab.Username, _ func(context.Context, *user.Tx) error) error {
	for range 10 { // so that others meet the worker at work
		runtime.Gosched()
		if s.carriers.count(u) > 1 {
			s.t.Error("a conversation has two workers")
		}
	}
	return nil
}

// Row 17: requests race with the end of an idle conversation, ten thousand times. Each request is
// answered, and the conversation never has two workers.
func TestRow17RequestsRaceWithTheEndOfAnIdleConversation(t *testing.T) {
	t.Parallel()
	r, s, at := newIdle(), &lone{t: t}, Place{ID: uuid.New()}
	s.carriers = newCarriers(s)
	r.Store, r.carriers = s, s.carriers
	const loops = 10_000
	for loop := range loops {
		start := make(chan struct{})
		var wg sync.WaitGroup
		for n := range 2 {
			wg.Go(func() {
				<-start
				if n == 1 {
					for range loop % 16 { // so that the two meet at each of their steps
						runtime.Gosched()
					}
					r.DropIdle()
				}
				if err := r.submit(t.Context(), at, &Message{}); err != nil {
					t.Errorf("a request: %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
	}
	starts, stops := testutil.ToFloat64(r.metrics.starts), testutil.ToFloat64(r.metrics.stops)
	if all, _ := (collector{r}).count(); float64(all) != starts-stops {
		t.Errorf("%g times it became live, %g times it ended, and %d are live", starts, stops, all)
	}
	if stops < loops/10 {
		t.Errorf("it ended %g times: that is no race", stops)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// BenchmarkEpoch reads the epochs of 10,000 live conversations. No read uses a database.
func BenchmarkEpoch(b *testing.B) {
	r, all := newIdle(), make([]Place, maxLive)
	for i := range all {
		all[i] = Place{ID: uuid.New()}
		r.live[all[i]] = newLive(r, all[i])
		r.live[all[i]].epoch.Store(7)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, known := r.Epoch(all[n%len(all)]); !known {
			b.Fatal("not known")
		}
		n++
	}
}

// BenchmarkIdle measures the memory of a live conversation that has no work.
func BenchmarkIdle(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		r := newIdle()
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range maxLive {
			at := Place{ID: uuid.New()}
			r.live[at] = newLive(r, at)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/maxLive, "B/conversation")
		runtime.KeepAlive(r)
	}
}
