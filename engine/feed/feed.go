package feed

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The feeds.
const (
	Main          = "main"          // what was written and announced
	Notifications = "notifications" // what others do towards the user
	Requests      = "requests"      // private messages of strangers
)

// Bounds of a page.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// Store reads one consistent state of a user's database, and writes to it.
type Store interface {
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
}

// Local knows the users.
type Local interface {
	ID(u vocab.Username) vocab.ID
	Owner(id vocab.ID) (vocab.Username, bool)
	Document(u vocab.Username) (vocab.Doc, error)
}

// Profiles tells which languages a user reads.
type Profiles interface {
	User(u vocab.Username) registry.User
}

// Gate says whether an actor may be heard: nil, or why not.
type Gate interface {
	CheckActor(id vocab.ID) error
}

// Reader reads feeds.
type Reader struct {
	store    Store
	local    Local
	gate     Gate
	profiles Profiles
	hasEmoji func(kind string) bool
}

// New returns a reader of the feeds in store. What comes from an actor that gate refuses, and what
// others pass on of such an actor's, stays there and is not shown. hasEmoji reports whether the
// content of a type of activity is an emoji.
func New(store Store, local Local, gate Gate, profiles Profiles, hasEmoji func(kind string) bool) *Reader {
	return &Reader{store, local, gate, profiles, hasEmoji}
}

// Page returns up to limit entries of a feed after a cursor, the newest first, and fewer when they
// are large; with an empty cursor those at its beginning, and with limit 0 as many as
// DefaultLimit. Entries that are added meanwhile move no place. Those that are not shown leave the
// page shorter. The fault is NotFound for a feed there is not, Invalid for a limit out of bounds
// or a cursor of another feed or user.
func (r *Reader) Page(ctx context.Context, u vocab.Username, feed, cursor string, limit int) (Page, error) {
	if feed != Main && feed != Notifications && feed != Requests {
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
	var page Page
	err = r.read(ctx, u, &page, func(ctx context.Context, tx *db.Tx) (rows []db.FeedItem, err error) {
		switch feed {
		case Notifications:
			rows, err = tx.Notifications(ctx, r.local.ID(u), after, limit+1)
		case Requests:
			rows, err = tx.Requests(ctx, after, limit+1)
		default:
			rows, err = tx.Feed(ctx, after, limit+1)
		}
		rows, page.Next = cut(scope, rows, limit)
		return rows, err
	})
	if err != nil {
		return Page{}, fmt.Errorf("read feed %s: %w", feed, err)
	}
	return page, nil
}

// cut returns up to limit rows, and no more than db.MaxFeed bytes unless one row alone is larger.
// One row more tells that another page follows, after the cursor that it returns.
func cut(scope string, rows []db.FeedItem, limit int) (kept []db.FeedItem, next string) {
	all := 0
	for n, row := range rows {
		if all += row.Bytes(); n == limit || n > 0 && all > db.MaxFeed {
			last := rows[n-1]
			return rows[:n], EncodeCursor(scope, db.Place{At: last.Published, ID: last.ID})
		}
	}
	return rows, ""
}

// read makes items of the rows that find returns, and collects the actors of those that are shown.
// What it had to make for readers because it was stored before that was done, it keeps afterwards.
func (r *Reader) read(ctx context.Context, u vocab.Username, page *Page, find func(context.Context, *db.Tx) ([]db.FeedItem, error)) error {
	var entries []entry
	err := r.store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		rows, err := find(ctx, tx)
		if err != nil {
			return err
		}
		entries = r.entries(rows)
		page.Actors, err = r.cards(ctx, tx, entries)
		return err
	})
	if err != nil {
		return err
	}
	languages := r.profiles.User(u).Languages
	page.Items = make([]Item, len(entries))
	for n, e := range entries {
		page.Items[n] = e.item(languages, page.Actors[e.authorOrActor()].Followers, r.hasEmoji(e.Type))
	}
	if made := unmade(entries); len(made) > 0 {
		// What is not kept is made again by the next reader.
		_ = r.store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error { return tx.SetReadable(ctx, made) })
	}
	return nil
}

func (r *Reader) entries(rows []db.FeedItem) []entry {
	shown := make([]entry, 0, len(rows))
	for _, row := range rows {
		if e, readable := parseItem(row); readable && r.isShown(e) {
			shown = append(shown, e)
		}
	}
	return shown
}

// cards returns how the actors and authors of the entries are shown: local users as they are now,
// others as the user's copies say, and those without a copy by nothing.
func (r *Reader) cards(ctx context.Context, tx *db.Tx, entries []entry) (map[vocab.ID]vocab.Card, error) {
	cards := map[vocab.ID]vocab.Card{}
	var others []vocab.ID
	for _, e := range entries {
		for _, id := range []vocab.ID{e.Actor, e.author} {
			if _, known := cards[id]; known || id == "" {
				continue
			}
			cards[id] = vocab.Card{}
			if u, local := r.local.Owner(id); !local {
				others = append(others, id)
			} else if d, err := r.local.Document(u); err == nil { // one whose account is gone has none
				cards[id] = vocab.CardOf(id, d)
			}
		}
	}
	if len(others) == 0 {
		return cards, nil
	}
	copies, err := tx.Cards(ctx, others)
	maps.Copy(cards, copies)
	return cards, err
}

// Item returns one entry of any feed, of the requests only with requests; the fault is NotFound.
func (r *Reader) Item(ctx context.Context, u vocab.Username, id uuid.UUID, requests bool) (Entry, error) {
	var page Page
	err := r.read(ctx, u, &page, func(ctx context.Context, tx *db.Tx) ([]db.FeedItem, error) {
		row, err := tx.FeedByID(ctx, id)
		if row == nil && err == nil {
			row, err = tx.ActivityItem(ctx, id, requests) // a notification is known by its activity
		}
		if row == nil || err != nil {
			return nil, err
		}
		return []db.FeedItem{*row}, nil
	})
	if err != nil {
		return Entry{}, fmt.Errorf("read feed entry: %w", err)
	}
	if len(page.Items) == 0 {
		return Entry{}, fault.New(fault.NotFound, "there is no such entry")
	}
	return Entry{page.Items[0], page.Actors}, nil
}
