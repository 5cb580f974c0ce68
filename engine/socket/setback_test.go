package socket_test

import (
	"errors"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/socket"
)

// A failover of the database loses the last events, and new events get their numbers. The sockets
// of programs that received lost events end with SetBack. If such a program connects later, it
// gets a reset.
func TestProgramsAreToldThatTheDatabaseWasSetBack(t *testing.T) {
	t.Parallel()
	for name, commits := range map[string][]int{"less than was lost": {1}, "more than was lost": {9}, "both": {1, 9}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			u := dbtest.User(t, r.store, "alice")
			live := r.open(u, nil)
			live.settle()
			r.add(u, 5)
			live.await(5)
			joined := r.open(u, nil)
			joined.settle()
			redisHas(r, u, 5)

			sql := dbtest.SQL(r, r.store, u)
			for _, statement := range []string{`DELETE FROM event_outbox WHERE seq > 2`, `ALTER SEQUENCE event_outbox_seq_seq RESTART WITH 3`} {
				if _, err := sql.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			events := 2
			for _, n := range commits {
				r.add(u, n)
				events += n
			}
			for _, c := range []*client{live, joined} {
				if err := c.closing(); !errors.Is(err, socket.SetBack) {
					t.Errorf("a socket ends with %v, want %v", err, socket.SetBack)
				}
			}
			redisHas(r, u, events)
			all := r.open(u, &keyspace.ID{})
			all.await(events)
			all.wantNumbers(r.numbers(u))
			last := all.ids[events-1]
			checkStart(r, u, "later", live.ids[4], "ahead", last)
			r.redis.Kill()
			checkStart(r, u, "without Redis", live.ids[4], "ahead", last)
		})
	}
}

// A failover of the database loses the last events, and no new events follow. A program that has
// read all remaining events connects. The other sockets then end with SetBack, and the new socket
// becomes live.
func TestAProgramThatComesAfterTheDatabaseWasSetBackJoins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u := dbtest.User(t, r.store, "alice")
	r.add(u, 5)
	before := r.open(u, &keyspace.ID{})
	before.await(5)
	before.leave()
	live := r.open(u, nil)
	live.settle()
	sql := dbtest.SQL(r, r.store, u)
	for _, statement := range []string{`DELETE FROM event_outbox WHERE seq > 2`, `SELECT setval('event_outbox_seq_seq', 2)`} {
		if _, err := sql.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	r.redis.Kill()
	later := r.open(u, &before.ids[1])
	later.settle()
	if err := live.closing(); !errors.Is(err, socket.SetBack) {
		t.Errorf("the socket ends with %v, want %v", err, socket.SetBack)
	}
	r.add(u, 1)
	later.await(1)
}
