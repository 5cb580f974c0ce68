package server_test

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/feed"
)

func TestAPageSaysHowMuchIsUnreadWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Feed.MoveMark(ctx, feed.Main, user.Place{At: start, ID: [16]byte{1}})
		return err
	})
	read := bearerToken(f.token(f.alice, "read"))
	type page struct {
		Unread   *struct{ Count int }
		ReadUpTo *struct{ ID string }
	}
	var with, without, never page
	f.get("/api/feed?unread=true", read).want(t, 200).decode(t, &with)
	if with.Unread == nil || with.Unread.Count != 0 || with.ReadUpTo == nil || with.ReadUpTo.ID != "01000000-0000-0000-0000-000000000000" {
		t.Errorf("asked for, a page says %+v", with)
	}
	f.get("/api/feed?unread=false", read).want(t, 200).decode(t, &without)
	if without.Unread != nil || without.ReadUpTo != nil {
		t.Errorf("not asked for, a page says %+v", without)
	}
	f.get("/api/feed?feed=notifications&unread=true", read).want(t, 200).decode(t, &never)
	if never.Unread == nil || never.ReadUpTo != nil {
		t.Errorf("a page of a feed that was never marked says %+v", never)
	}
	f.get("/api/feed?feed=requests&unread=true", read).want(t, 200)
	f.get("/api/feed?feed=requests&unread=true", bearerToken(f.token(f.alice, "llm"))).want(t, 403)
	f.get("/api/feed?unread=maybe", read).want(t, 400)
	f.get("/api/feed?feed=tag.go&unread=true", read).want(t, 400)
}
