package search_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/search"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var start = time.Date(2026, 2, 21, 12, 0, 0, 0, time.UTC)

const (
	bob   vocab.ID = "https://peer.example/users/bob"
	carol vocab.ID = "https://other.example/users/carol"
	emil  vocab.ID = "https://other.example/users/emil"
)

type local struct{}

func (local) ID(u vocab.Username) vocab.ID {
	return vocab.ID("https://example.org/users/" + u.String())
}

func (local) IsLocal(vocab.ID) bool { return false }

func (local) Holder(vocab.ID) (u vocab.Username, rest string, ok bool) { return u, "", false }

func (local) Thread(object vocab.ID) vocab.ID { return object + "/context" }

func (l local) Owner(id vocab.ID) (vocab.Username, bool) {
	u, err := vocab.ParseUsername(strings.TrimPrefix(string(id), "https://example.org/users/"))
	return u, err == nil && l.ID(u) == id
}

func (l local) Document(u vocab.Username) (vocab.Doc, error) {
	return vocab.Doc{"id": string(l.ID(u)), "preferredUsername": u.String()}, nil
}

type profiles struct{}

func (profiles) User(vocab.Username) registry.User { return registry.User{} }

// gate refuses the actors that it contains.
type gate map[vocab.ID]bool

func (g gate) CheckActor(id vocab.ID) error {
	if g[id] {
		return fault.New(fault.Forbidden, "no")
	}
	return nil
}

// fixture is a server with the user alice, who searches.
type fixture struct {
	*testing.T
	store *db.Cluster
	alice vocab.Username
	gate  gate
	*search.Searcher
}

func newFixture(t *testing.T) *fixture {
	c, g := dbtest.New(t), gate{}
	threads := thread.New(thread.Deps{Store: c, Local: local{}, Profiles: profiles{}, Gate: g})
	return &fixture{t, c, dbtest.User(t, c, "alice"), g, search.New(search.Deps{Store: c, Shower: threads, Gate: g, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return start }})}
}

func (f *fixture) write(work func(context.Context, *user.Tx) error) {
	f.Helper()
	if err := f.store.Write(f.Context(), f.alice, work); err != nil {
		f.Fatal(err)
	}
}

// hold stores a note with the given words. It returns the note's id.
func (f *fixture) hold(name string, by vocab.ID, words string) vocab.ID {
	f.Helper()
	id := vocab.ID(string(by) + "/notes/" + name)
	f.write(func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: id, Published: start.Add(time.Duration(len(name)) * time.Second), Raw: noteOf(id, by, words), Author: by})
		return err
	})
	return id
}

func noteOf(id, by vocab.ID, words string) []byte {
	return vocab.Doc{"id": string(id), "type": "Note", "attributedTo": string(by), "content": "<p>" + words + "</p>", "to": []any{string(vocab.Public)}}.JSON()
}

// act stores an activity about an object.
func (f *fixture) act(kind string, by, object vocab.ID, request bool) {
	f.Helper()
	f.write(func(ctx context.Context, tx *user.Tx) error {
		a := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: vocab.ID(string(object) + "/" + kind + uuid.NewString()), Direction: user.Inbound, Type: kind, Actor: by, Object: object, Published: start, Raw: []byte(`{}`)}
		if err := tx.Activities.Add(ctx, a); err != nil || !request {
			return err
		}
		return tx.Requests.Add(ctx, user.Request{Activity: a.URI, Actor: by, Host: "peer.example"}, start)
	})
}

// finds checks which objects a search finds. It reads the results in pages of two.
func (f *fixture) finds(text string, assistant bool, want ...vocab.ID) {
	f.Helper()
	var got []vocab.ID
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := f.Search(f.Context(), search.Query{User: f.alice, Text: text, Cursor: cursor, Limit: 2, Assistant: assistant})
		if err != nil {
			f.Fatalf("%s: %v", text, err)
		}
		for _, o := range page.Items {
			got = append(got, o.URI)
		}
		if cursor = page.Next; !page.Complete {
			f.Errorf("%s: the index is not complete", text)
		}
	}
	if !slices.Equal(got, want) {
		f.Errorf("%s finds %v, want %v", text, got, want)
	}
}

func TestPostsAreFoundByTheirWords(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.hold("1", bob, "The quick brown Fox")
	b := f.hold("22", carol, "a brown quick dog, Äpfel")
	c := f.hold("333", bob, "foxes")
	f.finds("QUICK", false, b, a)
	f.finds("fox", false, c, a) // the last word of a search also matches longer words
	f.finds("fox quick", false, a)
	f.finds(`"quick brown"`, false, a)
	f.finds("brown -dog", false, a)
	f.finds("äPF", false, b)
	f.finds("cat", false)
	d := f.hold("4444", bob, "another quick one")
	f.finds("quick", false, d, b, a)
}

