package user_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// addOutbound stores an activity of the user's. If the parameter object is not empty, it stores
// the object, too.
func addOutbound(ctx context.Context, tx *user.Tx, kind, name, object string, at time.Time) error {
	id := uuid.Must(uuid.NewV7())
	if object != "" {
		if _, err := tx.Objects.Add(ctx, user.Object{ID: id, URI: thing(name), Published: at, Raw: []byte(object)}); err != nil {
			return err
		}
	}
	return tx.Activities.Add(ctx, user.Activity{ID: id, URI: thing("activities/" + name), Direction: user.Outbound, Type: kind, Actor: bob, Object: thing(name),
		Published: at, Raw: []byte(`{"to":["as:Public"]}`)})
}

func listPosts(t *testing.T, c *dbtest.Cluster, u vocab.Username, tag string, after *user.Place, n int) (names string, end *user.Place) {
	t.Helper()
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		posts, place, err := tx.Posts.ListPublic(ctx, tag, after, n)
		for _, p := range posts {
			names += " " + strings.TrimPrefix(string(p.URI), string(thing("")))
			if place != nil && place.At.After(p.Place().At) {
				t.Errorf("the scan for %q ended at %v, before %s", tag, place, p.URI)
			}
		}
		end = place
		return err
	})
	return strings.TrimSpace(names), end
}

func TestPublicPostsAreThoseOfTheUserForEverybody(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n, a := range []struct{ kind, name, object string }{
			{"Create", "public", `{"to":["as:Public"],"tag":[{"type":"Hashtag","name":"#Go"}],"lwTags":["İstanbul"]}`},
			{"Create", "unlisted", `{"cc":["https://www.w3.org/ns/activitystreams#Public"],"tag":[{"type":"Hashtag","name":"#gopher"}]}`},
			{"Create", "private", `{"to":["https://x.example/followers"],"tag":[{"type":"Hashtag","name":"#go"}]}`},
			{"Create", "deleted", `{"to":["as:Public"],"tag":[{"type":"Hashtag","name":"#go"}]}`},
			{"Announce", "boosted", `{"to":["as:Public"],"tag":[{"type":"Hashtag","name":"#go"}]}`},
			{"Create", "lost", ``},
			{"Create", "last", `{"to":["as:Public"],"lwMetadata":{"tags":["#GO"]}}`},
		} {
			if err := addOutbound(ctx, tx, a.kind, a.name, a.object, now.Add(time.Duration(n)*time.Second)); err != nil {
				return err
			}
		}
		_, err := tx.Objects.Bury(ctx, user.Grave{URI: thing("deleted"), Author: bob, Tombstone: []byte(`{"type":"Tombstone"}`)}, now)
		return err
	})
	for tag, want := range map[string]string{"": "last unlisted public", "go": "last public", "istanbul": "public", "İSTANBUL": "public", "g": "", "#go": ""} {
		if got, end := listPosts(t, c, u, tag, nil, 10); got != want || end != nil {
			t.Errorf("posts with the tag %q: %q and more after %v, want %q and no more", tag, got, end, want)
		}
	}
	first, end := listPosts(t, c, u, "", nil, 2)
	if first != "last unlisted" || end == nil {
		t.Fatalf("the first two are %q, ending at %v", first, end)
	}
	if rest, _ := listPosts(t, c, u, "", end, 2); rest != "public" {
		t.Errorf("then come %q, want the public one", rest)
	}
}

// One page scans at most MaxScanned activities, even if all of them are likes.
func TestTheSearchForPublicPostsIsBounded(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := addOutbound(ctx, tx, "Create", "old", `{"to":["as:Public"]}`, now); err != nil {
			return err
		}
		for n := range user.MaxScanned {
			if err := addOutbound(ctx, tx, "Like", fmt.Sprint("like", n), "", now.Add(time.Duration(n+1)*time.Second)); err != nil {
				return err
			}
		}
		return nil
	})
	got, end := listPosts(t, c, u, "", nil, 2)
	if got != "" || end == nil {
		t.Fatalf("behind %d likes: %q, ending at %v; want nothing, and more", user.MaxScanned, got, end)
	}
	if got, end := listPosts(t, c, u, "", end, 2); got != "old" || end != nil {
		t.Errorf("behind the likes: %q, ending at %v; want the old one, and no more", got, end)
	}
}
