package inbox_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A request counts towards the limit before its activity is in the journal. Otherwise many
// requests could pass the limit while the journal is slow.
func TestWhatIsAboutToBeQueuedCountsToo(t *testing.T) {
	alice, bob := two(t)
	const limit, senders = 6, 40
	alice.Inbox.Limit(10, 1<<30) // one domain may use 6 of the 10 places, so that other domains have room
	release := dbtest.Hold(t, alice.SQL(t), `LOCK TABLE intake IN EXCLUSIVE MODE`)
	answers := make(chan error, senders)
	for n := range senders {
		body := note(n, "hi")
		r := alice.Request("p:/carol", shared, body)
		go func() {
			answers <- alice.Inbox.Receive(context.WithoutCancel(t.Context()), r, []byte(alice.Long(body)), vocab.Username{})
		}()
	}
	for range senders - limit/2 { // each activity takes two places
		if err := <-answers; fault.KindOf(err) != fault.Unavailable || fault.Of(err).RetryAfter == 0 {
			t.Errorf("err = %v, want Unavailable with a time to wait", err)
		}
	}
	if n := alice.Inbox.Waiting(); n != limit {
		t.Errorf("%d places are taken, want %d", n, limit)
	}
	release()
	for range limit / 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	settled(t, alice, bob)
	if n := alice.Inbox.Waiting(); n != 0 {
		t.Errorf("%d places are taken at the end, want none", n)
	}
}

// When all databases hang under load, the engine tells peers to come again before the activities
// in memory exceed the limit. Each accepted activity reaches its recipients once.
func TestBackpressureComesBeforeMemoryGrows(t *testing.T) {
	alice, bob := two(t)
	const limit, all, senders = 60, 200, 8
	alice.Inbox.Limit(limit, 1<<30)
	releases := []func(){hold(t, alice), hold(t, bob)}
	bodies := make(chan string)
	var refused, most atomic.Int64
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			for body := range bodies {
				for tries := 0; ; tries++ {
					err := accept(alice, shared, body)
					most.Store(max(most.Load(), int64(alice.Inbox.Waiting())))
					if err == nil {
						break
					}
					if fault.KindOf(err) != fault.Unavailable || fault.Of(err).RetryAfter == 0 || tries == 4000 {
						t.Errorf("err = %v, want Unavailable with a time to wait", err)
						return
					}
					refused.Add(1)
					select {
					case <-time.After(5 * time.Millisecond): // a real peer waits too, but longer
					case <-t.Context().Done():
					}
				}
			}
		})
	}
	alice.Actor("p:/carol")
	group.Go(func() {
		defer close(bodies)
		for n := range all {
			bodies <- note(n, strings.Repeat("x", 100))
		}
	})
	eventually(t, "peers are told to come again", func() bool { return refused.Load() > 0 })
	for _, release := range releases {
		release()
	}
	group.Wait()
	settled(t, alice, bob)
	if n := most.Load(); n > limit+1 { // the last accepted activity has two recipients
		t.Errorf("%d were in memory, want at most %d", n, limit+1)
	}
	for _, got := range [][]string{created(t, alice), created(t, bob)} {
		slices.Sort(got)
		if !slices.Equal(got, numbers(all)) {
			t.Errorf("%d activities arrived, want %d, each once: %q", len(got), all, got)
		}
	}
}
