package engine_test

import (
	"slices"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// A user who mutes an actor no longer sees the actor's posts. After the mute ends, the user sees
// the posts that are older than the mute again.
func mutesHold(t *testing.T, a, b *enginetest.Instance) {
	author, reader := a.CreateUser(t, "maud"), b.CreateUser(t, "mia")
	befriend(t, reader, author)
	shows := func(feed, activity string) bool {
		return slices.ContainsFunc(reader.Feed(t, feed), func(i enginetest.Item) bool { return i.ActivityURI == activity })
	}
	before, _ := author.Post(t, map[string]any{"content": "good morning", "visibility": "public"})
	enginetest.Eventually(t, "mia is shown it", func() bool { return shows("main", before) })
	reader.Configure(t, `{"moderation":{"muted_actors":["`+author.ID+`"]}}`)
	enginetest.Eventually(t, "mia is shown it no more", func() bool { return !shows("main", before) })
	muted, _ := author.Post(t, map[string]any{"content": "hello " + reader.Handle, "visibility": "public"})
	enginetest.Eventually(t, "the mention is stored", func() bool {
		return len(reader.Column(t, `SELECT uri FROM activities WHERE uri = $1`, muted)) == 1
	})
	if shows("main", muted) || shows("notifications", muted) {
		t.Error("mia is shown a post of an actor that she mutes")
	}
	reader.Configure(t, `{}`)
	enginetest.Eventually(t, "mia is shown again what came before", func() bool { return shows("main", before) })
	if shows("main", muted) {
		t.Error("a post that was muted when it came is in the feed")
	}
}