func TestASearchShowsWhatTheUserMaySee(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	shown := f.hold("1", bob, "hello")
	secret := f.hold("22", carol, "hello, stranger")
	f.act(vocab.Create, carol, secret, true)
	f.finds("hello", false, secret, shown)
	f.finds("hello", true, shown)
	f.gate[carol] = true
	f.finds("hello", false, shown)
	clear(f.gate)
	f.write(func(ctx context.Context, tx *user.Tx) error {
		return tx.Blocks.Add(ctx, user.Block{Actor: bob, Direction: user.Outbound, Activity: "https://example.org/b"}, start)
	})
	f.finds("hello", false, secret)
	f.finds("hello", true)
}

// A search finds the new words of an edited post. It finds neither the post's old words nor
// deleted posts.
func TestTheIndexFollowsEditsAndDeletions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	edited, deleted, passed := f.hold("1", bob, "before"), f.hold("22", bob, "doomed"), f.hold("333", bob, "earliest")
	f.finds("before", false, edited)
	f.finds("doomed", false, deleted)
	f.act(vocab.Update, bob, edited, false)
	f.write(func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Replace(ctx, edited, noteOf(edited, bob, "after"), nil, start.Add(time.Hour))
		return err
	})
	f.finds("after", false, edited)
	f.finds("before", false)
	f.write(func(ctx context.Context, tx *user.Tx) error { // a Group announces an edit like this: no activity of the edit is stored
		_, err := tx.Objects.Replace(ctx, passed, noteOf(passed, bob, "latest"), nil, start.Add(time.Hour))
		return err
	})
	f.finds("latest", false, passed)
	f.finds("earliest", false)
	f.act(vocab.Delete, bob, deleted, false)
	if _, err := dbtest.SQL(t, f.store, f.alice).ExecContext(t.Context(), `UPDATE objects SET deleted_at = now(), raw = '{"type":"Tombstone"}', readable = NULL WHERE uri = $1`, string(deleted)); err != nil {
		t.Fatal(err)
	}
	f.finds("doomed", false)
	var words int
	if err := dbtest.SQL(t, f.store, f.alice).QueryRowContext(t.Context(), `SELECT count(*) FROM search_index WHERE words @@ 'doomed'`).Scan(&words); err != nil || words != 0 {
		t.Errorf("the words of a deleted post are in %d rows, %v", words, err)
	}
}

// This server's clock was ahead and is set back. New posts are still found, although their ids are
// lower than the last id in the index.
func TestPostsAreFoundAfterAClockThatWasAheadIsSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ahead, searched time.Duration }{
		{ahead: 59 * time.Minute},
		{ahead: 30 * 24 * time.Hour},
		{ahead: 59 * time.Minute, searched: 24 * time.Hour},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			now := time.Now()
			begin := func() {
				deps := f.Searcher.Deps
				deps.Now = func() time.Time { return now }
				f.Searcher = search.New(deps)
			}
			begin()
			old := f.hold("before", bob, "before")
			f.finds("before", false, old)
			now = now.Add(-tt.ahead)
			begin() // a new process: within one process, ids only grow
			id := f.holdAt(now, "after")
			if tt.searched == 0 {
				f.finds("nothing", false)
			}
			now = now.Add(time.Minute)
			later := f.holdAt(now, "later")
			now = now.Add(tt.searched)
			f.finds("after", false, id)
			f.finds("later", false, later)
		})
	}
}

// holdAt stores a note with the given word, under an id that was made at the given time. It
// returns the note's URI.
func (f *fixture) holdAt(now time.Time, word string) vocab.ID {
	f.Helper()
	made, uri := uuid.Must(uuid.NewV7()), bob+"/notes/"+vocab.ID(word)
	binary.BigEndian.PutUint64(made[:], uint64(now.UnixMilli())<<16|0x7000)
	f.write(func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Add(ctx, user.Object{ID: made, URI: uri, Published: start, Raw: noteOf(uri, bob, word), Author: bob})
		return err
	})
	return uri
}

// A search finds archived posts, even if their account is deleted, and even after the index was
// pruned. If the user also holds the post itself, the search finds that version.
func TestArchivedPostsAreFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const old vocab.ID = "https://old.example/users/alice"
	archive := func(name, words string) vocab.ID {
		id := old + vocab.ID("/notes/"+name)
		doc := noteOf(id, old, words)
		f.write(func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Posts.AddArchived(ctx, []user.ArchivedPost{{Activity: id + "/activity", Object: id, Actor: old, Published: start.Add(-time.Hour * time.Duration(len(name))),
				ActivityDoc: []byte(`{}`), ObjectDoc: doc, Readable: []byte(`{}`), Words: search.WordsOf(doc, nil)}})
			return err
		})
		return id
	}
	held := f.hold("1", bob, "the same meadow")
	both := f.hold("22", old, "seen in the meadow, as it was corrected")
	copied := archive("22", "seen in the meadow")
	alone := archive("333", "a meadow of long ago")
	again := archive("333", "a meadow of long ago")
	if both != copied || alone != again {
		t.Fatalf("%s is no copy of %s", copied, both)
	}
	f.finds("meadow", false, both, held, alone)
	f.finds("meadow", true, both, held, alone)
	page, err := f.Search(t.Context(), search.Query{User: f.alice, Text: "meadow", Limit: 9})
	if err != nil || len(page.Items) != 3 || page.Items[0].Archived || !page.Items[2].Archived || page.Items[2].AuthorURI != old {
		t.Errorf("a search finds %+v, %v; want the last as a copy", page.Items, err)
	}
	if _, err := f.store.Prune(t.Context(), f.alice, user.Pruning{}); err != nil {
		t.Fatal(err)
	}
	f.finds("ago", false, alone)
}

