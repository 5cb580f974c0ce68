package feed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	bob = vocab.ID("https://peer.example/users/bob")

	// recentNotes is the number of the newest notes that writers edit and readers compare.
	recentNotes = 4 * pageSize
)

// history is a feed of notes by bob with what writers were told is in it: the newest note, how
// often each note was edited, and how often bob was renamed.
type history struct {
	*fixture
	mu     sync.Mutex
	newest int
	edits  map[int]int
	names  int
	writes atomic.Int64
}

// known is a copy of a history, made before a read begins.
type known struct {
	newest, names int
	edits         map[int]int // of the newest notes
}

func (h *history) remember() known {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := known{h.newest, h.names, make(map[int]int, recentNotes)}
	for n := h.newest; n > h.newest-recentNotes; n-- {
		k.edits[n] = h.edits[n]
	}
	return k
}

// acknowledge notes a write that is over.
func (h *history) acknowledge(note func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	note()
	h.writes.Add(1)
}

func noteOf(n int) vocab.ID { return vocab.ID(fmt.Sprint("https://peer.example/notes/", n)) }

func noteJSON(n, edit int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"id":%q,"type":"Note","attributedTo":%q,"to":%q,"content":"edit %d"}`, noteOf(n), bob, vocab.Public, edit))
}

// add adds a note to the feed.
func (h *history) add(ctx context.Context) error {
	n := h.newest + 1 // no other writer adds notes
	at := start.Add(time.Duration(n) * time.Millisecond)
	a := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: noteOf(n) + "/create", Direction: user.Inbound, Type: "Create", Actor: bob, Object: noteOf(n), Published: at}
	a.Raw = vocab.Doc{"id": string(a.URI), "type": "Create", "actor": string(bob), "object": string(noteOf(n)), "to": []any{string(vocab.Public)}}.JSON()
	err := h.store.Write(ctx, h.alice, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: noteOf(n), Published: start, Raw: noteJSON(n, 0)}); err != nil {
			return err
		}
		if err := tx.Activities.Add(ctx, a); err != nil {
			return err
		}
		return tx.Feed.Add(ctx, user.FeedEntry{ID: a.ID, Activity: a.URI, Actor: bob, Published: at})
	})
	if err == nil {
		h.acknowledge(func() { h.newest = n })
	}
	return err
}

// edit edits one of the newest notes. rename gives bob another name. One writer calls both.
func (h *history) edit(ctx context.Context) error {
	k := h.remember()
	n := max(1, k.newest-rand.IntN(recentNotes/2))
	err := h.store.Write(ctx, h.alice, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Replace(ctx, noteOf(n), noteJSON(n, k.edits[n]+1), nil, start.Add(time.Hour))
		return err
	})
	if err == nil {
		h.acknowledge(func() { h.edits[n]++ })
	}
	return err
}

func (h *history) rename(ctx context.Context) error {
	a, err := vocab.ParseActor([]byte(fmt.Sprintf(`{"id":%q,"type":"Person","preferredUsername":"bob","inbox":"%s/inbox","name":"name %d"}`, bob, bob, h.names+1)))
	if err == nil {
		err = h.store.Write(ctx, h.alice, func(ctx context.Context, tx *user.Tx) error { return tx.Actors.Save(ctx, a, start) })
	}
	if err == nil {
		h.acknowledge(func() { h.names++ })
	}
	return err
}

var shownEdit = regexp.MustCompile(`edit (\d+)`)

// check returns why a page is stale for a reader who knew k before the read, or "" if it is not.
// The page begins with the note in the parameter first, or with the newest one if first is 0.
func check(p feed.Page, k known, first int) string {
	if len(p.Items) == 0 {
		return "the page is empty"
	}
	at := numberOf(p.Items[0])
	if first == 0 && at < k.newest || first > 0 && at != first {
		return fmt.Sprintf("the page begins with note %d, want %d or, at the beginning of the feed, a newer one than %d", at, first, k.newest)
	}
	if name, _ := strconv.Atoi(strings.TrimPrefix(p.Actors[bob].Name, "name ")); name < k.names {
		return fmt.Sprintf("bob is called %q, want name %d", p.Actors[bob].Name, k.names)
	}
	for n, i := range p.Items {
		if numberOf(i) != at-n {
			return fmt.Sprintf("note %d stands where note %d should", numberOf(i), at-n)
		}
		shown := shownEdit.FindStringSubmatch(string(i.Object))
		if shown == nil {
			return fmt.Sprintf("note %d is shown as %s", at-n, i.Object)
		}
		if edit, _ := strconv.Atoi(shown[1]); edit < k.edits[at-n] {
			return fmt.Sprintf("of note %d edit %d is shown, want %d", at-n, edit, k.edits[at-n])
		}
	}
	return ""
}

func numberOf(i feed.Item) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(string(i.ActivityURI), string(noteOf(0))[:len(noteOf(0))-1]), "/create")) // no error: the test made the address
	return n
}

// Every reader of a feed sees all writes that were acknowledged before the read began, of entries,
// of documents and of actors, while Redis loses any key at any time. The feed is in a PostgreSQL
// database, and writers drop what is cached as the engine does.
func TestNoReadOfAFeedIsStaleWhateverRedisLoses(t *testing.T) {
	t.Parallel()
	want := int64(4_000) // reads; each hundred of them there is one write, and each twenty a key is lost
	if n, err := strconv.ParseInt(os.Getenv("LIGHTWEB_CACHE_READS"), 10, 64); err == nil {
		want = n
	}
	h := &history{fixture: newFixture(t), edits: map[int]int{}}
	for range 3 * pageSize {
		if err := h.add(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	added := h.writes.Load()
	var reads, stale, lost atomic.Int64
	adds, changes, losses := make(chan struct{}, 8), make(chan struct{}, 8), make(chan struct{}, 8)
	var readers, others sync.WaitGroup
	for range 8 {
		readers.Go(func() { h.readOn(want, &reads, &stale, adds, changes, losses) })
	}
	others.Go(func() {
		for range adds {
			h.must(h.add)
		}
	})
	others.Go(func() {
		for range changes {
			if h.must(h.edit); rand.IntN(4) == 0 {
				h.must(h.rename)
			}
		}
	})
	others.Go(func() {
		for range losses {
			h.server.Do("DEL", h.server.Do("RANDOMKEY"))
			lost.Add(1)
		}
	})
	readers.Wait()
	close(adds)
	close(changes)
	close(losses)
	others.Wait()
	hits := h.server.count(t, "lightweb_cache_reads_total", map[string]string{"layer": "documents", "result": "hit"})
	t.Logf("%d reads, %d of them from the cache, %d acknowledged writes, %d lost keys, %d stale reads", reads.Load(), hits, h.writes.Load()-added, lost.Load(), stale.Load())
	if stale.Load() > 0 || h.writes.Load()-added < want/100 || int64(hits) < want/10 {
		t.Error("there are stale reads, or too few writes or reads from the cache")
	}
}

// readOn reads the feed until all readers together have read often enough. It asks for writes and
// losses on the way.
func (h *history) readOn(want int64, reads, stale *atomic.Int64, adds, changes, losses chan<- struct{}) {
	r := feed.New(h.cached, h.gate, h.fixture.reads, local{})
	next, first := "", 0
	for n := reads.Add(1); n <= want; n = reads.Add(1) {
		switch {
		case n%200 == 0:
			adds <- struct{}{}
		case n%100 == 0:
			changes <- struct{}{}
		}
		if n%20 == 0 {
			losses <- struct{}{}
		}
		k := h.remember()
		p, err := r.Page(h.Context(), h.alice, feed.Main, next, pageSize)
		if err != nil {
			h.Error(err)
			return
		}
		if why := check(p, k, first); why != "" {
			if stale.Add(1) <= 10 {
				h.Errorf("a stale read: %s", why)
			}
		}
		if next, first = "", 0; n%3 == 0 && p.Next != "" {
			next, first = p.Next, numberOf(p.Items[len(p.Items)-1])-1
		}
	}
}

// must fails the test if a write fails.
func (h *history) must(write func(context.Context) error) {
	if err := write(h.Context()); err != nil {
		h.Error(err)
	}
}
