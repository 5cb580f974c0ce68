package thread_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var start = time.Date(2026, 2, 21, 12, 0, 0, 0, time.UTC)

const (
	me    vocab.ID = "https://example.org/users/alice"
	bob   vocab.ID = "https://peer.example/users/bob"
	carol vocab.ID = "https://other.example/users/carol"
)

type local struct{}

func (local) ID(u vocab.Username) vocab.ID {
	return vocab.ID("https://example.org/users/" + u.String())
}

func (l local) Owner(id vocab.ID) (vocab.Username, bool) {
	u, err := vocab.ParseUsername(strings.TrimPrefix(string(id), "https://example.org/users/"))
	return u, err == nil && l.ID(u) == id
}

func (local) IsLocal(id vocab.ID) bool { return id.Origin() == me.Origin() }

func (l local) Holder(id vocab.ID) (vocab.Username, string, bool) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(string(id), "https://example.org/users/"), "/")
	u, err := vocab.ParseUsername(name)
	return u, "/" + rest, err == nil
}

func (local) Thread(object vocab.ID) vocab.ID { return object + "/context" }

func (l local) Document(u vocab.Username) (vocab.Doc, error) {
	return vocab.Doc{"id": string(l.ID(u)), "preferredUsername": u.String(), "followers": string(l.ID(u)) + "/followers"}, nil
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

// elsewhere holds the documents that other servers show, by their ids.
type elsewhere struct {
	mu      sync.Mutex
	objects map[vocab.ID]vocab.Doc
	err     error
	asked   int
	fetched []vocab.ID // the ids of the fetched objects and collections
}

func (e *elsewhere) show(id vocab.ID) (vocab.Doc, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fetched = append(e.fetched, id)
	if d := e.objects[id]; d != nil {
		return d, nil
	}
	return nil, fault.New(fault.Unavailable, "the server does not answer")
}

func (e *elsewhere) Object(_ context.Context, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error) {
	d, err := e.show(id)
	if err != nil || as != nil {
		return nil, nil, fault.Wrap(fault.Unavailable, "nothing is shown", err)
	}
	o, err := vocab.ObjectOf(d)
	return o, d.JSON(), err
}

func (e *elsewhere) Collection(_ context.Context, id vocab.ID) (vocab.Doc, error) { return e.show(id) }

func (e *elsewhere) Resolve(_ context.Context, id vocab.ID) (*vocab.Actor, error) {
	return vocab.ParseActor(person(id).JSON())
}

func (e *elsewhere) FindObject(_ context.Context, _ vocab.Username, id vocab.ID) (*vocab.Object, *vocab.Actor, error) {
	e.asked++
	if e.err != nil {
		return nil, nil, e.err
	}
	o, err := vocab.ObjectOf(e.objects[id])
	if err != nil {
		return nil, nil, fault.Wrap(fault.NotFound, "nothing", err)
	}
	by, err := vocab.ParseActor(person(o.AttributedTo).JSON())
	return o, by, err
}

func person(id vocab.ID) vocab.Doc {
	name := string(id[strings.LastIndex(string(id), "/")+1:])
	return vocab.Doc{"id": string(id), "type": "Person", "preferredUsername": name, "name": name, "inbox": string(id) + "/inbox", "followers": string(id) + "/followers"}
}

// fixture is a server with the user alice, whose database holds objects.
type fixture struct {
	*testing.T
	store *db.Cluster
	alice vocab.Username
	gate  gate
	other *elsewhere
	*thread.Reader
}

func newFixture(t *testing.T) *fixture {
	now := func() time.Time { return start }
	c, g, other := dbtest.New(t), gate{}, &elsewhere{objects: map[vocab.ID]vocab.Doc{}}
	return &fixture{t, c, dbtest.User(t, c, "alice"), g, other, thread.New(thread.Deps{Store: c, Local: local{}, Profiles: profiles{}, Gate: g, Finder: other, Others: other,
		Lookups: policy.Lookups.Limiter(now), Log: slog.New(slog.DiscardHandler), Now: now})}
}

func (f *fixture) write(work func(context.Context, *user.Tx) error) {
	f.Helper()
	if err := f.store.Write(f.Context(), f.alice, work); err != nil {
		f.Fatal(err)
	}
}

// idOf returns the id of the object with a name. The first letter of the name stands for the
// author: a is alice, b is bob, c is carol.
func idOf(name string) vocab.ID {
	return map[byte]vocab.ID{'a': me + "/objects/", 'b': "https://peer.example/notes/", 'c': "https://other.example/notes/"}[name[0]] + vocab.ID(name)
}

// noteOf returns a public note that answers another note. The first letter of its name stands for
// the author, as in idOf.
func noteOf(name, to string, more ...any) vocab.Doc {
	d := vocab.Doc{"id": string(idOf(name)), "type": "Note", "attributedTo": string(map[byte]vocab.ID{'a': me, 'b': bob, 'c': carol}[name[0]]), "content": "<p>" + name + "</p>", "to": []any{string(vocab.Public)}}
	if to != "" {
		d["inReplyTo"] = string(idOf(to))
	}
	for n := 0; n < len(more); n += 2 {
		d[more[n].(string)] = more[n+1]
	}
	return d
}

// hold stores objects. Each is a second younger than the one before it.
func (f *fixture) hold(docs ...vocab.Doc) {
	f.Helper()
	f.write(func(ctx context.Context, tx *user.Tx) error { return holdAll(ctx, tx, docs...) })
}

func holdAll(ctx context.Context, tx *user.Tx, docs ...vocab.Doc) error {
	for n, d := range docs {
		o := user.Object{ID: uuid.Must(uuid.NewV7()), URI: vocab.ID(d.Text("id")), Published: start.Add(time.Duration(n) * time.Second), Raw: d.JSON()}
		if _, err := tx.Objects.Add(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// create stores the Create that brought an object to alice.
func (f *fixture) create(by, object vocab.ID, request bool, more vocab.Doc) {
	f.Helper()
	f.bring(vocab.Create, by, object, request, more)
}

// bring stores an activity that brought an object to alice. If request is true, the activity waits
// among the requests.
func (f *fixture) bring(kind string, by, object vocab.ID, request bool, more vocab.Doc) {
	f.Helper()
	f.write(func(ctx context.Context, tx *user.Tx) error {
		a := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: object + "/" + vocab.ID(strings.ToLower(kind)), Direction: user.Inbound, Type: kind, Actor: by, Object: object, Published: start, Raw: more.JSON()}
		if err := tx.Activities.Add(ctx, a); err != nil || !request {
			return err
		}
		return tx.Requests.Add(ctx, user.Request{Activity: a.URI, Actor: by, Host: "peer.example"}, start)
	})
}

func (f *fixture) block(id vocab.ID) {
	f.Helper()
	f.write(func(ctx context.Context, tx *user.Tx) error {
		return tx.Blocks.Add(ctx, user.Block{Actor: id, Direction: user.Outbound, Activity: id + "/block"}, start)
	})
}

// names returns the last parts of objects' ids.
func names(all []thread.Object) string {
	var names []string
	for _, o := range all {
		names = append(names, string(o.URI[strings.LastIndex(string(o.URI), "/")+1:]))
	}
	return strings.Join(names, " ")
}

// wantThread checks the thread of an object. The parameter want has the form "ancestors | item |
// replies".
func (f *fixture) wantThread(of, want string) thread.Thread {
	f.Helper()
	t, err := f.Thread(f.Context(), thread.Query{User: f.alice, URI: idOf(of)})
	got := strings.TrimSpace(names(t.Ancestors) + " | " + names([]thread.Object{t.Item}) + " | " + names(t.Replies))
	if err != nil && want == "" {
		if fault.KindOf(err) != fault.NotFound {
			f.Errorf("the thread of %s: %v", of, err)
		}
		return t
	}
	if err != nil || got != want {
		f.Errorf("the thread of %s is %q, %v; want %q", of, got, err, want)
	}
	return t
}

func TestAThreadIsWhatIsHeldBeforeAndAfter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.hold(noteOf("a1", ""), noteOf("b2", "a1"), noteOf("c3", "a1"), noteOf("a4", "b2"), noteOf("b5", "a4"), noteOf("c6", "b2"), noteOf("b7", "c-lost"), noteOf("b8", "b8"), noteOf("c9", "b10"), noteOf("b10", "c9"))
	for of, want := range map[string]string{
		"a1":  "| a1 | b2 c3 a4 c6 b5",
		"b2":  "a1 | b2 | a4 c6 b5",
		"b5":  "a1 b2 a4 | b5 |",
		"c3":  "a1 | c3 |",
		"b7":  "| b7 |",
		"b8":  "| b8 |",
		"c9":  "b10 | c9 |",
		"b99": "",
	} {
		t.Run(of, func(t *testing.T) {
			if got := f.wantThread(of, want); got.Truncated {
				t.Error("it is truncated")
			}
		})
	}
	thread := f.wantThread("b2", "a1 | b2 | a4 c6 b5")
	if a := thread.Ancestors[0]; a.AuthorURI != me || a.Visibility != "public" || a.Replies != 2 || !a.Held || a.InReplyTo != "" {
		t.Errorf("the ancestor is shown as %+v", a)
	}
	if thread.Actors[me].Handle != "@alice@example.org" || len(thread.Actors) != 3 || thread.Replies[2].InReplyTo != idOf("a4") {
		t.Errorf("the thread is shown as %+v", thread)
	}
}

func TestAThreadShowsNothingOfWhoIsBlockedOrRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.hold(noteOf("a1", ""), noteOf("b2", "a1"), noteOf("c3", "b2"), noteOf("a4", "c3"), noteOf("c5", "a1", "attributedTo", []any{string(carol), "https://other.example/groups/x"}), noteOf("b6", "a1", "type", "ChatMessage"), noteOf("c7", "a1", "to", []any{string(me)}))
	f.create(carol, idOf("c7"), true, vocab.Doc{})
	f.wantThread("a1", "| a1 | b2 c5 c3 a4")
	f.wantThread("c7", "a1 | c7 |")
	f.wantThread("b6", "")
	if _, err := f.Object(t.Context(), thread.Query{User: f.alice, URI: idOf("c7"), Assistant: true}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an LLM engine is shown a request: %v", err)
	}
	f.gate["https://other.example/groups/x"] = true
	f.wantThread("a1", "| a1 | b2 c3 a4")
	f.block(bob)
	f.wantThread("a1", "| a1 | c3 a4")
	f.wantThread("a4", "a1 c3 | a4 |")
	f.wantThread("b2", "")
	f.gate[carol] = true
	f.wantThread("a1", "| a1 | a4")
}

// A stranger boosts a private note of its own to the user. The note counts as a request, although
// no Create of it is stored.
func TestANoteThatAStrangerBoostedToTheUserIsARequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.hold(noteOf("a1", ""), noteOf("b2", "a1"), noteOf("c3", "b2", "to", []any{string(me)}), noteOf("b4", "c3"))
	f.create(bob, idOf("b2"), false, vocab.Doc{})
	f.bring(vocab.Announce, carol, idOf("b2"), false, vocab.Doc{})
	f.bring(vocab.Announce, carol, idOf("c3"), true, vocab.Doc{"to": []any{string(me)}})
	f.wantThread("a1", "| a1 | b2 b4")
	f.wantThread("b4", "a1 b2 | b4 |")
	f.wantThread("c3", "a1 b2 | c3 | b4")
	assistant := thread.Query{User: f.alice, URI: idOf("c3"), Assistant: true}
	if got, err := f.Object(t.Context(), assistant); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an LLM engine is shown %+v, %v", got, err)
	}
	for _, q := range []thread.Query{assistant, {User: f.alice}} {
		shown, _, _, err := f.Held(t.Context(), q, []vocab.ID{idOf("b2"), idOf("c3")})
		if want := map[bool]string{true: "b2", false: "b2 c3"}[q.Assistant]; err != nil || names(shown) != want {
			t.Errorf("Held(assistant: %t) = %q, %v; want %q", q.Assistant, names(shown), err, want)
		}
	}
}

func TestAThreadIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	docs := []vocab.Doc{noteOf("a0", "")}
	for n := range 50 {
		docs = append(docs, noteOf(fmt.Sprint("b", n+1), map[bool]string{true: "a0", false: fmt.Sprint("b", n)}[n == 0]))
	}
	f.hold(docs...)
	for _, tt := range []struct {
		of                 string
		ancestors, replies int
		truncated          bool
	}{{"a0", 0, 40, true}, {"b40", 40, 10, false}, {"b50", 40, 0, true}, {"b20", 20, 30, false}} {
		got, err := f.Thread(t.Context(), thread.Query{User: f.alice, URI: idOf(tt.of)})
		if err != nil || len(got.Ancestors) != tt.ancestors || len(got.Replies) != tt.replies || got.Truncated != tt.truncated {
			t.Errorf("the thread of %s has %d ancestors and %d replies, truncated %t, %v; want %+v", tt.of, len(got.Ancestors), len(got.Replies), got.Truncated, err, tt)
		}
	}
	docs = []vocab.Doc{noteOf("c0", "")}
	for n := range 210 {
		docs = append(docs, noteOf(fmt.Sprint("c", n+1), "c0"))
	}
	f.hold(docs...)
	got, err := f.Thread(t.Context(), thread.Query{User: f.alice, URI: idOf("c0")})
	if err != nil || len(got.Replies) != 200 || !got.Truncated || got.Replies[199].URI != idOf("c200") || got.Item.Replies != 210 {
		t.Errorf("of 210 answers, %d are shown, %v", len(got.Replies), err)
	}
	docs = []vocab.Doc{noteOf("c1000", "")}
	for n := range 401 {
		docs = append(docs, noteOf(fmt.Sprint("c", n+1001), "c1000"))
	}
	f.hold(docs...)
	got, err = f.Thread(t.Context(), thread.Query{User: f.alice, URI: idOf("c1000")})
	if err != nil || len(got.Replies) != 200 || !got.Truncated || got.Replies[0].URI != idOf("c1001") || got.Replies[199].URI != idOf("c1200") {
		t.Errorf("of 401 answers, %d are shown, truncated %t, %v; want the 200 oldest ones, truncated", len(got.Replies), got.Truncated, err)
	}
	large := strings.Repeat("x", 1<<20)
	f.hold(noteOf("b-large", ""), noteOf("b-l1", "b-large", "x", large), noteOf("b-l2", "b-large", "x", large), noteOf("b-l3", "b-large", "x", large), noteOf("b-l4", "b-large", "x", large), noteOf("b-l5", "b-large", "x", large))
	if got := f.wantThread("b-large", "| b-large | b-l1 b-l2 b-l3"); !got.Truncated {
		t.Error("a large thread is not truncated")
	}
}

