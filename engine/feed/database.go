package feed

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Transactor runs transactions on users' databases.
type Transactor interface {
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

// Database is the Store in users' databases.
type Database struct {
	databases Transactor
	local     Local
	profiles  Profiles
	hasEmoji  func(kind string) bool
}

// NewDatabase returns the feeds in users' databases. hasEmoji reports whether the content of a type
// of activity is an emoji.
func NewDatabase(databases Transactor, local Local, profiles Profiles, hasEmoji func(kind string) bool) *Database {
	return &Database{databases, local, profiles, hasEmoji}
}

// Page is Store's.
func (d *Database) Page(ctx context.Context, u vocab.Username, feed string, after *db.Place, limit int) (stored Stored, err error) {
	return d.read(ctx, u, func(ctx context.Context, tx *db.Tx) ([]db.FeedItem, *db.Place, error) {
		if !slices.Contains(All, feed) {
			items, end, err := selectEntries(ctx, tx, feed, after, limit+1)
			kept, next := cutPage(items, limit)
			return kept, cmp.Or(next, end), err
		}
		items, err := d.list(ctx, tx, u, feed, after, limit+1)
		kept, next := cutPage(items, limit)
		if next != nil && (after == nil || after.Offset > 0) {
			next.Offset = offsetOf(after) + len(kept)
		}
		return kept, next, err
	})
}

// list returns entries of one of All.
func (d *Database) list(ctx context.Context, tx *db.Tx, u vocab.Username, feed string, after *db.Place, n int) ([]db.FeedItem, error) {
	switch feed {
	case Notifications:
		return tx.Notifications(ctx, d.local.ID(u), after, n)
	case Requests:
		return tx.Requests(ctx, after, n)
	}
	return tx.Feed(ctx, after, n)
}

// offsetOf returns how many rows stood before a place, as far as is known.
func offsetOf(p *db.Place) int {
	if p == nil {
		return 0
	}
	return p.Offset
}

// lines returns entries of one feed without their documents.
func (d *Database) lines(ctx context.Context, u vocab.Username, feed string, after *db.Place, n int) (lines []db.FeedLine, err error) {
	err = d.databases.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		switch feed {
		case Notifications:
			lines, err = tx.NotificationLines(ctx, d.local.ID(u), after, n)
		case Requests:
			lines, err = tx.RequestLines(ctx, after, n)
		default:
			lines, err = tx.FeedLines(ctx, after, n)
		}
		return err
	})
	return lines, err
}

// cutPage returns up to limit items, and no more than db.MaxFeed bytes unless one item alone is
// larger. One item more tells that another page follows, after the place that it returns.
func cutPage(items []db.FeedItem, limit int) (kept []db.FeedItem, next *db.Place) {
	all := 0
	for n, item := range items {
		if all += item.Bytes(); n == limit || n > 0 && all > db.MaxFeed {
			last := items[n-1]
			return items[:n], &db.Place{At: last.Published, ID: last.ID}
		}
	}
	return items, nil
}

// Item is Store's.
func (d *Database) Item(ctx context.Context, u vocab.Username, id uuid.UUID, requests bool) (Stored, error) {
	return d.read(ctx, u, func(ctx context.Context, tx *db.Tx) ([]db.FeedItem, *db.Place, error) {
		item, err := tx.FeedByID(ctx, id)
		if item == nil && err == nil {
			item, err = tx.ActivityItem(ctx, id, requests) // a notification is known by its activity
		}
		if item == nil || err != nil {
			return nil, nil, err
		}
		return []db.FeedItem{*item}, nil, nil
	})
}

// read parses the items that find returns, and reads the user's copies of their actors in the same
// transaction. It makes what readers are shown of an object that was stored without it, and keeps
// that afterwards.
func (d *Database) read(ctx context.Context, u vocab.Username, find func(context.Context, *db.Tx) ([]db.FeedItem, *db.Place, error)) (stored Stored, err error) {
	var rows []Row
	var copies map[vocab.ID]vocab.Card
	err = d.databases.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		items, next, err := find(ctx, tx)
		if err != nil {
			return err
		}
		rows, stored.Next = parseRows(items), next
		if actors := actorsOf(rows); len(actors) > 0 {
			copies, err = tx.Cards(ctx, actors)
		}
		return err
	})
	if err != nil {
		return Stored{}, err
	}
	if made := collectMade(rows); len(made) > 0 {
		// The next reader makes again what is not kept.
		_ = d.databases.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error { return tx.SetReadable(ctx, made) })
	}
	stored.Cards = d.collectCards(rows, copies)
	languages := d.profiles.User(u).Languages
	for _, row := range rows {
		stored.Entries = append(stored.Entries, row.showEntry(languages, stored.Cards[row.authorOrActor()].Followers, d.hasEmoji(row.Type)))
	}
	return stored, nil
}

// collectCards returns how the actors and authors of the rows are shown: local users as they are
// now, others as the user's copies say, and those without a copy by nothing.
func (d *Database) collectCards(rows []Row, copies map[vocab.ID]vocab.Card) map[vocab.ID]vocab.Card {
	cards := map[vocab.ID]vocab.Card{}
	for _, id := range actorsOf(rows) {
		card, isLocal := d.localCard(id)
		if !isLocal {
			card = copies[id]
		}
		cards[id] = card
	}
	return cards
}

// localCard returns how a local user is shown; an account that is gone by nothing.
func (d *Database) localCard(id vocab.ID) (card vocab.Card, isLocal bool) {
	u, isLocal := d.local.Owner(id)
	if !isLocal {
		return card, false
	}
	if doc, err := d.local.Document(u); err == nil {
		card = vocab.CardOf(id, doc)
	}
	return card, true
}

// parseRows returns the items that can be read.
func parseRows(items []db.FeedItem) []Row {
	rows := make([]Row, 0, len(items))
	for _, item := range items {
		if row, isReadable := ParseRow(item); isReadable {
			rows = append(rows, row)
		}
	}
	return rows
}
