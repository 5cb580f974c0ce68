package engine_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// Two peers hold a delivery of each user when the engine is told to stop. One peer answers while
// the engine drains. Its deliveries are not sent again. The other peer never answers. When the
// drain time is over, its deliveries are cut off, no worker holds them, and the next start sends
// them again. There are more users than the dispatcher writes for at the same time.
func TestAStopKeepsTheOutcomesOfItsDrainTime(t *testing.T) {
	t.Parallel()
	const users = 20
	home := enginetest.Start(t, "LIGHTWEB_DRAIN_TIMEOUT=8s", "LIGHTWEB_DELIVERY_HOST_CONCURRENCY=32")
	answering, bob := newReluctant(t, "127.0.0.2", "/bob")
	hanging, dora := newReluctant(t, "127.0.0.3", "/dora")
	var all []*enginetest.User
	for n := range users {
		all = append(all, home.CreateUser(t, fmt.Sprint("user", n)))
	}
	for _, u := range all { // at once: a delivery that is held for long is made again
		u.Do(t, "CreateNote", map[string]any{"content": "hello", "visibility": "direct", "to": []any{bob.ID, dora.ID}})
	}
	enginetest.Eventually(t, "both peers hold a delivery of each user", func() bool {
		return answering.taken.Load() == users && hanging.taken.Load() == users
	})

	code := home.StopWhile(t, func() {
		awaitDrain(t, home)
		answering.answer()
	})
	if code != 75 || !strings.Contains(home.Log(), "deliveries did not end in time") {
		t.Errorf("the engine ended with exit code %d, want 75 and that deliveries were cut", code)
	}
	want := []string{bob.ID.Host() + " delivered true", dora.ID.Host() + " pending true"}
	for _, u := range all {
		got := u.Column(t, `SELECT host || ' ' || status || ' ' || (lease_owner IS NULL) FROM deliveries ORDER BY status`)
		if !slices.Equal(got, want) {
			t.Errorf("after the stop the deliveries of %s are %q, want %q", u.Name, got, want)
		}
	}

	hanging.answer()
	home.Start(t)
	enginetest.Eventually(t, "the cut deliveries are made again", func() bool { return hanging.taken.Load() == 2*users })
	for _, u := range all {
		enginetest.Eventually(t, "nothing is owed by "+u.Name, func() bool {
			return u.Column(t, `SELECT count(*) FROM deliveries WHERE status <> 'delivered'`)[0] == "0"
		})
	}
	if got := answering.taken.Load(); got != users {
		t.Errorf("the peer that answered got %d posts, want %d", got, users)
	}
}

// The private PostgreSQL dies while the engine drains. The engine starts it again, and stores the
// outcome of the delivery that it waited for.
func TestAPostgreSQLThatDiesDuringTheDrainIsStartedAgain(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t, "LIGHTWEB_DRAIN_TIMEOUT=75s", "LIGHTWEB_DELIVERY_TIMEOUT=75s")
	peer, bob := newReluctant(t, "127.0.0.2", "/bob")
	alice := home.CreateUser(t, "alice")
	alice.Do(t, "CreateNote", map[string]any{"content": "hello", "visibility": "direct", "to": []any{bob.ID}})
	enginetest.Eventually(t, "the peer holds the delivery", func() bool { return peer.taken.Load() == 1 })
	code := home.StopWhile(t, func() {
		awaitDrain(t, home)
		if err := syscall.Kill(home.Postmaster(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		enginetest.Eventually(t, "the engine reaches PostgreSQL again", func() bool { return strings.Contains(home.Log(), "database reached again") })
		peer.answer()
	})
	if got := alice.Column(t, `SELECT status FROM deliveries`); code != 0 || !slices.Equal(got, []string{"delivered"}) {
		t.Errorf("the engine ended with exit code %d, and the delivery is %q, want 0 and delivered", code, got)
	}
}

// Deliveries of many users fail at the end of the drain, and Redis is slow. The engine emits the
// events about it before it ends.
func TestAStopEmitsTheEventsOfItsDrainTime(t *testing.T) {
	t.Parallel()
	const users = 16 // more than the emitter has workers
	redis := redistest.Start(t)
	proxy := redis.StartProxy()
	home := enginetest.Start(t, "LIGHTWEB_REDIS_URL="+proxy.URL(), "LIGHTWEB_DRAIN_TIMEOUT=30s", "LIGHTWEB_DELIVERY_HOST_CONCURRENCY=32")
	peer, bob := newReluctant(t, "127.0.0.2", "/bob")
	peer.status.Store(http.StatusNotImplemented)
	var all []*enginetest.User
	for n := range users {
		all = append(all, home.CreateUser(t, fmt.Sprint("user", n)))
	}
	for _, u := range all {
		create, _ := u.Post(t, map[string]any{"content": "hello", "visibility": "direct", "to": []any{bob.ID}})
		enginetest.Eventually(t, "the post is on the stream", func() bool { return onStream(redis, u, "create.sent", create) })
	}
	enginetest.Eventually(t, "the peer holds a delivery of each user", func() bool { return peer.taken.Load() == users })
	proxy.DelayAnswers(100 * time.Millisecond)
	code := home.StopWhile(t, func() {
		awaitDrain(t, home)
		peer.answer()
	})
	if code != 0 {
		t.Errorf("the engine ended with exit code %d, want 0", code)
	}
	for _, u := range all {
		if !onStream(redis, u, "delivery.failed", bob.ID.Host()) {
			t.Errorf("the stream of %s does not tell that the delivery failed", u.Name)
		}
	}
}

// awaitDrain waits until the engine, which was told to stop, takes no more connections.
func awaitDrain(t *testing.T, home *enginetest.Instance) {
	t.Helper()
	address := strings.TrimPrefix(home.URL, "http://")
	enginetest.Eventually(t, "the engine drains", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close() // the engine opened it only to see whether a server listens
		}
		return err != nil
	})
}

// reluctant is a peer that answers deliveries from the call of answer on, or when the test ends.
type reluctant struct {
	open   chan struct{}
	answer func()
	taken  atomic.Int32
	status atomic.Int32 // the status of the answers
}

func newReluctant(t *testing.T, address, actor string) (*reluctant, *peertest.Actor) {
	p, h := peertest.New(t, address), &reluctant{open: make(chan struct{})}
	h.answer = sync.OnceFunc(func() { close(h.open) })
	h.status.Store(http.StatusAccepted)
	t.Cleanup(h.answer) // the peer's server waits for its handlers
	a := p.Actor(actor)
	p.Handle(actor+"/inbox", func(w http.ResponseWriter, r *http.Request) {
		h.taken.Add(1)
		select {
		case <-h.open:
			w.WriteHeader(int(h.status.Load()))
		case <-r.Context().Done():
		}
	})
	return h, a
}
