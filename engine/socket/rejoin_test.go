package socket_test

import (
	"context"
	"log/slog"
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

// heldStore is a Store whose results are held back while the test says so.
type heldStore struct {
	*db.Cluster
	isHeld atomic.Bool
	reads  chan chan struct{} // for each read that is held back, the channel whose end lets its result go
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

// The last live socket leaves while the tail reads for it, and another one joins that lacks events
// from before that read.
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
	release := <-store.reads // joins has read that nothing follows event 1
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
	releaseTail := <-store.reads // the tail has read what follows event 3
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
