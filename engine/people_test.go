package engine_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// A program finds somebody on another server by a handle, sees who waits and who follows, and
// mentions somebody by writing the handle.
func peopleAreFoundAndMentioned(t *testing.T, a, b *enginetest.Instance) {
	pia, paul := a.CreateUser(t, "pia"), b.CreateUser(t, "paul")
	paul.Configure(t, `{"follow_policy":"approval_required"}`)
	between := func() (tie string) {
		var found struct {
			URI          string
			Relationship struct{ Following string }
		}
		answer := pia.Ask(t, http.MethodGet, "/api/actors?handle="+url.QueryEscape(paul.Handle), nil)
		if answer.Status != http.StatusOK {
			t.Fatalf("%s is not found: %d %s", paul.Handle, answer.Status, answer.Body)
		}
		if answer.Decode(t, &found); found.URI != paul.ID {
			t.Fatalf("%s is found as %s", paul.Handle, found.URI)
		}
		return found.Relationship.Following
	}
	waits := func(query string) (actors []string) {
		var page struct{ Items []struct{ ActorURI string } }
		paul.Ask(t, http.MethodGet, "/api/relationships?"+query, nil).Decode(t, &page)
		for _, i := range page.Items {
			actors = append(actors, i.ActorURI)
		}
		return actors
	}
	if tie := between(); tie != "none" {
		t.Errorf("before the Follow, it stands at %q", tie)
	}
	enginetest.Eventually(t, "paul wants to approve", func() bool {
		var me struct{ ApprovesFollows bool }
		paul.Ask(t, http.MethodGet, "/api/actors?uri="+url.QueryEscape(paul.ID), nil).Decode(t, &me)
		return me.ApprovesFollows
	})
	pia.Do(t, "Follow", map[string]any{"actorUri": paul.Handle})
	enginetest.Eventually(t, "pia waits", func() bool { return len(waits("type=follower&status=pending")) == 1 })
	if tie := between(); tie != "pending" {
		t.Errorf("before the Accept, it stands at %q", tie)
	}
	paul.Do(t, "AcceptFollow", map[string]any{"actorUri": waits("type=follower&status=pending")[0]})
	enginetest.Eventually(t, "pia follows paul", func() bool { return between() == "accepted" })
	if followers := waits("type=follower&status=accepted"); len(followers) != 1 || followers[0] != pia.ID {
		t.Errorf("paul is followed by %q", followers)
	}

	create, _ := pia.Post(t, map[string]any{"content": "hello " + paul.Handle + ", see https://example.org/ #greeting"})
	item := paul.Await(t, "notifications", "a mention", func(i enginetest.Item) bool { return i.ActivityURI == create })
	shown := string(paul.Ask(t, http.MethodGet, "/api/feed/"+item.ID, nil).Body)
	for _, part := range []string{`u-url mention`, `href=\"` + paul.ID + `\"`, `href=\"https://example.org/\"`, `"name":"#greeting"`, `"name":"` + paul.Handle + `"`} {
		if !strings.Contains(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(shown), part) {
			t.Errorf("paul is shown %s, without %s", shown, part)
		}
	}
}
