package event_test

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// Redis answers later than the emitter waits for it. It has executed the commands whose answers
// were not awaited. Each event is on the stream once.
func TestEventsAreEmittedOnceThoughAnswersComeLate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	proxy := r.redis.StartProxy()
	r.reach(proxy.URL())
	alice := dbtest.User(t, r.store, "alice")
	r.start()
	r.add(alice, 5)
	r.wantSame(alice)
	for _, by := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond} {
		proxy.DelayAnswers(by)
		for range 4 {
			r.add(alice, 2)
		}
		length := r.redis.Do("XLEN", "alice:events")
		redistest.Eventually(t, "Redis takes events", func() bool { return r.redis.Do("XLEN", "alice:events") != length })
	}
	redistest.Eventually(t, "Redis counts as away", func() bool { return !r.keys.Events.IsUp() })
	proxy.DelayAnswers(0)
	r.wantSame(alice)
}

// Redis executes no command for a while, and the connections stay.
func TestEventsWaitWhileRedisIsPaused(t *testing.T) {
	t.Parallel()
	r, alice := emitted(t, 5)
	for _, pause := range []string{"100", "600"} { // milliseconds
		r.redis.Do("CLIENT", "PAUSE", pause, "ALL")
		r.add(alice, 3)
		r.wantSame(alice)
	}
}
