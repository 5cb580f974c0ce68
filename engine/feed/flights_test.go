package feed_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A read is made once for all callers that wait for it. A caller that gives up, even the first
// one, ends it for nobody else.
func TestOneReadServesAllWhoWaitForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		share, end := feed.ShareReads(), make(chan struct{})
		var reads, good atomic.Int32
		read := func(ctx context.Context) (feed.Stored, error) {
			reads.Add(1)
			<-end
			return feed.Stored{Entries: make([]feed.Shown, 3)}, ctx.Err()
		}
		impatient, giveUp := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() {
			_, _, err := share(impatient, "page", read)
			gaveUp <- err
		}()
		synctest.Wait()
		var others sync.WaitGroup
		for range 20 {
			others.Go(func() {
				if s, isShared, err := share(t.Context(), "page", read); err == nil && isShared && len(s.Entries) == 3 {
					good.Add(1)
				}
			})
		}
		synctest.Wait()
		giveUp()
		if err := <-gaveUp; fault.KindOf(err) != fault.Busy || !errors.Is(err, context.Canceled) {
			t.Errorf("who gives up gets %v, want Busy", err)
		}
		close(end)
		others.Wait()
		if reads.Load() != 1 || good.Load() != 20 {
			t.Errorf("%d of 20 readers have the page, of %d reads; want 20, of 1", good.Load(), reads.Load())
		}
	})
}

// A panic in a read that others wait for does not end the process.
func TestAPanicInASharedReadIsAnError(t *testing.T) {
	t.Parallel()
	_, _, err := feed.ShareReads()(t.Context(), "page", func(context.Context) (feed.Stored, error) { panic("a bug") })
	if err == nil || !strings.Contains(err.Error(), "a bug") || fault.KindOf(err) != fault.Internal {
		t.Errorf("%v, want the panic as an internal error", err)
	}
}

// stop holds the first who comes to it once it is armed, until it is released.
type stop struct {
	armed atomic.Bool
	begun chan struct{} // closed when somebody is held
	end   chan struct{} // closed to release it
}

func newStop() *stop { return &stop{begun: make(chan struct{}), end: make(chan struct{})} }

func (s *stop) pass() {
	if s.armed.CompareAndSwap(true, false) {
		close(s.begun)
		<-s.end
	}
}

// holding is a Transactor. A read that has its result comes to the stop.
type holding struct {
	*db.Cluster
	*stop
	reads atomic.Int32
}

func (h *holding) Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	h.reads.Add(1)
	err := h.Cluster.Read(ctx, u, work)
	h.pass()
	return err
}

// renamed are local actors with a name that changes. A call that has its result comes
// to the stop.
type renamed struct {
	local
	*stop
	name atomic.Pointer[string]
}

func (r *renamed) Document(u vocab.Username) (vocab.Doc, error) {
	doc, err := r.local.Document(u)
	if name := r.name.Load(); name != nil {
		doc["name"] = *name
	}
	r.pass()
	return doc, err
}

// missing is a fixture whose reads of the database can be held. Its page is not cached.
type missing struct {
	*fixture
	held   *holding
	people *renamed
	cache  *feed.Cached
	redis  *server
}

func newMissing(t *testing.T) *missing {
	t.Helper()
	f, people := newFixture(t), &renamed{stop: newStop()}
	m := &missing{fixture: f, held: &holding{Cluster: f.store, stop: newStop()}, people: people}
	m.cache, m.redis = newCached(t, f.store, feed.NewDatabase(m.held, people, f.reads, func(string) bool { return false }))
	f.posts(3)
	f.write(func(ctx context.Context, tx *user.Tx) error {
		a := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: "https://example.org/users/carol/1", Direction: user.Inbound, Type: "Announce", Actor: "https://example.org/users/carol", Published: start,
			Raw: []byte(`{"id":"https://example.org/users/carol/1","type":"Announce","actor":"https://example.org/users/carol"}`)}
		if err := tx.Activities.Add(ctx, a); err != nil {
			return err
		}
		return tx.Feed.Add(ctx, user.FeedEntry{ID: a.ID, Activity: a.URI, Actor: a.Actor, Published: start})
	})
	for range 2 { // makes and stores the forms that readers are shown
		if _, err := m.cache.Database.Page(t.Context(), f.alice, feed.Main, nil, 10); err != nil {
			t.Fatal(err)
		}
	}
	m.held.reads.Store(0)
	return m
}

// page reads the page through the cache.
func (m *missing) page(ctx context.Context) (feed.Page, error) {
	return feed.New(m.cache, m.gate, m.reads, local{}).Page(ctx, m.alice, feed.Main, "", 10)
}

// hold starts a reader who is held at a stop. release lets it go on, and returns the number of
// items of its page.
func (m *missing) hold(ctx context.Context, at *stop) (release func() (items int, err error)) {
	m.Helper()
	at.armed.Store(true)
	type result struct {
		page feed.Page
		err  error
	}
	got := make(chan result, 1)
	go func() {
		p, err := m.page(ctx)
		got <- result{p, err}
	}()
	<-at.begun
	var once sync.Once
	release = func() (int, error) {
		once.Do(func() { close(at.end) })
		r := <-got
		return len(r.page.Items), r.err
	}
	m.Cleanup(func() { once.Do(func() { close(at.end) }) })
	return release
}

