package feed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// pageSize is small, so that a test reads more than one page.
const pageSize = 6

// newCached returns a cache of the feeds in d, and the Redis server of the cache.
func newCached(t *testing.T, c *db.Cluster, d *feed.Database) (*feed.Cached, *server) {
	t.Helper()
	s := &server{Server: redistest.Start(t), metrics: prometheus.NewRegistry()}
	return newCachedAt(t, c, d, s, s.URL()), s
}

// newCachedAt returns a cache of the feeds in d, which reaches the Redis server s at a URL.
func newCachedAt(t *testing.T, c *db.Cluster, d *feed.Database, s *server, url string) *feed.Cached {
	t.Helper()
	k, err := keyspace.Open(keyspace.Config{CacheURL: url, Log: slog.New(slog.DiscardHandler), Metrics: s.metrics})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	cached := feed.NewCached(d, cache.New(cache.Config{Store: k.Cache, PageSize: pageSize, Metrics: s.metrics, Now: time.Now}), time.Hour, slog.New(slog.NewTextHandler(t.Output(), nil)))
	c.Subscribe(user.Subscriber{Name: "cache", Committed: cached.Committed})
	return cached
}

// server is a Redis server, with a count of the calls to it.
type server struct {
	*redistest.Server
	metrics *prometheus.Registry
}

// count returns the sum of all counters that have a name and these labels.
func (s *server) count(t *testing.T, name string, labels map[string]string) (sum int) {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			matches := f.GetName() == name
			for _, l := range m.GetLabel() {
				if want, there := labels[l.GetName()]; there && want != l.GetValue() {
					matches = false
				}
			}
			if matches {
				sum += int(m.GetCounter().GetValue())
			}
		}
	}
	return sum
}

// alike is a Store. It reads every page from the database, and then three times through the cache.
// It fails the test if the results differ.
type alike struct {
	*feed.Database
	cached *feed.Cached
	t      *testing.T
}

func (a alike) Page(ctx context.Context, u vocab.Username, name string, after *user.Place, limit int) (feed.Stored, error) {
	cursor := ""
	if after != nil {
		cursor = feed.EncodeCursor(u.String()+"/feed/"+name, *after)
	}
	page := func(s feed.Store) string {
		p, err := feed.New(s, gate{}, &profiles{}, local{}).Page(ctx, u, name, cursor, limit)
		if err != nil {
			return err.Error()
		}
		return string(p.JSON())
	}
	_ = page(a.Database) // the first read makes the shown forms of objects that have none
	_ = page(a.Database) // the second read stores the forms
	want := page(a.Database)
	for n := range 3 {
		if d := cmp.Diff(want, page(a.cached)); d != "" {
			a.t.Errorf("page of %s through the cache, read %d (-database +cache):\n%s", name, n+1, d)
		}
	}
	return a.Database.Page(ctx, u, name, after, limit)
}

// posts adds n posts to the feed. It returns the id of the first post.
func (f *fixture) posts(n int) vocab.ID {
	f.Helper()
	for i := range n {
		f.receive(fmt.Sprint("create", i), "Create", f.note(i), "https://www.w3.org/ns/activitystreams#Public", start.Add(time.Duration(i)*time.Second))
	}
	return "https://peer.example/notes/0"
}

func (f *fixture) note(i int) vocab.ID {
	f.Helper()
	id := vocab.ID(fmt.Sprint("https://peer.example/notes/", i))
	f.object(id, `{"id":"`+string(id)+`","type":"Note","attributedTo":"https://peer.example/users/bob","content":"first"}`)
	return id
}

// read reads a page repeatedly until the page comes from the cache. It fails the test if the page
// never does.
func (f *fixture) read(cursor string, limit int) feed.Page {
	f.Helper()
	c, s := f.cached, f.server
	for range 6 {
		before := s.count(f.T, "lightweb_cache_reads_total", map[string]string{"layer": "documents", "result": "hit"})
		p, err := feed.New(c, f.gate, f.reads, local{}).Page(f.Context(), f.alice, feed.Main, cursor, limit)
		if err != nil {
			f.Fatal(err)
		}
		if s.count(f.T, "lightweb_cache_reads_total", map[string]string{"layer": "documents", "result": "hit"}) > before {
			return p
		}
	}
	f.Fatalf("the page of %d behind the cursor %q does not come from the cache", limit, cursor)
	return feed.Page{}
}