func TestAnObjectIsShownAsItsUserMaySeeIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	followers := string(bob) + "/followers"
	f.hold(noteOf("b1", "", "to", []any{followers}), noteOf("b2", "", "attributedTo", "https://elsewhere.example/x", "to", nil), noteOf("b3", "", "type", "Tombstone"))
	f.create(bob, idOf("b2"), false, vocab.Doc{"to": []any{string(me)}})
	f.write(func(ctx context.Context, tx *user.Tx) error {
		by, err := vocab.ParseActor(person(bob).JSON())
		if err != nil {
			return err
		}
		for _, kind := range []user.Reaction{{Kind: user.Review, Type: "Dislike"}, {Kind: user.Announce, Type: "Announce"}} {
			kind.Object, kind.Actor, kind.Activity = idOf("b1"), me, me+"/activities/"+vocab.ID(kind.Type)
			if err := tx.Reactions.Set(ctx, kind, start); err != nil {
				return err
			}
		}
		return tx.Actors.Save(ctx, by, start)
	})
	got, err := f.Object(t.Context(), thread.Query{User: f.alice, URI: idOf("b1")})
	if err != nil || got.Visibility != "followers" || got.Liked || !got.Disliked || !got.Boosted || got.Dislikes != 1 || got.Boosts != 1 || got.Actors[bob].Handle != "@bob@peer.example" {
		t.Errorf("it is shown as %+v, %v", got, err)
	}
	got, err = f.Object(t.Context(), thread.Query{User: f.alice, URI: idOf("b2") + "/create"})
	if err != nil || got.URI != idOf("b2") || got.AuthorURI != bob || got.Visibility != "direct" {
		t.Errorf("what names nobody is shown as %+v, %v", got, err)
	}
	if _, err = f.Object(t.Context(), thread.Query{User: f.alice, URI: idOf("b3")}); fault.KindOf(err) != fault.Gone {
		t.Errorf("what was deleted: %v", err)
	}
}

