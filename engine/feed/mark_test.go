package feed_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
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