// After a change, the next reader of a page sees the change.
func TestAReaderSeesEveryAcknowledgedChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.cached
	note := f.posts(4)
	actor := func(name string) *vocab.Actor {
		const id = "https://peer.example/users/bob"
		a, err := vocab.ParseActor([]byte(`{"id":"` + id + `","type":"Person","preferredUsername":"bob","inbox":"` + id + `/inbox","name":"` + name + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	now := start.Add(time.Hour)
	for _, tt := range []struct {
		name string
		work func(context.Context, *user.Tx) error
	}{
		{"an object is replaced", func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Replace(ctx, note, json.RawMessage(`{"id":"`+string(note)+`","type":"Note","attributedTo":"https://peer.example/users/bob","content":"second"}`), nil, now)
			return err
		}},
		{"and again in the same second", func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Replace(ctx, note, json.RawMessage(`{"id":"`+string(note)+`","type":"Note","attributedTo":"https://peer.example/users/bob","content":"third"}`), nil, now)
			return err
		}},
		{"its counts change", func(ctx context.Context, tx *user.Tx) error {
			return tx.Objects.Recount(ctx, note, json.RawMessage(`{"id":"`+string(note)+`","type":"Question","attributedTo":"https://peer.example/users/bob","votersCount":7}`))
		}},
		{"an actor is known", func(ctx context.Context, tx *user.Tx) error { return tx.Actors.Save(ctx, actor("Bob"), start) }},
		{"an actor has another name", func(ctx context.Context, tx *user.Tx) error { return tx.Actors.Save(ctx, actor("Robert"), now) }},
		{"an activity goes", func(ctx context.Context, tx *user.Tx) error {
			return tx.Activities.Remove(ctx, user.Owned{ID: "https://peer.example/create1", Actor: "https://peer.example/users/bob"})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := string(f.read("", 10).JSON())
			f.write(tt.work)
			p, err := feed.New(c, f.gate, f.reads, local{}).Page(t.Context(), f.alice, feed.Main, "", 10)
			if err != nil || string(p.JSON()) == before {
				t.Errorf("the next reader sees what was before: %s, %v", p.JSON(), err)
			}
			if d := cmp.Diff(string(p.JSON()), string(f.read("", 10).JSON())); d != "" {
				t.Error("from the cache (-database +cache):\n", d)
			}
		})
	}
	f.reads.languages = []string{"de"}
	p, err := feed.New(c, f.gate, f.reads, local{}).Page(t.Context(), f.alice, feed.Main, "", 10)
	if err != nil || len(p.Items) != 3 {
		t.Errorf("after the languages changed: %d items, %v", len(p.Items), err)
	}
}

// Two actors of one server may use the same id for their activities, and an activity may have the
// id of its object. The feed does not confuse them.
func TestThingsWithOneIDAreNotMistaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const id = "https://peer.example/both"
	f.object(id, `{"id":"`+id+`","type":"Note","content":"the object"}`)
	f.write(func(ctx context.Context, tx *user.Tx) error {
		for n, actor := range []vocab.ID{"https://peer.example/users/bob", "https://peer.example/users/eve"} {
			a := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: id, Direction: user.Inbound, Type: "Create", Actor: actor, Object: id, Published: start.Add(time.Duration(n)),
				Raw: json.RawMessage(`{"id":"` + id + `","type":"Create","actor":"` + string(actor) + `","object":"` + id + `"}`)}
			if err := tx.Activities.Add(ctx, a); err != nil {
				return err
			}
			if err := tx.Feed.Add(ctx, user.FeedEntry{ID: a.ID, Activity: a.URI, Actor: actor, Published: a.Published}); err != nil {
				return err
			}
		}
		return nil
	})
	if _, err := f.Page(t.Context(), f.alice, feed.Main, "", 10); err != nil { // this also compares the cache with the database
		t.Error(err)
	}
	for range 4 {
		p, err := feed.New(f.cached, f.gate, f.reads, local{}).Page(t.Context(), f.alice, feed.Main, "", 10)
		if err != nil || len(p.Items) != 2 || p.Items[0].ActorURI == p.Items[1].ActorURI {
			t.Fatalf("%s, %v", p.JSON(), err)
		}
	}
}

