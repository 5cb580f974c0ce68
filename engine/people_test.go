package engine_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// A client finds a user of another server by a handle, lists the pending and the accepted
// followers, and mentions a user by a handle.
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

	create, post := pia.Post(t, map[string]any{"content": "hello " + paul.Handle + ", see https://example.org/ #greeting"})
	item := paul.Await(t, "notifications", "a mention", func(i enginetest.Item) bool { return i.ActivityURI == create })
	shown := string(paul.Ask(t, http.MethodGet, "/api/feed/"+item.ID, nil).Body)
	for _, part := range []string{`u-url mention`, `href=\"` + pageOf(paul.ID) + `\"`, `href=\"https://example.org/\"`, `"name":"#greeting"`, `"name":"` + paul.Handle + `"`} {
		if !strings.Contains(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(shown), part) {
			t.Errorf("paul is shown %s, without %s", shown, part)
		}
	}
	browsed(t, paul.ID, pageOf(paul.ID), paul.Handle)
	browsed(t, post, pageOf(post), "#greeting")
}

// pageOf returns the address of the page of the user or post with the given id.
func pageOf(id string) string {
	return strings.NewReplacer("/users/", "/@", "/objects/", "/").Replace(id)
}

// browsed fails the test unless a browser that asks for an id is redirected to its page, and the
// page contains the words.
func browsed(t *testing.T, id, page, words string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if at := res.Request.URL.String(); err != nil || res.StatusCode != http.StatusOK || at != page || !strings.Contains(string(body), words) {
		t.Errorf("a browser that asks for %s gets %d from %s, want %s with %q: %s", id, res.StatusCode, at, page, words, body)
	}
}
