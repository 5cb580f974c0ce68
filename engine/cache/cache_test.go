package cache_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, url string) *keyspace.Store {
	t.Helper()
	k, err := keyspace.Open(keyspace.Config{CacheURL: url, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k.Cache
}

func user(t *testing.T, name string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(name)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// record is the store behind a cache. It has entries and counts its commits. Each entry has a
// document that changes with every commit.
type record struct {
	mu      sync.Mutex
	entries int
	commits int
}

func (r *record) write(newEntry bool) (commits int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits++
	if newEntry {
		r.entries++
	}
	return r.commits
}

// lines returns up to n lines from an offset. The newest entry comes first. Each line ends with
// the number of the commit at which it was read.
func (r *record) lines(offset, n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for e := r.entries - offset; e > 0 && len(lines) < n; e-- {
		lines = append(lines, fmt.Sprintf("e%d %d", e, r.commits))
	}
	return lines
}

// commitOf returns the number of the commit at which a line was read.
func commitOf(t *testing.T, line string) int {
	_, text, _ := strings.Cut(line, " ")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Errorf("line %q", line)
	}
	return n
}

// read reads the first lines of a list, as a store of the engine does. It returns the commit that
// the lines show, and whether the lines came from the cache.
func read(t *testing.T, c *cache.Cache, u vocab.Username, r *record) (commit int, hit bool) {
	part := c.Read(t.Context(), cache.Query{User: u, List: "main", Beside: "cards", Limit: 5})
	lines := part.Lines
	if part.IsHeld {
		revision := lines[0]
		documents := []cache.Document{{Key: "obj:1", Revision: revision}}
		if c.Documents(t.Context(), u, documents) {
			if documents[0].Body != revision {
				t.Errorf("a document of revision %q says %q", revision, documents[0].Body)
			}
			return commitOf(t, lines[0]), true
		}
	}
	lines = r.lines(0, 5)
	if c.IsFillable(part) {
		_ = c.Fill(t.Context(), part, func(_ context.Context, n int) ([]string, error) { return r.lines(0, n), nil }) // fails if Redis does not answer
	}
	_ = c.Keep(t.Context(), u, []cache.Document{{Key: "obj:1", Revision: lines[0], Body: lines[0]}}) // fails if Redis does not answer
	return commitOf(t, lines[0]), false
}

// Every reader sees all writes that were acknowledged before the read began. This holds even if
// Redis loses one key or all keys at any time, or does not answer for a while.
func TestNoReadIsStaleWhateverRedisLoses(t *testing.T) {
	want := int64(5_000) // reads from the cache; after each hundred of them there is one write
	if n, err := strconv.ParseInt(os.Getenv("LIGHTWEB_CACHE_READS"), 10, 64); err == nil {
		want = n
	}
	for _, lose := range []struct {
		name  string
		times int64
		how   func(s *redistest.Server)
	}{
		{"any key", 200, func(s *redistest.Server) { s.Do("DEL", s.Do("RANDOMKEY")) }},
		{"everything", 50, func(s *redistest.Server) { s.Do("FLUSHALL") }},
		{"its attention", 8, func(s *redistest.Server) {
			s.Do("CLIENT", "PAUSE", strconv.Itoa(1+rand.IntN(400)))
			s.Do("PING") // waits until the pause is over
		}},
	} {
		t.Run(lose.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			c := cache.New(cache.Config{Store: open(t, s.URL()), PageSize: 50, Now: time.Now})
			u, r := user(t, "alice"), &record{entries: 60}
			var hits, reads, acknowledged, stale atomic.Int64
			var writing sync.Mutex
			write := func() {
				writing.Lock()
				defer writing.Unlock()
				commit := r.write(true)
				_ = c.Drop(t.Context(), u, []string{"main"}, nil) // fails if Redis does not answer
				acknowledged.Store(int64(commit))
			}
			var readers, other sync.WaitGroup
			other.Go(func() {
				for n := int64(0); n < want; n += want / lose.times {
					for hits.Load() < n {
						runtime.Gosched()
					}
					lose.how(s)
				}
			})
			for range 8 {
				readers.Go(func() {
					for hits.Load() < want {
						least := acknowledged.Load()
						commit, hit := read(t, c, u, r)
						reads.Add(1)
						if int64(commit) < least {
							stale.Add(1)
						}
						if hit && hits.Add(1)%100 == 0 {
							write()
						}
					}
				})
			}
			readers.Wait()
			other.Wait()
			t.Logf("%d reads, %d of them from the cache, %d acknowledged writes", reads.Load(), hits.Load(), acknowledged.Load())
			if stale.Load() > 0 {
				t.Errorf("%d stale reads", stale.Load())
			}
		})
	}
}

// A new process ignores the entries that the cache held before the process started, because nobody
// told the process about writes before its start.
func TestAProcessBelievesNothingFromBeforeItsStart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	u, r := user(t, "alice"), &record{entries: 3}
	warm := func(c *cache.Cache) {
		t.Helper()
		for range 4 {
			if _, hit := read(t, c, u, r); hit {
				return
			}
		}
		t.Fatal("the page does not come from the cache")
	}
	store := open(t, s.URL())
	warm(cache.New(cache.Config{Store: store, PageSize: 50, Now: time.Now}))
	r.write(true)
	again := cache.New(cache.Config{Store: store, PageSize: 50, Now: time.Now})
	if commit, hit := read(t, again, u, r); hit || commit != 1 {
		t.Errorf("commit %d, from the cache: %t; want 1 from the database", commit, hit)
	}
	warm(again)
}

