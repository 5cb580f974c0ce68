package event_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// groupOf returns the group with a name on the user's stream, or nil if there is none.
func (r *rig) groupOf(u vocab.Username, name string) *keyspace.Group {
	found, err := r.keys.Events.Groups(r.t.Context(), []vocab.Username{u}, event.Stream)
	if err != nil {
		return nil // Redis does not answer
	}
	for _, g := range found[0] {
		if g.Name == name {
			return &g
		}
	}
	return nil
}

// wantDelivered waits until the group exists and the last entry delivered to it has the event
// number in the parameter number.
func (r *rig) wantDelivered(u vocab.Username, name string, number uint64) {
	r.t.Helper()
	redistest.Eventually(r.t, fmt.Sprintf("%s goes on behind %d", name, number), func() bool {
		g := r.groupOf(u, name)
		return g != nil && g.Delivered.Seq == number
	})
}

// wantAcknowledged waits until the user's database stores that the group has acknowledged the
// event number.
func (r *rig) wantAcknowledged(u vocab.Username, name string, number int64) {
	r.t.Helper()
	redistest.Eventually(r.t, fmt.Sprintf("%s has acknowledged %d", name, number), func() bool {
		var marks []user.GroupMark
		err := r.store.Read(r.t.Context(), u, func(ctx context.Context, tx *user.Tx) (err error) {
			marks, err = tx.Events.ListGroupMarks(ctx)
			return err
		})
		return err == nil && strings.Contains(fmt.Sprint(marks), fmt.Sprintf("{%s %d}", name, number))
	})
}

func TestAGroupGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		lose func(r *rig)
	}{
		{"after Redis was emptied", func(r *rig) { r.redis.Do("FLUSHALL") }},
		{"after it was destroyed", func(r *rig) { r.redis.Do("XGROUP", "DESTROY", "alice:events", "llm") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, alice := emitted(t, 5)
			r.wantDelivered(alice, "llm", 0)
			r.wantDelivered(alice, "ws", 0)
			r.redis.Do("XREADGROUP", "GROUP", "llm", "p", "COUNT", "4", "STREAMS", "alice:events", ">")
			ids := strings.Fields(strings.Join(r.stream(alice)[:4], " "))
			for _, id := range ids {
				if strings.HasSuffix(id, "-1") || strings.HasSuffix(id, "-2") || strings.HasSuffix(id, "-4") {
					r.redis.Do("XACK", "alice:events", "llm", id)
				}
			}
			r.wantAcknowledged(alice, "llm", 2)
			tt.lose(r)
			r.wantDelivered(alice, "llm", 2)
			r.wantDelivered(alice, "ws", 0)
			r.wantSame(alice)
		})
	}
}

// An earlier engine, without consumer groups, stored the user's events. The groups begin after
// these events, so that programs do not get them again.
func TestGroupsOfAUserFromBeforeBeginAtTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice := dbtest.User(t, r.store, "alice")
	r.add(alice, 5)
	r.sql(alice, `INSERT INTO event_groups (name, acknowledged) VALUES ('llm', 5), ('ws', 5)`)
	r.start()
	r.wantDelivered(alice, "llm", 5)
	r.wantDelivered(alice, "ws", 5)
	r.add(alice, 1)
	r.wantSame(alice)
	r.wantDelivered(alice, "llm", 5)
}

// A stream is trimmed under a reader. The events that the reader never got are counted once, and
// the log tells of the first loss. The group ws has no reader, so it misses nothing.
func TestEventsTrimmedBeforeAReaderGotThemAreCountedOnce(t *testing.T) {
	t.Parallel()
	const missed = "lightweb_events_unread_trimmed_total"
	r, alice := emitted(t, 5)
	r.wantDelivered(alice, "llm", 0)
	r.wantDelivered(alice, "ws", 0)
	var ids []string
	for _, entry := range r.stream(alice) {
		ids = append(ids, strings.Fields(entry)[0])
	}
	next := func() { r.redis.Do("XREADGROUP", "GROUP", "llm", "p", "COUNT", "1", "STREAMS", "alice:events", ">") }
	next()
	r.redis.Do("XTRIM", "alice:events", "MAXLEN", "2")
	r.wantMetric(missed, "", 2) // the second and the third event
	r.redis.Do("XACK", "alice:events", "llm", ids[0])
	r.wantAcknowledged(alice, "llm", 1)
	next()
	r.redis.Do("XACK", "alice:events", "llm", ids[3])
	r.wantAcknowledged(alice, "llm", 4) // the emitter has looked at the group again before this
	if n := r.metric(missed, ""); n != 2 {
		t.Errorf("%v events are counted after another look, want 2", n)
	}
	r.add(alice, 3)
	redistest.Eventually(t, "three more are emitted", func() bool { return len(r.stream(alice)) == 5 })
	r.redis.Do("XTRIM", "alice:events", "MAXLEN", "1")
	r.wantMetric(missed, "", 5)
	if n := strings.Count(r.log.String(), "events were dropped from a stream before a program read them"); n != 1 {
		t.Errorf("the log tells of a loss %d times, want once", n)
	}
}
