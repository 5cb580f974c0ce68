package engine_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// A pinned post and a stream can be read on another server. Followers there learn of them.
func streamsAreShownElsewhere(t *testing.T, a, b *enginetest.Instance) {
	author, reader := a.CreateUser(t, "stella"), b.CreateUser(t, "stan")
	befriend(t, reader, author)
	_, note := author.Post(t, map[string]any{"content": "a cat", "visibility": "public"})
	reader.Await(t, "main", "the post", func(i enginetest.Item) bool { return strings.Contains(i.ActivityURI, author.Name) })
	author.Do(t, "AddToStream", map[string]any{"streamId": "featured", "objectId": note})
	enginetest.Eventually(t, "the pin is known to stan's engine", func() bool {
		return len(reader.Column(t, `SELECT object_uri FROM pins WHERE actor_uri = $1`, author.ID)) == 1
	})
	stream := author.Do(t, "CreateStream", map[string]any{"name": "Cats"})
	author.Do(t, "AddToStream", map[string]any{"streamId": stream.ObjectID, "objectId": note})
	enginetest.Eventually(t, "the Add is known to stan's engine", func() bool {
		return len(reader.Column(t, `SELECT uri FROM activities WHERE type = 'Add' AND raw ->> 'target' = $1`, stream.ObjectID)) == 1
	})
	author.Do(t, "RemoveFromStream", map[string]any{"streamId": "featured", "objectId": note})
	enginetest.Eventually(t, "the pin is gone", func() bool {
		return len(reader.Column(t, `SELECT object_uri FROM pins WHERE actor_uri = $1`, author.ID)) == 0
	})
}

// A follower receives the author's articles, videos and other objects with their titles, and can
// dislike them.
func postsOfEveryTypeArrive(t *testing.T, a, b *enginetest.Instance) {
	author, reader := a.CreateUser(t, "arthur"), b.CreateUser(t, "rita")
	befriend(t, reader, author)
	for _, c := range []struct {
		action string
		params map[string]any
		shown  []string
	}{
		{"CreateArticle", map[string]any{"title": "On cats", "content": "They sleep."}, []string{`"type":"Article"`, `"name":"On cats"`}},
		{"CreateObject", map[string]any{"type": "Video", "title": "A cat", "content": "It sleeps.", "file": map[string]any{"url": "https://v.example/cat.mp4", "mediaType": "video/mp4"}},
			[]string{`"type":"Video"`, `"name":"A cat"`, `https://v.example/cat.mp4`}},
		{"CreateObject", map[string]any{"type": "Product", "title": "A chair", "content": "For cats."}, []string{`"type":"Product"`, `"name":"A chair"`}},
	} {
		made := author.Do(t, c.action, c.params)
		item := reader.Await(t, "main", c.action, func(i enginetest.Item) bool { return i.ActivityURI == made.ActivityID })
		shown := string(reader.Ask(t, http.MethodGet, "/api/feed/"+item.ID, nil).Body)
		for _, part := range c.shown {
			if !strings.Contains(shown, part) {
				t.Errorf("rita is shown %s, without %s", shown, part)
			}
		}
		disliked := reader.Do(t, "Dislike", map[string]any{"objectId": made.ObjectID})
		author.Await(t, "notifications", "a Dislike", func(i enginetest.Item) bool { return i.ActivityURI == disliked.ActivityID })
	}
}
