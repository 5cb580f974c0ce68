package feed

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The feeds.
const (
	Main          = "main"          // what was written and announced
	Notifications = "notifications" // what others do towards the user
)

// Bounds of a page.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// Store reads one consistent state of a user's database.
type Store interface {
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
}

// Local knows the ids of users.
type Local interface {
	ID(u vocab.Username) vocab.ID
}

// Gate says whether an actor may be heard: nil, or why not.
type Gate interface {
	CheckActor(id vocab.ID) error
}

// Reader reads feeds.
type Reader struct {
	store Store
	local Local
	gate  Gate
}

// New returns a reader of the feeds in store. What comes from an actor whom gate refuses, and what others pass on of such
// an actor's, stays there and is not shown.
func New(store Store, local Local, gate Gate) *Reader { return &Reader{store, local, gate} }

// Page returns up to limit entries of a feed after a cursor, the newest first, and fewer when they are large; with an empty
// cursor those at its beginning, and with limit 0 as many as DefaultLimit. Entries that are added meanwhile move no place.
// Those that are not shown leave the page shorter. The fault is
// NotFound for a feed there is not, Invalid for a limit out of bounds or a cursor of another feed or user.
func (r *Reader) Page(ctx context.Context, u vocab.Username, feed, cursor string, limit int) (Page, error) {
	if feed != Main && feed != Notifications {
		return Page{}, fault.New(fault.NotFound, "there is no such feed").WithCode("no_such_feed")
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	if limit < 1 || limit > MaxLimit {
		return Page{}, fault.New(fault.Invalid, fmt.Sprintf("the limit must be 1 to %d", MaxLimit)).WithCode("bad_limit")
	}
	scope := u.String() + "/feed/" + feed
	after, err := DecodeCursor(scope, cursor)
	if err != nil {
		return Page{}, err
	}
	var rows []db.FeedItem
	err = r.store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		if feed == Notifications {
			rows, err = tx.Notifications(ctx, r.local.ID(u), after, limit+1)
		} else {
			rows, err = tx.Feed(ctx, after, limit+1)
		}
		return err
	})
	if err != nil {
		return Page{}, fmt.Errorf("read feed %s: %w", feed, err)
	}
	return r.pageOf(scope, rows, limit), nil
}

// pageOf makes a page of up to limit rows, and of no more than db.MaxFeed bytes unless one row alone is larger; one row
// more tells that another page follows.
func (r *Reader) pageOf(scope string, rows []db.FeedItem, limit int) Page {
	page := Page{Items: make([]Item, 0, min(len(rows), limit))}
	all := 0
	for n, row := range rows {
		if all += row.Bytes(); n == limit || n > 0 && all > db.MaxFeed {
			last := rows[n-1]
			page.Next = EncodeCursor(scope, db.Place{At: last.Published, ID: last.ID})
			break
		}
		if item, shown := r.itemOf(row); shown {
			page.Items = append(page.Items, item)
		}
	}
	return page
}

// Item returns one entry of any feed; the fault is NotFound.
func (r *Reader) Item(ctx context.Context, u vocab.Username, id uuid.UUID) (Item, error) {
	var row *db.FeedItem
	err := r.store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		if row, err = tx.FeedByID(ctx, id); row == nil && err == nil {
			row, err = tx.ActivityItem(ctx, id) // a notification is known by its activity
		}
		return err
	})
	if err != nil {
		return Item{}, fmt.Errorf("read feed entry: %w", err)
	}
	if row != nil {
		if item, shown := r.itemOf(*row); shown {
			return item, nil
		}
	}
	return Item{}, fault.New(fault.NotFound, "there is no such entry")
}