// While Redis does not answer, the feed is read from the database. When Redis answers again, it
// has its old content. Readers still see a post that arrived meanwhile.
func TestNothingStaleIsReadAfterRedisWasAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, s := f.cached, f.server
	f.posts(3)
	f.read("", 10)
	s.Pause()
	f.receive("meanwhile", "Create", "", "x", start.Add(time.Hour))
	p, err := feed.New(c, f.gate, f.reads, local{}).Page(t.Context(), f.alice, feed.Main, "", 10)
	s.Resume()
	if err != nil || len(p.Items) != 4 {
		t.Fatalf("while Redis is away: %d items, %v; want 4", len(p.Items), err)
	}
	redistest.Eventually(t, "Redis answers", func() bool {
		p, err := feed.New(c, f.gate, f.reads, local{}).Page(t.Context(), f.alice, feed.Main, "", 10)
		if err != nil || len(p.Items) != 4 {
			t.Fatalf("after Redis was away: %d items, %v; want 4", len(p.Items), err)
		}
		return s.count(t, "lightweb_cache_reads_total", map[string]string{"layer": "documents", "result": "hit"}) > 1
	})
}

// After Warm, even the first read of a page comes from the cache.
func TestAWarmFeedIsReadFromTheCacheAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.posts(pageSize + 3)
	if _, err := f.Reader.Page(t.Context(), f.alice, feed.Main, "", feed.MaxLimit); err != nil { // makes the forms that readers are shown
		t.Fatal(err)
	}
	pages, entries, err := f.cached.Warm(t.Context(), f.alice, feed.Main, 2)
	if pages != 2 || entries != pageSize+3 || err != nil {
		t.Errorf("Warm made %d pages of %d entries, %v", pages, entries, err)
	}
	hits := f.server.count(t, "lightweb_cache_reads_total", map[string]string{"layer": "documents", "result": "hit"})
	first, err := feed.New(f.cached, f.gate, f.reads, local{}).Page(t.Context(), f.alice, feed.Main, "", pageSize)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feed.New(f.cached, f.gate, f.reads, local{}).Page(t.Context(), f.alice, feed.Main, first.Next, pageSize); err != nil {
		t.Fatal(err)
	}
	if now := f.server.count(t, "lightweb_cache_reads_total", map[string]string{"layer": "documents", "result": "hit"}); now != hits+2 {
		t.Errorf("%d of 2 pages come from the cache", now-hits)
	}
}

// Redis does not go on to store the words of a post that was edited or deleted. Their deletion is
// part of the call that a write makes anyway.
func TestRedisForgetsTheWordsOfAChangedPost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	note := f.posts(2)
	now := start.Add(time.Hour)
	for _, tt := range []struct {
		name, words string
		work        func(context.Context, *user.Tx) error
	}{
		{"an edit", `"first"`, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Replace(ctx, note, json.RawMessage(`{"id":"`+string(note)+`","type":"Note","attributedTo":"https://peer.example/users/bob","content":"second"}`), nil, now)
			return err
		}},
		{"a deletion", `"second"`, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Bury(ctx, user.Grave{URI: note, Author: "https://peer.example/users/bob", Tombstone: json.RawMessage(`{"id":"` + string(note) + `","type":"Tombstone"}`)}, now)
			return err
		}},
	} {
		f.read("", 10)
		if stored := f.server.Do("GET", "alice:obj:"+string(note)); !strings.Contains(stored, tt.words) {
			t.Fatalf("before %s the document of the post is %q, want %s", tt.name, stored, tt.words)
		}
		calls := f.server.count(t, "lightweb_redis_calls_total", nil)
		f.write(tt.work)
		if calls = f.server.count(t, "lightweb_redis_calls_total", nil) - calls; calls != 1 {
			t.Errorf("%s made %d calls to Redis, want 1", tt.name, calls)
		}
		if stored := f.server.Do("EXISTS", "alice:obj:"+string(note)); stored != "0" {
			t.Errorf("after %s Redis has the post's document: %s", tt.name, f.server.Do("GET", "alice:obj:"+string(note)))
		}
	}
}
