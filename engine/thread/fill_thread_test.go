package thread_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/vocab"
)

// shown makes other servers show the given documents.
func (e *elsewhere) shown(docs ...vocab.Doc) {
	for _, d := range docs {
		e.objects[vocab.ID(d.Text("id"))] = d
	}
}

// list returns a collection, or a page of a collection. Its items are the objects with the given
// names.
func list(id, kind, items string, more ...any) vocab.Doc {
	var ids []any
	for _, name := range strings.Fields(items) {
		ids = append(ids, string(idOf(name)))
	}
	d := vocab.Doc{"id": id, "type": kind, "orderedItems": ids}
	for n := 0; n < len(more); n += 2 {
		d[more[n].(string)] = more[n+1]
	}
	return d
}

const (
	threadList = "https://peer.example/contexts/1"
	replyList  = "https://peer.example/notes/b1/replies"
)

// filled fills in the thread of an object. It returns the thread, the ids of its objects, and the
// ids that were fetched.
func (f *fixture) filled(of string) (got thread.Thread, ids string, fetched []vocab.ID) {
	f.Helper()
	f.other.fetched = nil
	got, err := f.Thread(f.Context(), thread.Query{User: f.alice, URI: idOf(of), Fill: true})
	if err != nil {
		f.Fatal(err)
	}
	return got, strings.TrimSpace(names(got.Ancestors) + " | " + names([]thread.Object{got.Item}) + " | " + names(got.Replies)), f.other.fetched
}

func TestAThreadIsFilledInByItsOwnerElseByReplies(t *testing.T) {
	t.Parallel()
	inThread := []any{"context", threadList, "replies", replyList}
	for _, tt := range []struct {
		name    string
		held    []vocab.Doc
		shown   []vocab.Doc
		of      string
		want    string
		fetches int // how many objects and collections may be fetched
	}{
		{"by its owner's list", []vocab.Doc{noteOf("b1", "", inThread...)},
			[]vocab.Doc{list(threadList, "OrderedCollection", "b1 c2 b3 c4"), noteOf("c2", "b1"), noteOf("b3", "c2"), noteOf("c4", "b-elsewhere")}, "b1", "| b1 | c2 b3", 4},
		{"by a list in pages", []vocab.Doc{noteOf("b1", "", inThread...)},
			[]vocab.Doc{{"id": threadList, "type": "OrderedCollection", "first": threadList + "?1"}, list(threadList+"?1", "OrderedCollectionPage", "c2", "first", threadList+"?1", "next", threadList+"?2"),
				list(threadList+"?2", "OrderedCollectionPage", "b3", "next", "https://elsewhere.example/3"), noteOf("c2", "b1"), noteOf("b3", "c2")}, "b1", "| b1 | c2 b3", 5},
		{"by a list that its server does not own", []vocab.Doc{noteOf("b1", "", inThread...)},
			[]vocab.Doc{list(threadList, "OrderedCollection", "c2", "attributedTo", string(carol)), list(replyList, "Collection", "c3"), noteOf("c2", "b1"), noteOf("c3", "b1")}, "b1", "| b1 | c3", 3},
		{"by a list on another server that states no owner", []vocab.Doc{noteOf("b1", "", "context", "https://other.example/contexts/1", "replies", replyList)},
			[]vocab.Doc{list("https://other.example/contexts/1", "Collection", "c2"), list(replyList, "Collection", "c3"), noteOf("c2", "b1"), noteOf("c3", "b1")}, "b1", "| b1 | c3", 3},
		{"by a list on another server, by its owner", []vocab.Doc{noteOf("b1", "", "context", "https://other.example/contexts/1", "replies", replyList)},
			[]vocab.Doc{list("https://other.example/contexts/1", "Collection", "c2", "attributedTo", "https://other.example/users/zoe"), noteOf("c2", "b1")}, "b1", "| b1 | c2", 2},
		{"by replies, when there is no such list", []vocab.Doc{noteOf("b1", "", inThread...)},
			[]vocab.Doc{list(replyList, "Collection", "c2"), noteOf("c2", "b1", "replies", vocab.Doc{"type": "Collection", "first": vocab.Doc{"type": "CollectionPage", "items": []any{string(idOf("b3"))}}}), noteOf("b3", "c2")}, "b1", "| b1 | c2 b3", 4},
		{"by replies on another server", []vocab.Doc{noteOf("b1", "", "replies", "https://other.example/replies")},
			[]vocab.Doc{list("https://other.example/replies", "Collection", "c2"), noteOf("c2", "b1")}, "b1", "| b1 |", 0},
		{"upwards", []vocab.Doc{noteOf("b0", ""), noteOf("b3", "c2")}, []vocab.Doc{noteOf("c2", "b1"), noteOf("b1", "b0")}, "b3", "b0 b1 c2 | b3 |", 0},
		{"upwards in a circle", []vocab.Doc{noteOf("b3", "c2")}, []vocab.Doc{noteOf("c2", "b1"), noteOf("b1", "b3")}, "b3", "b1 c2 | b3 |", 0},
		{"with what is held below", []vocab.Doc{noteOf("b1", "", inThread...), noteOf("a4", "c3"), noteOf("b5", "b1")}, []vocab.Doc{list(threadList, "Collection", "b1 c2 c3 b5"), noteOf("c2", "b1", "published", "2026-01-01T00:00:00Z"), noteOf("c3", "c2")}, "b1", "| b1 | b5 c2 c3 a4", 3},
		{"with a post that names its author as actor too", []vocab.Doc{noteOf("b1", "", inThread...)},
			[]vocab.Doc{list(threadList, "Collection", "c2"), noteOf("c2", "b1", "actor", string(carol))}, "b1", "| b1 | c2", 2},
		{"but not with what others wrote", []vocab.Doc{noteOf("b1", "", inThread...)},
			[]vocab.Doc{list(threadList, "Collection", "c2 c3 c4 c5"), noteOf("c2", "b1", "attributedTo", string(bob)), noteOf("c3", "b1", "actor", string(carol), "object", string(idOf("b1"))), noteOf("c4", "b1", "to", []any{string(bob)}), noteOf("c5", "b1", "type", "Person")}, "b1", "| b1 |", 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.hold(tt.held...)
			f.other.shown(tt.shown...)
			got, ids, fetched := f.filled(tt.of)
			if ids != tt.want || len(fetched) > tt.fetches || got.Truncated {
				t.Errorf("filled in it is %q by %q, truncated %t; want %q by %d", ids, fetched, got.Truncated, tt.want, tt.fetches)
			}
			for _, o := range slices.Concat(got.Ancestors, got.Replies) {
				if isHeld := slices.ContainsFunc(tt.held, func(d vocab.Doc) bool { return d.Text("id") == string(o.URI) }); isHeld != o.Held {
					t.Errorf("%s is held: %t", o.URI, o.Held)
				}
			}
			if got.Actors[carol].Handle == "" && strings.Contains(ids, "c2") {
				t.Errorf("the author of what was fetched is shown as %+v", got.Actors[carol])
			}
			if _, ids, _ := f.filled(tt.of); ids != tt.want {
				t.Errorf("the second time it is %q", ids)
			}
		})
	}
}

func TestFillingIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.hold(noteOf("b1", "", "context", threadList))
	var ids []string
	for n := range 80 {
		name := fmt.Sprint(map[bool]string{true: "b", false: "c"}[n%4 == 0], n+10)
		ids = append(ids, name)
		f.other.shown(noteOf(name, "b1"))
	}
	f.other.shown(list(threadList, "Collection", strings.Join(ids, " "), "first", threadList+"?1"), list(threadList+"?1", "CollectionPage", "", "next", threadList+"?1"))
	got, _, fetched := f.filled("b1")
	if len(got.Replies) > 50 || len(got.Replies) < 40 || !got.Truncated || len(fetched) > 60 {
		t.Errorf("%d replies by %d fetches, truncated %t", len(got.Replies), len(fetched), got.Truncated)
	}
	ofCarol := 0
	for _, o := range got.Replies {
		if o.AuthorURI == carol {
			ofCarol++
		}
	}
	if ofCarol != 30 {
		t.Errorf("%d objects of one domain were fetched, want 30", ofCarol)
	}
	for n := 0; n < 20; n++ {
		if _, err := f.Thread(t.Context(), thread.Query{User: f.alice, URI: idOf("b1"), Fill: true}); err != nil {
			if e := fault.Of(err); e == nil || e.Kind != fault.RateLimited || e.RetryAfter == 0 {
				t.Errorf("beyond its share: %v", err)
			}
			f.wantThread("b1", "| b1 |")
			return
		}
	}
	t.Error("a user has any number of threads filled in")
}

// Another user of this server began a thread. The thread is filled in from that user's database,
// and no other server is asked for it.
func TestAThreadOfThisServerIsFilledInFromWhereItIs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	zoe := dbtest.User(t, f.store, "zoe")
	root := vocab.ID("https://example.org/users/zoe/objects/z1")
	begins := noteOf("b1", "", "id", string(root), "attributedTo", "https://example.org/users/zoe", "context", string(root)+"/context")
	answer, private := noteOf("c2", "", "inReplyTo", string(root)), noteOf("c3", "", "inReplyTo", string(root), "to", []any{string(carol)})
	if err := f.store.Write(t.Context(), zoe, func(ctx context.Context, tx *user.Tx) error {
		return holdAll(ctx, tx, begins, answer, private)
	}); err != nil {
		t.Fatal(err)
	}
	f.hold(begins)
	f.other.shown(answer, private)
	got, err := f.Thread(t.Context(), thread.Query{User: f.alice, URI: root, Fill: true})
	if err != nil || names(got.Replies) != "c2" || !slices.Equal(f.other.fetched, []vocab.ID{idOf("c2")}) {
		t.Errorf("filled in it has %q, %v, by %q", names(got.Replies), err, f.other.fetched)
	}
}
