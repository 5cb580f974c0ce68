package conversation_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// looks is a store that counts the queries of Look for each database. The other methods of the
// interface are missing, so a call of them panics.
type looks struct {
	conversation.Store
	on conversation.Store
	n  map[vocab.Username]int
}

func (l *looks) Look(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	l.n[u]++
	return l.on.Look(ctx, u, work)
}

// warm is a process that has just started.
type warm struct {
	*scene
	registry *conversation.Registry
	looks    *looks
	log      bytes.Buffer
}

func (s *scene) restarted() *warm {
	s.Helper()
	return &warm{scene: s, registry: s.node(s.store), looks: &looks{on: s.store.As(pool.Stranger), n: map[vocab.Username]int{}}}
}

func (w *warm) warmUp(ctx context.Context) {
	conversation.Warmer{Registry: w.registry, Store: w.looks, Users: w.store.Instance.Users, Log: slog.New(slog.NewTextHandler(&w.log, nil))}.WarmUp(ctx)
}

// wantKnown fails unless the process knows this many of the conversations.
func (w *warm) wantKnown(of vocab.Username, ids []uuid.UUID, want int) {
	w.Helper()
	n := 0
	for _, id := range ids {
		at := conversation.Place{Host: of, ID: id}
		_, known := w.registry.Epoch(at)
		if known != w.registry.IsHosted(at) {
			w.Errorf("of %v the epoch is known (%t), not the host", id, known)
		}
		if known {
			n++
		}
	}
	if n != want {
		w.Errorf("%d conversations of %v are known, want %d", n, of, want)
	}
}

// After a restart the process knows the busy conversations by one query in each database. A commit
// is compared with the database, whatever the process knows.
func TestARestartKnowsTheBusyConversations(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	bob := dbtest.User(t, s.store, "bob")
	of := dbtest.Hosted(t, s.store, bob, 9)
	w := s.restarted()
	w.warmUp(t.Context())
	if epoch, known := w.registry.Epoch(s.at); !known || epoch != 1 {
		t.Errorf("of alice's conversation the epoch is %d (%t), want 1", epoch, known)
	}
	if epoch, known := w.registry.Epoch(conversation.Place{Host: bob, ID: of.ID}); !known || epoch != 9 {
		t.Errorf("of bob's conversation the epoch is %d (%t), want 9", epoch, known)
	}
	if len(w.looks.n) != 2 || w.looks.n[s.user] != 1 || w.looks.n[bob] != 1 {
		t.Errorf("the databases were asked %v, want each once", w.looks.n)
	}
	s.commit(s.alice, mlstest.Change{}) // by another process
	late := s.group
	s.commit(s.alice, mlstest.Change{})
	r, _ := s.request(s.alice, late, mlstest.Change{})
	_, err := w.registry.Commit(t.Context(), s.at, r)
	s.wantConflict("a commit of an epoch that is over", err, "epoch_conflict")
	s.registry = w.registry
	s.commit(s.alice, mlstest.Change{})
	if epoch, known := w.registry.Epoch(s.at); !known || epoch != 4 {
		t.Errorf("after a commit the epoch is %d (%t), want 4", epoch, known)
	}
}

// hostMany stores n conversations of a user. They changed one second after another, the first of
// them after the time at, and are returned in this order.
func (s *scene) hostMany(u vocab.Username, at time.Time, n int) (ids []uuid.UUID) {
	s.Helper()
	for range n {
		ids = append(ids, uuid.New())
	}
	_, err := dbtest.SQL(s, s.store, u).Exec(`
		WITH c AS (INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at)
			SELECT id, 'https://us.example/conversations/' || id, 'encrypted', 'https://us.example/users/alice', 'urn:uuid:' || id, now() FROM unnest($1::uuid[]) AS id RETURNING id)
		INSERT INTO mls_conversations (id, status, group_info, updated_at) SELECT id, 'active', '', $2::timestamptz + n * interval '1 second'
			FROM c JOIN unnest($1::uuid[]) WITH ORDINALITY AS all_of (id, n) USING (id)`, ids, at)
	if err != nil {
		s.Fatal(err)
	}
	return ids
}

// Of 1,201 conversations of two users the 1,000 that changed last are known, and closed ones are
// not.
func TestARestartKnowsAThousandConversations(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	bob, year := dbtest.User(t, s.store, "bob"), time.Now().AddDate(-1, 0, 0)
	ofAlice := s.hostMany(s.user, year, 600)
	ofBob := s.hostMany(bob, year.Add(time.Hour), 601)
	if _, err := dbtest.SQL(t, s.store, bob).Exec(`UPDATE mls_conversations SET status = 'closed' WHERE id = $1`, ofBob[600]); err != nil {
		t.Fatal(err)
	}
	w := s.restarted()
	w.warmUp(t.Context())
	w.wantKnown(s.user, []uuid.UUID{s.at.ID}, 1)
	w.wantKnown(bob, ofBob, 600)
	w.wantKnown(s.user, ofAlice[:201], 0)
	w.wantKnown(s.user, ofAlice[201:], 399)
	if n := w.registry.DropIdle(); n != 0 {
		t.Errorf("%d conversations have work that nobody gave them", n)
	}
}

// A database that is gone, and one in which a query waits for a lock, are left out. The first of
// them is named in the log.
func TestABrokenDatabaseHindersNoWarmUp(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	bob, carol, dave := dbtest.User(t, s.store, "bob"), dbtest.User(t, s.store, "carol"), dbtest.User(t, s.store, "dave")
	of := dbtest.Hosted(t, s.store, dave, 3)
	if err := s.store.DropUserDatabase(t.Context(), bob); err != nil {
		t.Fatal(err)
	}
	lockConversations(t, s, carol)
	w := s.restarted()
	w.warmUp(t.Context())
	w.wantKnown(s.user, []uuid.UUID{s.at.ID}, 1)
	w.wantKnown(dave, []uuid.UUID{of.ID}, 1)
	if n := strings.Count(w.log.String(), "level=WARN"); n != 1 || !strings.Contains(w.log.String(), "user=bob") {
		t.Errorf("the log has %d warnings, want one of bob:\n%s", n, &w.log)
	}
	if w.looks.n[bob] != 1 || w.looks.n[carol] != 1 {
		t.Errorf("the databases were asked %v, want each once", w.looks.n)
	}
}

// lockConversations makes every query for a user's conversations wait until the test ends.
func lockConversations(t *testing.T, s *scene, u vocab.Username) {
	t.Helper()
	dbtest.Hold(t, dbtest.SQL(t, s.store, u), `LOCK TABLE mls_conversations IN ACCESS EXCLUSIVE MODE`)
}

// The warm-up ends with the engine, also while a database does not answer, and says nothing of it.
func TestAWarmUpEndsWithTheEngine(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	bob := dbtest.User(t, s.store, "bob")
	lockConversations(t, s, bob)
	w := s.restarted()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	var warming sync.WaitGroup
	warming.Go(func() {
		defer close(done)
		w.warmUp(ctx)
	})
	dbtest.AwaitLock(t, s.store, bob, done)
	stop()
	warming.Wait()
	w.wantKnown(s.user, []uuid.UUID{s.at.ID}, 0)
	if w.log.Len() > 0 {
		t.Errorf("the log has %s", &w.log)
	}
}

// A warm-up that ends after the registry was closed makes nothing live.
func TestAClosedRegistryIsNotWarmedUp(t *testing.T) {
	t.Parallel()
	w := newScene(t).restarted()
	if err := w.registry.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.warmUp(t.Context())
	w.wantKnown(w.user, []uuid.UUID{w.at.ID}, 0)
}
