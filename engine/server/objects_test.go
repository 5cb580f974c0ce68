package server_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// answered stores an answer of carol's to an object.
func (f *fixture) answered(u vocab.Username, name string, to vocab.ID) vocab.ID {
	f.Helper()
	id := "https://peer.example/notes/" + vocab.ID(name)
	doc := vocab.Doc{"id": string(id), "type": "Note", "attributedTo": string(f.carol.ID), "content": "<p onclick=x>" + name + "</p>", "inReplyTo": string(to), "to": []any{string(vocab.Public)}}
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: id, Published: start, Raw: doc.JSON()})
		return err
	})
	return id
}

func TestAProgramReadsAnObjectAndItsThread(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, root := f.post(f.alice, "first", start, vocab.Public)
	second := f.answered(f.alice, "second", root)
	third := f.answered(f.alice, "third", second)
	token, of := bearerToken(f.token(f.alice, "read")), func(id vocab.ID) string { return "?uri=" + url.QueryEscape(string(id)) }
	type object struct {
		URI, AuthorURI, Visibility, InReplyTo string
		Held                                  bool
		Replies                               int
		Object                                struct{ Content string }
	}
	var entry struct {
		object
		Actors map[string]vocab.Card
	}
	r := f.get("/api/objects"+of(second), token).want(t, 200)
	r.decode(t, &entry)
	want := object{string(second), string(f.carol.ID), "public", string(root), true, 1, struct{ Content string }{"<p>second</p>"}}
	if _, ok := entry.Actors[string(f.carol.ID)]; entry.object != want || !ok {
		t.Errorf("the object is shown as %+v, want %+v", entry, want)
	}
	f.get("/api/objects"+of(second), token, func(q *http.Request) { q.Header.Set("If-None-Match", r.Header.Get("ETag")) }).want(t, 304)
	var thread struct {
		Ancestors, Replies []object
		Item               object
		Truncated          bool
	}
	f.get("/api/objects/thread"+of(second), bearerToken(f.token(f.alice, "llm"))).want(t, 200).decode(t, &thread)
	if len(thread.Ancestors) != 1 || thread.Ancestors[0].URI != string(root) || thread.Item != want || len(thread.Replies) != 1 || thread.Replies[0].URI != string(third) || thread.Truncated {
		t.Errorf("the thread is shown as %+v", thread)
	}
	f.get("/api/objects/thread"+of(second)+"&backfill=true", token).want(t, 200)
	f.get("/api/objects/thread"+of(second)+"&backfill=false", bearerToken(f.token(f.alice, "llm"))).want(t, 200)
	f.get("/api/objects/thread"+of(second)+"&backfill=true", bearerToken(f.token(f.alice, "llm"))).want(t, 403)
	f.get("/api/objects/thread"+of(second)+"&backfill=maybe", token).want(t, 400)
	f.get("/api/objects"+of(second)+"&backfill=true", token).want(t, 400)
	for _, path := range []string{"/api/objects", "/api/objects/thread"} {
		f.get(path+of(root)).want(t, 401)
		f.get(path+of(root), bearerToken(f.token(f.alice, "write"))).want(t, 403)
		for _, wrong := range []string{"", "?uri=", "?uri=x", "?uri=https://peer.example/1&x=1"} {
			f.get(path+wrong, token).want(t, 400)
		}
	}
}

// retype gives a stored object other types, as an earlier version may have stored it.
func (f *fixture) retype(u vocab.Username, id vocab.ID, types ...any) {
	f.Helper()
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		row, err := tx.Objects.Find(ctx, id)
		if err != nil {
			return err
		}
		d, err := vocab.ParseDoc(row.Raw)
		if err != nil {
			return err
		}
		d["type"] = types
		_, err = tx.Objects.Replace(ctx, id, d.JSON(), nil, start.Add(time.Hour))
		return err
	})
}

// An object is still shown if an earlier version stored it, and its type is refused now. An object
// that cannot be read at all hides no other object.
func TestAThreadShowsObjectsOfTypesThatAreRefusedNow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPages)
	_, root := f.post(f.alice, "first", start, vocab.Public)
	second := f.answered(f.alice, "second", root)
	third := f.answered(f.alice, "third", second)
	f.retype(f.alice, second, "Note", "Li\u2028 ke")
	f.retype(f.alice, f.answered(f.alice, "bad", second), 16)
	type object struct{ URI, AuthorURI string }
	var got struct {
		Ancestors, Replies []object
		Item               object
	}
	f.get("/api/objects/thread?uri="+url.QueryEscape(string(second)), bearerToken(f.token(f.alice, "read"))).want(t, 200).decode(t, &got)
	if carol := string(f.carol.ID); got.Item != (object{string(second), carol}) || len(got.Ancestors) != 1 || len(got.Replies) != 1 || got.Replies[0] != (object{string(third), carol}) {
		t.Errorf("the thread is shown as %+v", got)
	}
	f.get(f.pageOf(root)).want(t, 200).holds(t, []string{"first", "second"}, []string{"bad"})
}

// An object that the user may not see gets the same answer as an object that does not exist. A
// program may ask other servers for a limited number of objects.
func TestWhatMayNotBeSeenIsNotThere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	held := f.answered(f.alice, "held", "https://peer.example/notes/0")
	_, private := f.post(f.bob, "for himself", start, f.local.ID(f.bob))
	f.outbox.err = fault.New(fault.NotFound, "there is no such object here").At("/params/objectId")
	token := bearerToken(f.token(f.alice, "read"))
	ask := func(path string, id vocab.ID, how asking) string {
		f.Helper()
		body, _, _ := strings.Cut(string(f.get(path+"?uri="+url.QueryEscape(string(id)), how).want(t, 404).body), `"request_id"`)
		return body
	}
	for _, path := range []string{"/api/objects", "/api/objects/thread"} {
		nothing := ask(path, "https://peer.example/notes/none", token)
		f.policy.Suspended = []vocab.ID{f.carol.ID}
		for name, got := range map[string]string{"of a suspended actor": ask(path, held, token), "another user's": ask(path, private, token)} {
			if got != nothing {
				t.Errorf("%s, what is %s is answered %s, and what is not there %s", path, name, got, nothing)
			}
		}
		f.policy.Suspended = nil
		f.outbox.sought = nil
		if ask(path, private, bearerToken(f.token(f.alice, "llm"))); len(f.outbox.sought) > 0 {
			t.Errorf("for an LLM engine, %q was asked for", f.outbox.sought)
		}
	}
	status := http.StatusNotFound
	for n := 0; status == http.StatusNotFound && n < 100; n++ {
		status = f.get("/api/objects?uri=https://peer.example/notes/none", token).StatusCode
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("after many, the answer is %d", status)
	}
	f.get("/api/objects?uri="+url.QueryEscape(string(held)), token).want(t, 200)
}
