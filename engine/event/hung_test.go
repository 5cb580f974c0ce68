package event_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/vocab"
)

// hanging is a store. Once hangs is set, the database of the user in it does not answer.
type hanging struct {
	event.Store
	user  vocab.Username
	hangs atomic.Bool
}

func (h *hanging) Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	if h.hangs.Load() && u == h.user {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.Store.Read(ctx, u, work)
}

func TestADatabaseThatHangsKeepsNoGroupsOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := dbtest.User(t, r.store, "alice"), dbtest.User(t, r.store, "bob")
	store := &hanging{Store: r.store, user: alice}
	r.over, r.limit = store, 200*time.Millisecond
	r.start()
	for _, u := range []vocab.Username{alice, bob} {
		r.add(u, 2)
		r.wantSame(u)
		r.wantDelivered(u, "llm", 0)
		r.wantDelivered(u, "ws", 0)
	}
	store.hangs.Store(true)
	r.redis.Do("XGROUP", "DESTROY", "alice:events", "llm")
	r.redis.Do("XGROUP", "DESTROY", "bob:events", "llm")
	r.redis.Do("XREADGROUP", "GROUP", "ws", "p", "COUNT", "1", "STREAMS", "bob:events", ">") // so that the emitter checks bob's groups every time
	r.redis.Do("XREADGROUP", "GROUP", "ws", "p", "COUNT", "1", "STREAMS", "alice:events", ">")
	r.wantDelivered(bob, "llm", 0)
}

func TestADatabaseThatHangsKeepsNoOldEventsOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := dbtest.User(t, r.store, "alice"), dbtest.User(t, r.store, "bob")
	r.add(alice, 3) // no emitter runs yet
	r.add(bob, 3)
	store := &hanging{Store: r.store, user: alice}
	store.hangs.Store(true)
	r.over, r.limit = store, 200*time.Millisecond
	r.start()
	r.wantSame(bob)
}
