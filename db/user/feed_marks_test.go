package user_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAMarkMovesForward(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	low, high := uuid.UUID{1}, uuid.UUID{2}
	for _, tt := range []struct {
		feed  string
		place user.Place
		moves bool
	}{
		{"main", user.Place{At: now, ID: low}, true},
		{"main", user.Place{At: now, ID: low}, false},
		{"main", user.Place{At: now.Add(-time.Hour), ID: high}, false},
		{"main", user.Place{At: now, ID: high}, true},
		{"requests", user.Place{At: now.Add(-time.Hour), ID: low}, true},
		{"main", user.Place{At: now.Add(time.Hour), ID: low}, true},
	} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			moved, err := tx.Feed.MoveMark(ctx, tt.feed, tt.place)
			if moved != tt.moves {
				t.Errorf("%s to %+v: moved %v, want %v", tt.feed, tt.place, moved, tt.moves)
			}
			return err
		})
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		mark, err := tx.Feed.FindMark(ctx, "main")
		if err != nil || mark == nil || mark.ID != low || !mark.At.Equal(now.Add(time.Hour)) {
			t.Errorf("the mark is %+v, %v", mark, err)
		}
		if none, err := tx.Feed.FindMark(ctx, "notifications"); none != nil || err != nil {
			t.Errorf("a mark that nobody made is %+v, %v", none, err)
		}
		return nil
	})
}

func TestUnreadEntriesAreCounted(t *testing.T) {
	t.Parallel()
	const me vocab.ID = "https://here.example/users/alice"
	c, u := alice(t)
	follow := func(ctx context.Context, tx *user.Tx, n int) error {
		uri := vocab.ID(fmt.Sprintf("%s/follows/%d", bob, n))
		return tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: uri, Direction: user.Inbound, Type: "Follow", Actor: bob, Object: me, Published: now.Add(time.Duration(n) * time.Second), Raw: []byte(`{}`)})
	}
	counts := func(place *user.Place) (all [3]user.Unread) {
		t.Helper()
		var mark *user.Mark
		if place != nil {
			mark = &user.Mark{Place: *place, Moment: time.Now().Add(time.Hour)} // later than all arrivals of this test
		}
		read(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
			for n, feed := range []user.Pages{user.MainFeed, user.NotificationsFeed, user.RequestsFeed} {
				entries, more, err := tx.Feed.ListUnread(ctx, user.UnreadQuery{Feed: feed, User: me, Mark: mark})
				if err != nil {
					return err
				}
				all[n] = user.Unread{Count: len(entries), More: more}
			}
			return nil
		})
		return all
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n := range 4 {
			if err := addNote(ctx, tx, bob, n, now.Add(time.Duration(n)*time.Second)); err != nil {
				return err
			}
			if err := follow(ctx, tx, n); err != nil {
				return err
			}
		}
		if err := addNote(ctx, tx, me, 9, now.Add(time.Hour)); err != nil { // a post of the user's own
			return err
		}
		a, _, _ := note(carol, 1, now.Add(time.Minute))
		if err := tx.Activities.Add(ctx, a); err != nil {
			return err
		}
		return tx.Requests.Add(ctx, user.Request{Activity: a.URI, Actor: carol, Host: "c"}, now)
	})
	for _, tt := range []struct {
		name string
		mark *user.Place
		want [3]user.Unread
	}{
		{"no mark", nil, [3]user.Unread{{Count: 4}, {Count: 4}, {Count: 1}}},
		{"a mark among them", &user.Place{At: now.Add(1500 * time.Millisecond)}, [3]user.Unread{{Count: 2}, {Count: 2}, {Count: 1}}},
		{"a mark behind", &user.Place{At: now.Add(2 * time.Hour)}, [3]user.Unread{}},
	} {
		if got := counts(tt.mark); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	dbtest.Run(t, databaseOf(t, c, u), `WITH f AS (INSERT INTO feed (id, activity_uri, actor_uri, published)
			SELECT gen_random_uuid(), 'https://many.example/' || n, $1, $2::timestamptz + make_interval(secs => n) FROM generate_series(1, 2100) n RETURNING *)
		INSERT INTO activities (id, uri, direction, type, actor_uri, object_uri, published, raw) SELECT id, activity_uri, 'inbound', 'Like', actor_uri, 'https://else.example/', published, '{}' FROM f`,
		string(bob), now.Add(3*time.Hour))
	if got, want := counts(&user.Place{At: now.Add(2 * time.Hour)}), [3]user.Unread{{Count: 1000, More: true}, {More: true}, {}}; got != want {
		t.Errorf("of more than are counted: %+v, want %+v", got, want)
	}
}

// A mark covers the entries that had arrived when it was made. Entries that arrive later are
// unread until the next mark, even if they are dated before the mark.
func TestEntriesThatArriveAfterAMarkAreUnread(t *testing.T) {
	t.Parallel()
	const me vocab.ID = "https://here.example/users/alice"
	c, u := alice(t)
	arrive := func(n int, at time.Time) {
		t.Helper()
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			if err := addNote(ctx, tx, bob, n, at); err != nil {
				return err
			}
			follow := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: vocab.ID(fmt.Sprintf("%s/follows/%d", bob, n)), Direction: user.Inbound, Type: "Follow", Actor: bob, Object: me, Published: at, Raw: []byte(`{}`)}
			if err := tx.Activities.Add(ctx, follow); err != nil {
				return err
			}
			a, _, _ := note(carol, n, at)
			if err := tx.Activities.Add(ctx, a); err != nil {
				return err
			}
			return tx.Requests.Add(ctx, user.Request{Activity: a.URI, Actor: carol, Host: "c"}, now)
		})
	}
	feeds := map[string]user.Pages{"main": user.MainFeed, "notifications": user.NotificationsFeed, "requests": user.RequestsFeed}
	mark := func(moves bool) {
		t.Helper()
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			for feed := range feeds {
				moved, err := tx.Feed.MoveMark(ctx, feed, user.Place{At: now.Add(5 * time.Minute), ID: uuid.Max})
				if err != nil || moved != moves {
					return fmt.Errorf("the mark of %s moved: %t, %w; want %t", feed, moved, err, moves)
				}
			}
			return nil
		})
	}
	want := func(when string, unread int) {
		t.Helper()
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			for feed, pages := range feeds {
				mark, err := tx.Feed.FindMark(ctx, feed)
				if err != nil {
					return err
				}
				q := user.UnreadQuery{Feed: pages, User: me, Mark: mark}
				entries, more, err := tx.Feed.ListUnread(ctx, q)
				if err != nil || len(entries) != unread || more {
					t.Errorf("%s, %s has %d unread entries, more %t, %v; want %d", when, feed, len(entries), more, err, unread)
				}
				if items, err := tx.Feed.ListUnreadItems(ctx, q, nil, 9); err != nil || len(items) != unread {
					t.Errorf("%s, %s has %d unread items, %v; want %d", when, feed, len(items), err, unread)
				}
			}
			return nil
		})
	}
	arrive(1, now.Add(5*time.Minute))
	want("unmarked", 1)
	mark(true)
	want("marked", 0)
	arrive(2, now)
	want("after an entry with an earlier date", 1)
	arrive(3, now.Add(6*time.Minute))
	want("after an entry with a later date", 2)
	mark(false)
	want("marked again", 1)
}