// Readers who miss a page at the same time cost one read of the database. Readers who give up, the
// first one among them, do not end it for the others.
func TestReadersWhoMissAPageTogetherCostOneRead(t *testing.T) {
	t.Parallel()
	m := newMissing(t)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	release := m.hold(ctx, m.held.stop)
	var impatient sync.WaitGroup
	for range 8 {
		impatient.Go(func() {
			if _, err := m.page(ctx); fault.KindOf(err) != fault.Busy {
				t.Errorf("who gives up gets %v, want Busy", err)
			}
		})
	}
	patient := make(chan int, 1)
	go func() {
		p, err := m.page(t.Context())
		if err != nil {
			t.Error(err)
		}
		patient <- len(p.Items)
	}()
	redistest.Eventually(t, "all readers look into the index", func() bool {
		return m.redis.count(t, "lightweb_cache_reads_total", map[string]string{"layer": "index"}) == 10
	})
	giveUp()
	impatient.Wait()
	if n := m.held.reads.Load(); n != 1 {
		t.Errorf("ten readers cost %d reads of the database, want 1", n)
	}
	if _, err := release(); fault.KindOf(err) != fault.Busy {
		t.Errorf("the first reader gave up, and gets %v, want Busy", err)
	}
	if n := <-patient; n != 4 {
		t.Errorf("the patient reader has %d items, want 4", n)
	}
}

// A reader who asks after a write was acknowledged does not get what another reader read from the
// database before the write, even while that reader still waits.
func TestAReaderNeverGetsAReadFromBeforeAnAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	post := func(m *missing) { m.receive("later", "Create", "", "x", start.Add(time.Hour)) }
	shows := func(p feed.Page, text string) bool { return strings.Contains(string(p.JSON()), text) }
	for _, tt := range []struct {
		name  string
		write func(m *missing)
		shown string // after the write
	}{
		{"a post", post, "https://peer.example/later"},
		{"a post by another process", func(m *missing) {
			other := anotherCache(m.T, m.redis)
			m.store.Subscribe(user.Subscriber{Name: "command", Committed: func(ctx context.Context, done user.Commit) {
				if err := feed.Drop(ctx, other, done); err != nil {
					m.Error(err)
				}
			}})
			post(m)
		}, "https://peer.example/later"},
		{"an actor's profile", func(m *missing) {
			a, err := vocab.ParseActor([]byte(`{"id":"https://peer.example/users/bob","type":"Person","preferredUsername":"bob","inbox":"https://peer.example/inbox","name":"Robert"}`))
			if err != nil {
				m.Fatal(err)
			}
			m.write(func(ctx context.Context, tx *user.Tx) error { return tx.Actors.Save(ctx, a, start) })
		}, "Robert"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMissing(t)
			release := m.hold(t.Context(), m.held.stop)
			tt.write(m)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a reader who waits for the read from before would wait forever
			defer cancel()
			if p, err := m.page(ctx); err != nil || !shows(p, tt.shown) {
				t.Errorf("after the write, %q is not shown: %s, %v", tt.shown, p.JSON(), err)
			}
			if n, err := release(); n != 4 || err != nil {
				t.Errorf("the reader from before has %d items, %v, want 4", n, err)
			}
			for range 3 {
				if p, err := m.page(t.Context()); err != nil || !shows(p, tt.shown) {
					t.Errorf("later, %q is not shown: %s, %v", tt.shown, p.JSON(), err)
				}
			}
		})
	}
}

// anotherCache returns a cache of another process in the same Redis.
func anotherCache(t *testing.T, s *server) *cache.Cache {
	t.Helper()
	k, err := keyspace.Open(keyspace.Config{CacheURL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return cache.New(cache.Config{Store: k.Cache, PageSize: pageSize, Now: time.Now})
}

// The profile of a local actor changes without a write to the reader's database. A reader who
// waits for another one's read is shown the new profile.
func TestASharedReadShowsLocalProfilesAsTheyAreNow(t *testing.T) {
	t.Parallel()
	m := newMissing(t)
	release := m.hold(t.Context(), m.people.stop)
	name := "Carol has another name"
	m.people.name.Store(&name)
	second := make(chan feed.Page, 1)
	go func() {
		p, err := m.page(t.Context())
		if err != nil {
			t.Error(err)
		}
		second <- p
	}()
	redistest.Eventually(t, "the second reader looks into the index", func() bool {
		return m.redis.count(t, "lightweb_cache_reads_total", map[string]string{"layer": "index"}) == 2
	})
	if _, err := release(); err != nil {
		t.Error(err)
	}
	if p := <-second; !strings.Contains(string(p.JSON()), name) {
		t.Errorf("%q is not shown: %s", name, p.JSON())
	}
}
