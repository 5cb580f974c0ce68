package server_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestGroupsAreShownToWhoseTheyAre(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := uuid.New()
	uri := f.local.Groups(f.alice) + vocab.ID("/"+id.String())
	err := f.store.Write(t.Context(), f.alice, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Groups.Add(ctx, user.Group{ID: id, Name: "friends", URI: uri}, start); err != nil {
			return err
		}
		if err := tx.Groups.AddMember(ctx, id, f.carol.ID, "", start); err != nil {
			return err
		}
		return tx.Groups.Add(ctx, user.Group{ID: uuid.New(), Name: "empty", URI: uri + "0"}, start)
	})
	if err != nil {
		t.Fatal(err)
	}
	type group struct {
		ID, Name string
		Members  []string
	}
	var got struct{ Items []group }
	f.get("/api/groups", bearerToken(f.token(f.alice, "read"))).want(t, 200).decode(t, &got)
	want := []group{{string(uri) + "0", "empty", []string{}}, {string(uri), "friends", []string{string(f.carol.ID)}}}
	if diff := cmp.Diff(want, got.Items); diff != "" {
		t.Error(diff)
	}
	got.Items = nil
	if f.get("/api/groups", bearerToken(f.token(f.bob, "read"))).want(t, 200).decode(t, &got); got.Items == nil || len(got.Items) != 0 {
		t.Errorf("bob, who has none, is shown %+v", got.Items)
	}
	f.get("/api/groups", bearerToken(f.token(f.alice, "llm"))).want(t, 200)
	f.get("/api/groups", bearerToken(f.token(f.alice, "write"))).want(t, 403)
	f.get("/api/groups").want(t, 401)
	f.get("/api/groups?x=1", bearerToken(f.token(f.alice, "read"))).want(t, 400)
	f.get(string(uri[len(f.local.Origin()):]), bearerToken(f.token(f.alice, "read"))).want(t, 404)
}
