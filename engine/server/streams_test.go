package server_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestStreamsAreShownToAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := uuid.New()
	s := user.Stream{ID: id, Name: "Cats", Tags: []string{"cats"}, URI: f.local.Streams(f.alice) + vocab.ID("/"+id.String()), Activity: "https://here/1", CreatedAt: start}
	var added []vocab.ID
	err := f.store.Write(t.Context(), f.alice, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Streams.Add(ctx, s); err != nil {
			return err
		}
		for n := range 45 {
			o := vocab.ID("https://peer.example/notes/" + string(rune('A'+n)))
			added = append([]vocab.ID{o}, added...)
			if err := tx.Streams.AddObject(ctx, s.URI, user.StreamObject{Object: o, ID: uuid.Must(uuid.NewV7()), Activity: "https://here/2", AddedAt: start}); err != nil {
				return err
			}
		}
		return tx.Pins.Set(ctx, user.Pin{Actor: f.local.ID(f.alice), Object: "https://here/notes/1", Activity: "https://here/3"}, start)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(added, f.walk(string(s.URI), nil)); diff != "" {
		t.Errorf("the stream: %s", diff)
	}
	doc := f.get(string(s.URI)).want(t, 200).doc(t)
	if doc.Text("name") != "Cats" || doc.Text("attributedTo") != string(f.local.ID(f.alice)) || f.total(string(s.URI)) != "45" {
		t.Errorf("the stream is %s", doc.JSON())
	}
	for of, want := range map[vocab.ID]any{f.local.Streams(f.alice): string(s.URI), f.local.Featured(f.alice): "https://here/notes/1"} {
		doc := f.get(string(of)).want(t, 200).doc(t)
		if items, _ := doc["orderedItems"].([]any); len(items) != 1 || items[0] != want {
			t.Errorf("%s is %s", of, doc.JSON())
		}
	}
	actor := f.get(string(f.local.ID(f.alice))).want(t, 200).doc(t)
	if actor.Text("featured") != string(f.local.Featured(f.alice)) {
		t.Errorf("the actor features %q", actor.Text("featured"))
	}
	if doc := f.get(string(f.local.Featured(f.bob))).want(t, 200).doc(t); doc["orderedItems"] != nil {
		t.Errorf("bob features %s", doc.JSON())
	}
	for _, path := range []string{string(s.URI) + "0", string(f.local.Streams(f.bob)) + "/" + id.String(), string(f.local.Streams(f.alice)) + "/" + uuid.New().String()} {
		f.get(path).want(t, 404)
	}
	var got struct {
		Items []struct {
			ID      vocab.ID
			Objects int
		}
	}
	f.get("/api/streams", bearerToken(f.token(f.alice, "llm"))).want(t, 200).decode(t, &got)
	if len(got.Items) != 1 || got.Items[0].ID != s.URI || got.Items[0].Objects != 45 {
		t.Errorf("alice's programs are shown %+v", got.Items)
	}
	f.get("/api/streams").want(t, 401)
}

// Requests with invented ids use none of the memory for kept pages.
func TestPagesOfMadeUpCollectionsAreNotKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.get(string(f.local.Featured(f.alice))).want(t, 200)
	before := f.server.KeptPages()
	if before == 0 {
		t.Error("no page is kept")
	}
	for range 5 {
		f.get(string(f.local.Streams(f.alice))+"/"+uuid.NewString()).want(t, 404)
		for _, of := range []string{"replies", "context"} {
			f.get(string(f.local.ID(f.alice))+"/objects/"+uuid.NewString()+"/"+of).want(t, 404)
		}
	}
	if kept := f.server.KeptPages(); kept != before {
		t.Errorf("%d bytes are kept, and before what was made up %d", kept, before)
	}
}