func TestWhatIsNotHeldComesFromWhereItIs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.hold(noteOf("b0", ""), noteOf("a2", "b1"))
	followers := []any{string(bob) + "/followers"}
	for _, d := range []vocab.Doc{noteOf("b1", "b0", "content", `<p onclick="x()">b1</p>`), noteOf("b2", "", "to", followers), noteOf("c3", "", "to", []any{string(me)}), noteOf("c4", "", "to", nil), noteOf("c5", "", "type", "PrivateMessage")} {
		f.other.objects[vocab.ID(d.Text("id"))] = d
	}
	got := f.wantThread("b1", "b0 | b1 | a2")
	if got.Item.Held || !got.Ancestors[0].Held || string(got.Item.Object) == "" || strings.Contains(string(got.Item.Object), "onclick") || got.Actors[bob].Handle != "@bob@peer.example" {
		t.Errorf("it is shown as %+v", got)
	}
	f.wantThread("b2", "") // b2 is for followers only
	f.write(func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: bob, Type: user.Following, Status: user.Accepted, Activity: me + "/follow"}, start)
	})
	f.wantThread("b2", "| b2 |")
	f.wantThread("c3", "| c3 |")
	f.wantThread("c4", "| c4 |")
	f.wantThread("c5", "")
	f.block(bob)
	f.wantThread("b1", "")
	asked := f.other.asked
	if _, err := f.Object(t.Context(), thread.Query{User: f.alice, URI: idOf("c3"), Assistant: true}); fault.KindOf(err) != fault.NotFound || f.other.asked != asked {
		t.Errorf("for an LLM engine: %v, asked %d times", err, f.other.asked-asked)
	}
	for _, tt := range []struct{ said, want fault.Kind }{{fault.Forbidden, fault.NotFound}, {fault.Unprocessable, fault.NotFound}, {fault.NotFound, fault.NotFound}, {fault.Gone, fault.Gone}, {fault.Unavailable, fault.Unavailable}} {
		f.other.err = fault.New(tt.said, "no")
		if _, err := f.Object(t.Context(), thread.Query{User: f.alice, URI: idOf("c99")}); fault.KindOf(err) != tt.want {
			t.Errorf("when it is %d, the answer is %v", tt.said, err)
		}
	}
}
