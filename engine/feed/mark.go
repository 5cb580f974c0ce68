package feed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Reading says how far the user has read a feed.
type Reading struct {
	UpTo   *Mark       // nil: the user has not said how far
	Unread user.Unread // entries that are newer than UpTo or arrived after it was set; all for nil
}

// Mark is an entry up to which a feed is read.
type Mark struct {
	ID        uuid.UUID `json:"id"`
	Published time.Time `json:"published"`
}

// NewMark returns the mark at a place.
func NewMark(p user.Place) Mark { return Mark{p.ID, p.At.UTC()} }

// Reading returns how far the user has read a feed that All lists.
func (r *Reader) Reading(ctx context.Context, u vocab.Username, feed string) (Reading, error) {
	if !slices.Contains(All, feed) {
		return Reading{}, fault.New(fault.Invalid, "this feed has no mark").WithCode("bad_query")
	}
	reading, err := r.store.Reading(ctx, u, feed, r.filterOf(u))
	if err != nil {
		return Reading{}, fmt.Errorf("read mark of feed %s: %w", feed, err)
	}
	return reading, nil
}

// Reading implements Store.
func (d *Database) Reading(ctx context.Context, u vocab.Username, feed string, f Filter) (r Reading, err error) {
	q := user.UnreadQuery{Feed: pagesOf[feed], User: d.local.ID(u)}
	var entries []user.UnreadEntry
	err = d.databases.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		if q.Mark, err = tx.Feed.FindMark(ctx, feed); err == nil {
			entries, r.Unread.More, err = tx.Feed.ListUnread(ctx, q)
		}
		return err
	})
	if err != nil {
		return Reading{}, err
	}
	if q.Mark != nil {
		at := NewMark(q.Mark.Place)
		r.UpTo = &at
	}
	if f.byWords {
		r.Unread.Count, err = d.countShown(ctx, u, q, len(entries), f)
		return r, err
	}
	for _, e := range entries {
		if f.isShown(shownOf(e)) {
			r.Unread.Count++
		}
	}
	return r, nil
}

// pagesOf has the feeds that have a mark.
var pagesOf = map[string]user.Pages{Main: user.MainFeed, Notifications: user.NotificationsFeed, Requests: user.RequestsFeed}

// shownOf returns the parts of an unread entry that a Filter without byWords looks at.
func shownOf(e user.UnreadEntry) Shown {
	object, err := vocab.ParseDoc(slices.Concat([]byte(`{"attributedTo":`), e.Authors, []byte("}")))
	if err != nil { // the entry has no object
		object = nil
	}
	return Shown{Item: Item{ActorURI: e.Actor}, Voices: voicesOf(e.Actor, object)}
}

// countShown reads the n newest unread entries with their documents, and counts those that the
// filter shows.
func (d *Database) countShown(ctx context.Context, u vocab.Username, q user.UnreadQuery, n int, f Filter) (count int, err error) {
	var after, end *user.Place
	for n > 0 {
		read := 0
		stored, err := d.read(ctx, u, func(ctx context.Context, tx *user.Tx) ([]user.FeedItem, *user.Place, error) {
			items, err := tx.Feed.ListUnreadItems(ctx, q, after, min(n, MaxLimit))
			if read = len(items); read > 0 {
				end = &user.Place{At: items[read-1].Published, ID: items[read-1].ID}
			}
			return items, nil, err
		})
		if err != nil || read == 0 {
			return count, err
		}
		for _, e := range stored.Entries {
			if f.isShown(e) {
				count++
			}
		}
		after, n = end, n-read
	}
	return count, nil
}

// FindEntry returns the place of an entry in a feed, or nil if the feed does not have the entry.
// The feed must be one that All lists.
func FindEntry(ctx context.Context, tx *user.Tx, feed string, id uuid.UUID) (*user.Place, error) {
	if feed == Main {
		return tx.Feed.FindPlace(ctx, id)
	}
	return tx.Feed.FindActivityPlace(ctx, id, feed == Requests)
}

// FindPlace returns the place that a cursor of a feed names. The fault is Invalid for a cursor
// of another feed.
func FindPlace(u vocab.Username, feed, cursor string) (*user.Place, error) {
	return DecodeCursor(scopeOf(u, feed), cursor)
}

// scopeOf names a feed in cursors.
func scopeOf(u vocab.Username, feed string) string { return u.String() + "/feed/" + feed }