// A large index is made in parts. The first answer says that the index is not complete. Run
// completes the index without further searches.
func TestALargeIndexIsCompletedAfterTheAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := dbtest.SQL(t, f.store, f.alice).ExecContext(t.Context(), `INSERT INTO objects (id, uri, published, raw)
		SELECT ('0192d3a4-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'https://peer.example/n/' || n, $1::timestamptz, jsonb_build_object('id', 'https://peer.example/n/' || n, 'type', 'Note', 'content', 'word' || n)
		FROM generate_series(1, 2600) n`, start); err != nil {
		t.Fatal(err)
	}
	page, err := f.Search(t.Context(), search.Query{User: f.alice, Text: "word2600", Limit: 2})
	if err != nil || page.Complete || len(page.Items) != 0 {
		t.Fatalf("the first search finds %d objects, complete %v, %v; want an incomplete index", len(page.Items), page.Complete, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Searcher.Run(ctx)
	}()
	own := dbtest.SQL(t, f.store, f.alice)
	for indexed := 0; indexed < 2600; {
		if err := own.QueryRowContext(t.Context(), `SELECT count(*) FROM search_index`).Scan(&indexed); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	<-ended
	if page, err = f.Search(t.Context(), search.Query{User: f.alice, Text: "word2600", Limit: 2}); err != nil || !page.Complete {
		t.Fatalf("complete %v, %v", page.Complete, err)
	}
	if len(page.Items) != 1 {
		t.Errorf("a complete index finds %d objects, want 1", len(page.Items))
	}
}

func TestPeopleAreFoundByHandleAndName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(func(ctx context.Context, tx *user.Tx) error {
		for id, name := range map[vocab.ID]string{bob: "Robert", carol: "Carol of Bobstown", emil: "Émile Żak"} {
			handle := string(id[strings.LastIndex(string(id), "/")+1:])
			a, err := vocab.ParseActor(vocab.Doc{"id": string(id), "type": "Person", "preferredUsername": handle, "name": name, "inbox": string(id) + "/inbox"}.JSON())
			if err != nil {
				return err
			}
			if err := tx.Actors.Save(ctx, a, start); err != nil {
				return err
			}
		}
		return nil
	})
	people := func(text string, assistant bool) (all []string) {
		t.Helper()
		page, err := f.Search(t.Context(), search.Query{User: f.alice, Text: text, Limit: 2, Assistant: assistant})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.People {
			all = append(all, fmt.Sprint(p.Name, " ", p.Handle))
		}
		return all
	}
	robert, town, emile := "Robert @bob@peer.example", "Carol of Bobstown @carol@other.example", "Émile Żak @emil@other.example"
	for text, want := range map[string][]string{"bob": {robert, town}, "@bob@peer.example": {robert}, "rob": {robert}, "carol bobstown": {town}, "nobody": nil,
		"émile": {emile}, "ÉMILE": {emile}, "Żak Émile": {emile}} {
		if got := people(text, false); !slices.Equal(got, want) {
			t.Errorf("%s finds %q, want %q", text, got, want)
		}
	}
	f.act(vocab.Create, carol, f.hold("1", carol, "psst"), true)
	if got := people("carol", true); got != nil {
		t.Errorf("an LLM engine is shown %q, who wrote a request", got)
	}
	f.gate[bob] = true
	if got := people("bob", false); !slices.Equal(got, []string{town}) {
		t.Errorf("of actors that the operator refuses, %q are found", got)
	}
}

func TestASearchIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 3 {
		f.hold(uuid.NewString(), bob, "hello")
	}
	page, err := f.Search(t.Context(), search.Query{User: f.alice, Text: "hello", Limit: 2})
	if err != nil || page.Next == "" {
		t.Fatal(page.Next, err)
	}
	for _, q := range []search.Query{{Text: ""}, {Text: "-hello"}, {Text: strings.Repeat("x", 201)}, {Text: "other", Cursor: page.Next}, {Text: "hello", Cursor: "x"}} {
		q.User, q.Limit = f.alice, 2
		if _, err := f.Search(t.Context(), q); fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("%.20q: %v, want a refusal", q.Text, err)
		}
	}
}
