package socket_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/vocab"
)

// heldStore is a Store. While isHeld is true, it holds back the results of reads.
type heldStore struct {
	*db.Cluster
	isHeld atomic.Bool
	reads  chan chan struct{} // receives a channel for each held read; the test closes that channel to release the result
}

func (s *heldStore) Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	err := s.Cluster.Read(ctx, u, work)
	if s.isHeld.Load() {
		release := make(chan struct{})
		s.reads <- release
		<-release
	}
	return err
}

// While the tail reads for the last live socket, that socket closes. Then another socket joins
// that still lacks earlier events. It must get these events, too.
func TestASocketThatJoinsDuringAReadOfOthersMissesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys, err := keyspace.Open(keyspace.Config{CacheURL: redistest.Start(t).URL(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
	})
	store := &heldStore{Cluster: r.store, reads: make(chan chan struct{})}
	r.hub = socket.NewHub(socket.Deps{Store: store, Streams: keys.Events, Tokens: r.store.Instance.Tokens, Local: local{}, Profiles: &r.rules, Log: slog.New(slog.DiscardHandler), Now: time.Now, OfUser: ofUser})
	u := dbtest.User(t, r.store, "alice")
	r.add(u, 1)
	leaves, joins := r.open(u, nil), r.open(u, nil)
	leaves.settle()

	store.isHeld.Store(true)
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		joins.settle()
	}()
	// the joining socket has read that there is no event after event 1
	release := <-store.reads
	r.add(u, 2)
	commit := user.Commit{User: u}
	err = r.store.Read(t.Context(), u, func(ctx context.Context, tx *user.Tx) (err error) {
		commit.Events, err = tx.Events.List(ctx, 1, 9)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.hub.Committed(t.Context(), commit)
	leaves.await(2)
	r.add(u, 1)
	r.hub.Committed(t.Context(), user.Commit{User: u, Unknown: true})
	releaseTail := <-store.reads // the tail has read the events after event 3
	leaves.leave()
	store.isHeld.Store(false)
	close(release)
	<-joined
	close(releaseTail)
	joins.next()
	if first := joins.ids[0].Seq; first != 2 {
		t.Fatalf("the first event is %d, want 2", first)
	}
	joins.await(3)
	joins.wantNumbers(r.numbers(u)[1:])
}

// A change of presence is sent only once. So a socket that still reads stored events must get it,
// too.
func TestPresenceReachesASocketThatCatchesUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := r.friends()
	from := r.program(alice, maySignal)
	from.Signal(t.Context(), []byte(`{"type":"presence","state":"online"}`))
	begin := r.open(bob, nil)
	r.add(bob, 1)
	begin.await(1)
	begin.leave()
	r.add(bob, 450) // more events than two reads return
	redisHas(r, bob, 451)
	later := r.open(bob, &begin.ids[0])
	later.next()
	if n := len(later.ids); n == 0 || n >= 450 {
		t.Fatalf("the socket got %d events at once", n)
	}
	from.leave()
	later.await(450)
	var states []string
	for _, f := range append(later.was, later.drain()...) {
		var s signalFrame
		if err := json.Unmarshal(f.Body, &s); err == nil && f.Type == "presence" {
			states = append(states, s.State)
		}
	}
	if !slices.Equal(states, []string{"online", "offline"}) {
		t.Errorf("the socket was told %v, want online and offline", states)
	}
}

// drain returns the frames that can be read without waiting.
func (c *client) drain() []socket.Frame {
	c.r.Helper()
	frames, err := c.Next(c.r.Context(), time.Millisecond)
	if err != nil {
		c.r.Fatal(err)
	}
	return frames
}
