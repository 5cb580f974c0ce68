package event_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// While events are committed, Redis is killed, emptied and stopped at random, and the emitter is
// restarted twice. A reader always continues after the last id that it has read. It gets every
// event once, in the order of the numbers.
func TestChaos(t *testing.T) {
	t.Parallel()
	const users, rounds, each = 5, 30, 8
	r := newRig(t)
	r.start()
	var all []vocab.Username
	for n := range users {
		all = append(all, dbtest.User(t, r.store, fmt.Sprint("user", n)))
	}
	seen := make([][]uint64, users)
	over := make(chan struct{})
	var readers sync.WaitGroup
	for n, u := range all {
		readers.Go(func() { seen[n] = follow(r, u, over) })
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		for _, u := range all {
			r.add(u, 1+random.IntN(each))
		}
		if round == 10 || round == 20 {
			r.stop()
			r.start()
		}
		switch random.IntN(6) {
		case 0:
			r.redis.Kill()
			r.add(all[0], 1)
			r.redis.Restart()
		case 1:
			r.redis.Do("FLUSHALL")
		case 2:
			r.redis.Pause()
			r.add(all[1], 1)
			r.redis.Resume()
		}
	}
	for _, u := range all {
		r.wantSame(u)
	}
	close(over)
	readers.Wait()
	for n, u := range all {
		if !slices.IsSorted(seen[n]) || len(seen[n]) != r.events[u] {
			t.Errorf("the reader of %s saw %d of %d events, in order: %t: %v", u, len(seen[n]), r.events[u], slices.IsSorted(seen[n]), seen[n])
		}
	}
}

// follow reads u's stream. Each read begins after the last id that it has read. After the channel
// over is closed, follow reads to the end of the stream. It returns the numbers of the events in
// the order in which they came.
func follow(r *rig, u vocab.Username, over <-chan struct{}) (seen []uint64) {
	var last keyspace.ID
	for ended := false; ; {
		select {
		case <-over:
			ended = true // no event is added any more
		default:
		}
		entries, err := r.keys.Events.Of(u).Range(r.t.Context(), event.Stream, last, 1000)
		for _, e := range entries {
			last = e.ID
			if !strings.Contains(e.Field("payload"), fmt.Sprintf(`"user": "%s"`, u)) {
				r.t.Errorf("entry %s: %s", e.ID, e.Field("payload"))
			}
			seen = append(seen, e.ID.Seq)
		}
		switch {
		case err != nil || len(entries) > 0:
		case ended:
			return seen
		default:
			<-time.After(5 * time.Millisecond)
		}
	}
}
