package user_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// selected reads a feed by a criterion to its end, in pages of n entries. It returns the
// activities that it found, and the number of pages.
func selected(t *testing.T, c *dbtest.Cluster, u vocab.Username, n int, read func(context.Context, *user.Tx, *user.Place, int) ([]user.FeedItem, *user.Place, error)) (all []vocab.ID, pages int) {
	t.Helper()
	for after, more := (*user.Place)(nil), true; more; pages++ {
		err := c.Read(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
			items, end, err := read(ctx, tx, after, n)
			if len(items) > n {
				t.Errorf("%d entries, want up to %d", len(items), n)
			}
			for _, i := range items {
				all = append(all, i.Activity)
			}
			after, more = end, end != nil
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all, pages
}

// A feed by a criterion returns only matching entries, in order. One page scans only a limited
// number of entries, even if none of them matches.
func TestAFeedByACriterionLooksAtSoManyEntries(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var want []vocab.ID
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n, at := range []time.Duration{-time.Hour, time.Hour, 0} { // one post is before bob's 4,400, one after them, one among them
			a, _, _ := note(carol, n, now)
			if err := addNote(ctx, tx, carol, n, now.Add(at)); err != nil {
				return err
			}
			want = append(want, a.URI)
		}
		return nil
	})
	want = []vocab.ID{want[1], want[2], want[0]}
	dbtest.Run(t, databaseOf(t, c, u), `WITH f AS (INSERT INTO feed (id, activity_uri, actor_uri, published)
			SELECT gen_random_uuid(), 'https://many.example/' || n, $1, $2::timestamptz + make_interval(secs => n - 2200) FROM generate_series(1, 4400) n RETURNING *)
		INSERT INTO activities (id, uri, direction, type, actor_uri, published, raw) SELECT id, activity_uri, 'inbound', 'Create', actor_uri, published, '{}' FROM f`, string(bob), now)
	byCarol := func(ctx context.Context, tx *user.Tx, after *user.Place, n int) ([]user.FeedItem, *user.Place, error) {
		return tx.Feed.ListOfActors(ctx, []vocab.ID{"https://x.example/", carol}, after, n)
	}
	for n, pages := range map[int]int{5: 3, 1: 6} { // the feed has 4,403 entries; a page ends early once it has n matches
		got, took := selected(t, c, u, n, byCarol)
		if d := cmp.Diff(want, got); d != "" || took != pages {
			t.Errorf("%d at once, %d pages, want %d (-want +got):\n%s", n, took, pages, d)
		}
	}
	if got, _ := selected(t, c, u, 100, func(ctx context.Context, tx *user.Tx, after *user.Place, n int) ([]user.FeedItem, *user.Place, error) {
		return tx.Feed.ListOfActors(ctx, []vocab.ID{bob}, after, n)
	}); len(got) != 4400 {
		t.Errorf("%d entries of bob's, want 4400", len(got))
	}
	if got, _ := selected(t, c, u, 5, func(ctx context.Context, tx *user.Tx, after *user.Place, n int) ([]user.FeedItem, *user.Place, error) {
		return tx.Feed.ListOfActors(ctx, nil, after, n)
	}); len(got) != 0 {
		t.Errorf("entries of nobody's: %v", got)
	}
}

// A post has the tags in its hashtags, in its free tags and in its metadata. Upper and lower case
// do not matter. A boost has the tags of the boosted post.
func TestAFeedOfATagHasThePostsWithIt(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	var want []vocab.ID
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n, tt := range []struct {
			fields string
			has    bool
		}{
			{`"tag":[{"type":"Mention","name":"@go"},{"type":"Hashtag","name":"#Go"}]`, true},
			{`"tag":{"type":["Hashtag"],"name":"go"}`, true},
			{`"lwTags":["two words","GO"]`, true},
			{`"lwMetadata":{"tags":["go"]}`, true},
			{`"lwMetadata":{"tags":["gopher"]}`, false},
			{`"tag":{"type":"Mention","name":"go"}`, false},
			{`"tag":[7,null,"go",{"type":"Hashtag","name":{"x":"go"}}],"lwTags":7,"lwMetadata":"go"`, false},
			{`"tag":{"type":"Hashtag","name":"#gö"}`, false},
		} {
			a, o, f := note(bob, n, now.Add(time.Duration(-n)*time.Second))
			o.Raw = fmt.Appendf(nil, `{"id":%q,"type":"Note","attributedTo":%q,%s}`, o.URI, bob, tt.fields)
			if _, err := tx.Objects.Add(ctx, o); err != nil {
				return err
			}
			if err := tx.Activities.Add(ctx, a); err != nil {
				return err
			}
			if err := tx.Feed.Add(ctx, f); err != nil {
				return err
			}
			if tt.has {
				want = append(want, a.URI)
			}
		}
		_, o, _ := note(bob, 0, now)
		boost := user.Activity{ID: uuid.New(), URI: carol + "/boost", Direction: user.Inbound, Type: vocab.Announce, Actor: carol, Object: o.URI, Published: now, Raw: []byte(`{}`)}
		if err := tx.Activities.Add(ctx, boost); err != nil {
			return err
		}
		want = append([]vocab.ID{boost.URI}, want...)
		return tx.Feed.Add(ctx, user.FeedEntry{ID: uuid.New(), Activity: boost.URI, Actor: carol, Published: now.Add(time.Second)})
	})
	ofTag := func(tag string) func(context.Context, *user.Tx, *user.Place, int) ([]user.FeedItem, *user.Place, error) {
		return func(ctx context.Context, tx *user.Tx, after *user.Place, n int) ([]user.FeedItem, *user.Place, error) {
			return tx.Feed.ListOfTag(ctx, tag, after, n)
		}
	}
	got, _ := selected(t, c, u, 2, ofTag("go"))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("#go (-want +got):\n%s", d)
	}
	if got, _ := selected(t, c, u, 2, ofTag("GÖ")); len(got) != 1 {
		t.Errorf("#GÖ is in %v, want one", got)
	}
}
