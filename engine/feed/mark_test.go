package feed_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestReadingSaysHowFarAFeedIsRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var last user.Activity
	for n := range 3 {
		last = f.receive(fmt.Sprint(n), "Create", "", string(local{}.ID(f.alice)), start.Add(time.Duration(n)*time.Second))
	}
	for _, name := range []string{feed.Main, feed.Notifications} {
		if got, err := f.Reading(t.Context(), f.alice, name); err != nil || got.UpTo != nil || got.Unread != (user.Unread{Count: 3}) {
			t.Errorf("%s, never marked: %+v, %v", name, got, err)
		}
		page, err := f.Page(t.Context(), f.alice, name, "", 2)
		if err != nil {
			t.Fatal(err)
		}
		after, err := feed.FindPlace(f.alice, name, page.Next)
		if err != nil || [16]byte(page.Items[1].ID) != after.ID {
			t.Errorf("%s: the cursor of a page ends at %+v, %v", name, after, err)
		}
		f.write(func(ctx context.Context, tx *user.Tx) error {
			place, err := feed.FindEntry(ctx, tx, name, page.Items[1].ID)
			if err != nil || place == nil {
				t.Fatalf("%s: the place of an entry is %v, %v", name, place, err)
			}
			_, err = tx.Feed.MoveMark(ctx, name, *place)
			return err
		})
		got, err := f.Reading(t.Context(), f.alice, name)
		if err != nil || got.UpTo == nil || got.UpTo.ID != page.Items[1].ID || !got.UpTo.Published.Equal(start.Add(time.Second)) || got.Unread != (user.Unread{Count: 1}) {
			t.Errorf("%s, marked: %+v, %v", name, got, err)
		}
	}
	if _, err := f.Reading(t.Context(), f.alice, "tag.go"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a feed by a criterion: %v, want Invalid", err)
	}
	f.write(func(ctx context.Context, tx *user.Tx) error {
		if place, err := feed.FindEntry(ctx, tx, feed.Requests, last.ID); place != nil || err != nil {
			t.Errorf("a notification among the requests: %v, %v", place, err)
		}
		return nil
	})
}

// Notifications and boosts count as unread only if they are shown.
func TestOnlyShownEntriesAreUnread(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const bob, carol vocab.ID = "https://peer.example/users/bob", "https://other.example/users/carol"
	f.receive("like", "Like", local{}.ID(f.alice)+"/objects/1", "", start)
	f.object("https://other.example/notes/1", `{"id":"https://other.example/notes/1","type":"Note","attributedTo":["https://other.example/users/carol"]}`)
	boost := f.receive("boost", "Announce", "https://other.example/notes/1", "", start.Add(time.Second))
	f.write(func(ctx context.Context, tx *user.Tx) error {
		return tx.Feed.Add(ctx, user.FeedEntry{ID: boost.ID, Activity: boost.URI, Actor: boost.Actor, Published: boost.Published})
	})
	for _, tt := range []struct {
		refused             vocab.ID
		main, notifications int
	}{{"", 1, 1}, {carol, 0, 1}, {bob, 0, 0}} {
		clear(f.gate)
		f.gate[tt.refused] = true
		for name, want := range map[string]int{feed.Main: tt.main, feed.Notifications: tt.notifications} {
			page, err := f.Page(t.Context(), f.alice, name, "", 0)
			if err != nil || len(page.Items) != want {
				t.Errorf("%s without %q shows %d entries, %v; want %d", name, tt.refused, len(page.Items), err, want)
			}
			if got, err := f.Reading(t.Context(), f.alice, name); err != nil || got.Unread != (user.Unread{Count: want}) {
				t.Errorf("%s without %q: %+v are unread, %v; want %d", name, tt.refused, got.Unread, err, want)
			}
		}
	}
}
