package feed_test

import (
	"log/slog"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Once a post is muted, the next page does not show it, even if the post was shown and cached
// before. It is shown again once the user unmutes it.
func TestMutesHoldForWhatWasThereBefore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.reads.files = registry.New(t.TempDir(), t.TempDir(), slog.New(slog.DiscardHandler))
	if err := f.reads.files.CreateUser(f.alice); err != nil {
		t.Fatal(err)
	}
	const bob vocab.ID = "https://peer.example/users/bob"
	f.receive("plain", "Create", "", "x", start)
	f.object("https://peer.example/notes/1", `{"id":"https://peer.example/notes/1","type":"Note","attributedTo":"https://peer.example/users/bob","content":"<p>a SPOILER!</p>"}`)
	f.receive("spoils", "Create", "https://peer.example/notes/1", "x", start)
	for _, c := range []struct {
		mutes registry.Moderation
		shown int
	}{
		{registry.Moderation{}, 2},
		{registry.Moderation{MutedKeywords: []string{"spoiler"}}, 1},
		{registry.Moderation{MutedActors: []vocab.ID{bob}}, 0},
		{registry.Moderation{MutedDomains: []string{"peer.example"}}, 0},
		{registry.Moderation{MutedActors: []vocab.ID{bob + "by"}, MutedKeywords: []string{"spoil"}}, 2},
		{registry.Moderation{}, 2},
	} {
		err := f.reads.files.UpdateUser(f.alice, func(now *registry.User) error {
			now.Moderation = c.mutes
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		page, err := f.Page(t.Context(), f.alice, feed.Main, "", 0)
		if err != nil || len(page.Items) != c.shown {
			t.Errorf("with %+v muted %d are shown, %v; want %d", c.mutes, len(page.Items), err, c.shown)
		}
		if got, err := f.Reading(t.Context(), f.alice, feed.Main); err != nil || got.Unread != (user.Unread{Count: c.shown}) {
			t.Errorf("with %+v muted %+v are unread, %v; want %d", c.mutes, got.Unread, err, c.shown)
		}
	}
}
