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
	Unread user.Unread // the entries after UpTo
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
	reading, err := r.store.Reading(ctx, u, feed)
	if err != nil {
		return Reading{}, fmt.Errorf("read mark of feed %s: %w", feed, err)
	}
	return reading, nil
}

// Reading implements Store.
func (d *Database) Reading(ctx context.Context, u vocab.Username, feed string) (r Reading, err error) {
	err = d.databases.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		mark, err := tx.Feed.FindMark(ctx, feed)
		if err != nil {
			return err
		}
		if mark != nil {
			at := NewMark(*mark)
			r.UpTo = &at
		}
		r.Unread, err = d.countUnread(ctx, tx, u, feed, mark)
		return err
	})
	return r, err
}

// countUnread counts the entries after a mark, in a feed that All lists.
func (d *Database) countUnread(ctx context.Context, tx *user.Tx, u vocab.Username, feed string, mark *user.Place) (user.Unread, error) {
	switch feed {
	case Notifications:
		return tx.Feed.CountUnreadNotifications(ctx, d.local.ID(u), mark)
	case Requests:
		return tx.Feed.CountUnreadRequests(ctx, mark)
	}
	return tx.Feed.CountUnread(ctx, d.local.ID(u), mark)
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
