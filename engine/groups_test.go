package engine_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// A post to a group reaches the group's members on both engines, and no other follower of its
// author. No document that arrives names the group or its members.
func postToAGroup(t *testing.T, a, b *enginetest.Instance) {
	author, neighbour := a.CreateUser(t, "greta"), a.CreateUser(t, "gustav")
	member, other := b.CreateUser(t, "gina"), b.CreateUser(t, "gerd")
	for _, u := range []*enginetest.User{neighbour, member, other} {
		u.Do(t, "Follow", map[string]any{"actorUri": author.ID})
		awaitFollows(t, u, "following accepted")
	}
	author.Do(t, "CreateGroup", map[string]any{"name": "close-friends"})
	for _, u := range []*enginetest.User{neighbour, member} {
		if d := author.Do(t, "AddToGroup", map[string]any{"name": "close-friends", "actorUri": u.Handle}); d.FederationJob != nil {
			t.Errorf("%s is told of the group: %+v", u.Name, d.FederationJob)
		}
	}
	var list struct {
		Items []struct {
			ID, Name string
			Members  []string
		}
	}
	author.Ask(t, http.MethodGet, "/api/groups", nil).Decode(t, &list)
	if len(list.Items) != 1 || list.Items[0].Name != "close-friends" || !slices.Equal(list.Items[0].Members, sorted(neighbour.ID, member.ID)) {
		t.Fatalf("/api/groups shows %+v", list)
	}
	group := list.Items[0].ID
	if got := author.Ask(t, http.MethodGet, strings.TrimPrefix(group, a.URL), nil); got.Status != http.StatusNotFound {
		t.Errorf("the group itself was answered %d, want 404 for everybody", got.Status)
	}

	create, note := author.Post(t, map[string]any{"content": "just us", "to": []string{group}})
	for _, u := range []*enginetest.User{neighbour, member} {
		u.Await(t, "main", "the post to the group", func(i enginetest.Item) bool { return i.ActivityURI == create })
		for _, raw := range u.Column(t, `SELECT raw::text FROM activities WHERE actor_uri = $1 AND type <> 'Accept' UNION ALL SELECT raw::text FROM objects WHERE raw ->> 'attributedTo' = $1`, author.ID) {
			if strings.Contains(raw, "groups") || strings.Contains(raw, "close-friends") || strings.Contains(raw, member.ID) || strings.Contains(raw, neighbour.ID) {
				t.Errorf("%s was sent %s", u.Name, raw)
			}
		}
	}
	enginetest.Eventually(t, "everything is delivered", func() bool {
		return author.Column(t, `SELECT count(*) FROM deliveries WHERE status <> 'delivered'`)[0] == "0"
	})
	author.Do(t, "UpdateObject", map[string]any{"objectId": note, "content": "just us two"})
	for _, u := range []*enginetest.User{neighbour, member} {
		enginetest.Eventually(t, u.Name+" has the new words", func() bool {
			return slices.Equal(u.Column(t, `SELECT raw ->> 'content' FROM objects WHERE uri = $1`, note), []string{"<p>just us two</p>"})
		})
	}
	answer := member.Do(t, "Reply", map[string]any{"objectId": note, "content": "glad to be here"}).ActivityID
	author.Await(t, "main", "the answer", func(i enginetest.Item) bool { return i.ActivityURI == answer })
	if got := other.Column(t, `SELECT raw::text FROM objects`); len(got) != 0 {
		t.Errorf("a follower who is not in the group has %q", got)
	}
	author.Do(t, "DeleteObject", map[string]any{"objectId": note})
	for _, u := range []*enginetest.User{neighbour, member} {
		enginetest.Eventually(t, "the post is gone from "+u.Name, func() bool {
			return slices.Equal(u.Column(t, `SELECT raw ->> 'type' FROM objects WHERE uri = $1`, note), []string{"Tombstone"})
		})
	}
}

func sorted(ids ...string) []string {
	slices.Sort(ids)
	return ids
}
