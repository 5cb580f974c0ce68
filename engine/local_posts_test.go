package engine_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// A local post reaches a follower on the same server, and other users there may read it. Followers
// on other servers do not receive the post, its edit or its answers. For them and for visitors the
// post does not exist.
func localPostStaysHere(t *testing.T, a, b *enginetest.Instance) {
	author, near, neighbour, far := a.CreateUser(t, "lola"), a.CreateUser(t, "lars"), a.CreateUser(t, "lena"), b.CreateUser(t, "luis")
	befriend(t, near, author)
	befriend(t, far, author)
	create, note := author.Post(t, map[string]any{"content": "for us, not for " + far.Handle, "visibility": "local"})
	item := near.Await(t, "main", "the local post", func(i enginetest.Item) bool { return i.ActivityURI == create })
	if item.Visibility != "local" {
		t.Errorf("it is shown as %q", item.Visibility)
	}
	about := "/api/objects?uri=" + url.QueryEscape(note)
	for reader, want := range map[*enginetest.User]int{author: http.StatusOK, near: http.StatusOK, neighbour: http.StatusOK, far: http.StatusNotFound} {
		if got := reader.Ask(t, http.MethodGet, about, nil).Status; got != want {
			t.Errorf("%s is answered %d, want %d", reader.Name, got, want)
		}
	}
	for _, id := range []string{create, note} {
		if got := enginetest.Fetch(t, id).Status; got != http.StatusNotFound {
			t.Errorf("a visitor is answered %d at %s", got, id)
		}
	}
	answer := near.Do(t, "Reply", map[string]any{"objectId": note, "content": "for us"})
	author.Await(t, "main", "the answer", func(i enginetest.Item) bool { return i.ActivityURI == answer.ActivityID })
	author.Do(t, "UpdateObject", map[string]any{"objectId": note, "content": "for us alone"})
	public, _ := author.Post(t, map[string]any{"content": "for all", "visibility": "public"})
	far.Await(t, "main", "the public post", func(i enginetest.Item) bool { return i.ActivityURI == public })
	if got := far.Column(t, `SELECT uri FROM activities WHERE direction = 'inbound' AND type IN ('Create', 'Update')`); !slices.Equal(got, []string{public}) {
		t.Errorf("%s got %q, want the public post alone", far.Name, got)
	}
}