// A failover of Redis brings back a token that is older than a write. The cache ignores this
// token.
func TestATokenFromBeforeAWriteIsNotBelievedAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	u, r := user(t, "alice"), &record{entries: 3}
	c := cache.New(cache.Config{Store: open(t, s.URL()), PageSize: 50, Now: time.Now})
	for range 3 {
		read(t, c, u, r)
	}
	token := s.Do("GET", "alice:feed:main:gen")
	r.write(true)
	if err := c.Drop(t.Context(), u, []string{"main"}, nil); err != nil {
		t.Fatal(err)
	}
	s.Do("SET", "alice:feed:main:gen", token)
	if commit, hit := read(t, c, u, r); hit || commit != 1 {
		t.Errorf("commit %d, from the cache: %t; want 1 from the database", commit, hit)
	}
}

// Each page of a list leads to the next page, up to the end of the list.
func TestAListIsReadToItsEndThroughItsPages(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	u, r := user(t, "alice"), &record{entries: 23}
	c := cache.New(cache.Config{Store: open(t, s.URL()), PageSize: 10, Now: time.Now})
	for round := range 4 {
		var got []string
		held := 0
		for more, after := true, ""; more; {
			q := cache.Query{User: u, List: "main", Beside: "cards", After: after, Offset: len(got), Limit: 5}
			part := c.Read(t.Context(), q)
			lines := part.Lines
			more = part.More
			if part.IsHeld {
				held++
			} else {
				lines = r.lines(q.Offset, q.Limit)
				more = len(r.lines(q.Offset, q.Limit+1)) > q.Limit
				if c.IsFillable(part) {
					if err := c.Fill(t.Context(), part, func(_ context.Context, n int) ([]string, error) { return r.lines(q.Offset, n), nil }); err != nil {
						t.Fatal(err)
					}
				}
			}
			got = append(got, lines...)
			after, _, _ = strings.Cut(lines[len(lines)-1], " ")
		}
		if len(got) != 23 || got[0] != "e23 0" || got[22] != "e1 0" {
			t.Fatalf("round %d: %q", round, got)
		}
		if round == 3 && held != 5 {
			t.Errorf("%d of 5 parts come from the cache", held)
		}
	}
}

// A client can make up a cursor with any offset. The cache stores pages only up to a maximum
// offset.
func TestFarPagesOfAListAreNotMade(t *testing.T) {
	t.Parallel()
	u := user(t, "alice")
	c := cache.New(cache.Config{Store: open(t, redistest.Start(t).URL()), PageSize: 10, Now: time.Now})
	for page, want := range map[int]bool{1: true, 19: true, 20: false, 33_553: false} {
		q := cache.Query{User: u, List: "main", Beside: "cards", After: "e1", Offset: 10 * page, Limit: 5}
		c.Read(t.Context(), q) // the first read makes the cache's tokens
		if is := c.IsFillable(c.Read(t.Context(), q)); is != want {
			t.Errorf("page %d can be made: %v, want %v", page, is, want)
		}
	}
}

// While a page is made, nobody else makes it. Afterwards it can be made again.
func TestAPageIsMadeByOneReaderAtATime(t *testing.T) {
	t.Parallel()
	u := user(t, "alice")
	c := cache.New(cache.Config{Store: open(t, redistest.Start(t).URL()), PageSize: 10, Now: time.Now})
	q := cache.Query{User: u, List: "main", Beside: "cards", Limit: 5}
	c.Read(t.Context(), q) // makes the tokens
	part := c.Read(t.Context(), q)
	lists := 0
	fill := func(meanwhile func()) {
		t.Helper()
		if err := c.Fill(t.Context(), part, func(context.Context, int) ([]string, error) {
			lists++
			meanwhile()
			return []string{"e1 0"}, nil
		}); err != nil {
			t.Error(err)
		}
	}
	fill(func() { fill(func() {}) })
	if lists != 1 {
		t.Errorf("two readers at once read the list %d times, want once", lists)
	}
	if fill(func() {}); lists != 2 {
		t.Errorf("a later reader read the list %d times more, want once", lists-1)
	}
}
