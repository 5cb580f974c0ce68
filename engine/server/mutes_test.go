package server_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Threads and search results leave out muted posts. A muted post is still shown if a program asks
// for it by its id. The user's own posts are never muted.
func TestMutedPostsAreInNoThreadAndNotFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, root := f.post(f.alice, "a spoiler of my own", start, vocab.Public)
	spoiler, plain := f.answered(f.alice, "spoiler", root), f.answered(f.alice, "plain", root)
	token := bearerToken(f.token(f.alice, "read"))
	of := "?uri=" + url.QueryEscape(string(root))
	for _, c := range []struct {
		name    string
		mutes   registry.Moderation
		replies []vocab.ID
		found   []vocab.ID
		mute    string
	}{
		{"nothing", registry.Moderation{}, []vocab.ID{spoiler, plain}, []vocab.ID{root, spoiler}, `{"items":[],"actors":{}}`},
		{"a word", registry.Moderation{MutedKeywords: []string{"spoiler"}}, []vocab.ID{plain}, []vocab.ID{root}, `{"type":"mute","keyword":"spoiler"}`},
		{"an actor", registry.Moderation{MutedActors: []vocab.ID{f.carol.ID}}, nil, []vocab.ID{root}, `{"type":"mute","actorUri":"` + string(f.carol.ID) + `"}`},
		{"a domain", registry.Moderation{MutedDomains: []string{f.carol.ID.Host()}}, nil, []vocab.ID{root}, `{"type":"mute","domain":"` + f.carol.ID.Host() + `"}`},
	} {
		err := f.registry.UpdateUser(f.alice, func(now *registry.User) error {
			now.Moderation = c.mutes
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var thread struct{ Replies []struct{ URI vocab.ID } }
		f.get("/api/objects/thread"+of, token).want(t, 200).decode(t, &thread)
		var found struct{ Items []struct{ URI vocab.ID } }
		f.get("/api/search?q=spoiler", token).want(t, 200).decode(t, &found)
		if got := urisOf(thread.Replies); !slices.Equal(got, slices.Sorted(slices.Values(c.replies))) {
			t.Errorf("with %s muted the thread has %q, want %q", c.name, got, c.replies)
		}
		if got := urisOf(found.Items); !slices.Equal(got, slices.Sorted(slices.Values(c.found))) {
			t.Errorf("with %s muted %q are found, want %q", c.name, got, c.found)
		}
		f.get("/api/objects?uri="+url.QueryEscape(string(spoiler)), token).want(t, 200)
		if page := string(f.get("/api/relationships?type=mute", token).want(t, 200).body); !strings.Contains(page, c.mute) {
			t.Errorf("with %s muted the list is %s", c.name, page)
		}
	}
	f.get("/api/relationships?type=mute&limit=1", token).want(t, 400)
}

// The list of mutes has a short profile of each muted actor. The profile of a local user is
// current. If the engine has no copy of an actor, the profile is empty.
func TestEachMutedActorHasACard(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bob, stranger := f.local.ID(f.bob), vocab.ID("https://peer.example/users/x")
	err := f.registry.UpdateUser(f.alice, func(now *registry.User) error {
		now.Moderation.MutedActors = []vocab.ID{bob, stranger}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Actors map[vocab.ID]struct{ Handle string }
	}
	f.get("/api/relationships?type=mute", bearerToken(f.token(f.alice, "read"))).want(t, 200).decode(t, &page)
	card, isShown := page.Actors[stranger]
	if !isShown || card.Handle != "" || !strings.HasPrefix(page.Actors[bob].Handle, "@bob@") {
		t.Errorf("the actors are %+v", page.Actors)
	}
}

func urisOf(shown []struct{ URI vocab.ID }) (uris []vocab.ID) {
	for _, o := range shown {
		uris = append(uris, o.URI)
	}
	slices.Sort(uris)
	return uris
}
