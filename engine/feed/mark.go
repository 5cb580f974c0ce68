package feed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Reading says how far the user has read a feed.
type Reading struct {
	UpTo   *Mark  // nil: it has not been said
	Unread Unread // the entries after that
}

// Mark is an entry up to which a feed is read.
type Mark struct {
	ID        uuid.UUID `json:"id"`
	Published time.Time `json:"published"`
}

// Unread counts entries that are not read.
type Unread struct {
	Count int  `json:"count"`
	More  bool `json:"more,omitempty"` // there are, or may be, more than were counted
}

// NewMark returns the mark at a place.
func NewMark(p db.Place) Mark { return Mark{p.ID, p.At.UTC()} }

// Reading returns how far the user has read one of All.
func (r *Reader) Reading(ctx context.Context, u vocab.Username, feed string) (Reading, error) {
	if !slices.Contains(All, feed) {
		return Reading{}, fault.New(fault.Invalid, "this feed has no mark").WithCode("bad_query")
	}
	reading, err := r.store.Reading(ctx, u, feed)
	if err != nil {
		return Reading{}, fmt.Errorf("read mark of feed %s: %w", feed, err)
	}
	return reading, nil
}

// Reading is Store's.
func (d *Database) Reading(ctx context.Context, u vocab.Username, feed string) (r Reading, err error) {
	err = d.databases.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		mark, err := tx.FeedMark(ctx, feed)
		if err != nil {
			return err
		}
		if mark != nil {
			at := NewMark(*mark)
			r.UpTo = &at
		}
		unread, err := d.countUnread(ctx, tx, u, feed, mark)
		r.Unread = Unread{unread.Count, unread.More}
		return err
	})
	return r, err
}

// countUnread counts the entries of one of All after a mark.
func (d *Database) countUnread(ctx context.Context, tx *db.Tx, u vocab.Username, feed string, mark *db.Place) (db.Unread, error) {
	switch feed {
	case Notifications:
		return tx.UnreadNotifications(ctx, d.local.ID(u), mark)
	case Requests:
		return tx.UnreadRequests(ctx, mark)
	}
	return tx.UnreadFeed(ctx, d.local.ID(u), mark)
}

// FindEntry returns the place of an entry in one of All, nil when it is not there.
func FindEntry(ctx context.Context, tx *db.Tx, feed string, id uuid.UUID) (*db.Place, error) {
	if feed == Main {
		return tx.FeedPlace(ctx, id)
	}
	return tx.ActivityPlace(ctx, id, feed == Requests)
}

// FindPlace returns the place that a cursor of a feed names. The fault is Invalid for another
// feed's.
func FindPlace(u vocab.Username, feed, cursor string) (*db.Place, error) {
	return DecodeCursor(scopeOf(u, feed), cursor)
}

// scopeOf names a feed in cursors.
func scopeOf(u vocab.Username, feed string) string { return u.String() + "/feed/" + feed }
