package feed

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Transactor runs transactions on users' databases.
type Transactor interface {
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
}

// Local has the ids and documents of the local users.
type Local interface {
	ID(u vocab.Username) vocab.ID
	Owner(id vocab.ID) (vocab.Username, bool)
	Document(u vocab.Username) (vocab.Doc, error)
}

// Profiles has the users' configurations, with the languages that they read and the actors and
// words that they mute.
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

// NewDatabase returns the feeds in users' databases. The function hasEmoji reports whether
// activities of a type may have an emoji as their content.
func NewDatabase(databases Transactor, local Local, profiles Profiles, hasEmoji func(kind string) bool) *Database {
	return &Database{databases, local, profiles, hasEmoji}
}

// Page implements Store.
func (d *Database) Page(ctx context.Context, u vocab.Username, feed string, after *user.Place, limit int) (stored Stored, err error) {
	return d.read(ctx, u, func(ctx context.Context, tx *user.Tx) ([]user.FeedItem, *user.Place, error) {
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

// list returns entries of a feed that All lists.
func (d *Database) list(ctx context.Context, tx *user.Tx, u vocab.Username, feed string, after *user.Place, n int) ([]user.FeedItem, error) {
	switch feed {
	case Notifications:
		return tx.Feed.ListNotifications(ctx, d.local.ID(u), after, n)
	case Requests:
		return tx.Requests.List(ctx, after, n)
	}
	return tx.Feed.List(ctx, after, n)
}

// offsetOf returns the number of rows before a place, or 0 if that number is not known.
func offsetOf(p *user.Place) int {
	if p == nil {
		return 0
	}
	return p.Offset
}

// lines returns entries of a feed that All lists, without their documents.
func (d *Database) lines(ctx context.Context, u vocab.Username, feed string, after *user.Place, n int) (lines []user.FeedLine, err error) {
	err = d.databases.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		switch feed {
		case Notifications:
			lines, err = tx.Feed.ListNotificationLines(ctx, d.local.ID(u), after, n)
		case Requests:
			lines, err = tx.Requests.ListLines(ctx, after, n)
		default:
			lines, err = tx.Feed.ListLines(ctx, after, n)
		}
		return err
	})
	return lines, err
}

// cutPage returns the first items: up to limit, and no more than user.MaxFeed bytes unless the
// first item alone is larger. If items are left, the result next is the place after which they
// begin.
func cutPage(items []user.FeedItem, limit int) (kept []user.FeedItem, next *user.Place) {
	all := 0
	for n, item := range items {
		if all += item.Bytes(); n == limit || n > 0 && all > user.MaxFeed {
			last := items[n-1]
			return items[:n], &user.Place{At: last.Published, ID: last.ID}
		}
	}
	return items, nil
}

// Item implements Store.
func (d *Database) Item(ctx context.Context, u vocab.Username, id uuid.UUID, requests bool) (Stored, error) {
	return d.read(ctx, u, func(ctx context.Context, tx *user.Tx) ([]user.FeedItem, *user.Place, error) {
		item, err := tx.Feed.Find(ctx, id)
		if item == nil && err == nil {
			item, err = tx.Feed.FindActivity(ctx, d.local.ID(u), id, requests) // a notification has the id of its activity
		}
		if item == nil || err != nil {
			return nil, nil, err
		}
		return []user.FeedItem{*item}, nil, nil
	})
}

// find finds items, and the place after which the next ones begin.
type find func(context.Context, *user.Tx) ([]user.FeedItem, *user.Place, error)

// read reads the items that find returns, in the form in which the user sees them. The database
// stores these forms (user.Form). read makes and stores the ones that are missing.
func (d *Database) read(ctx context.Context, u vocab.Username, find find) (Stored, error) {
	languages := d.profiles.User(u).Languages
	rows, stored, err := d.readRows(ctx, u, readerOf(languages), find)
	if err == nil && slices.ContainsFunc(rows, func(r Row) bool { return r.isOutdated(stored.Cards) }) {
		rows, stored, err = d.readRows(ctx, u, "", find)
	}
	if err != nil {
		return Stored{}, err
	}
	var forms []user.Form
	for _, row := range rows {
		e := row.showEntry(languages, stored.Cards[row.authorOrActor()].Followers, d.hasEmoji(row.Type))
		stored.Entries = append(stored.Entries, e)
		if form, isNew := row.formOf(e); isNew {
			forms = append(forms, form)
		}
	}
	d.keep(ctx, u, readerOf(languages), collectMade(rows), forms)
	return stored, nil
}

// keep stores the readable text of objects that lack one, and the forms of entries. If it fails,
// the next reader makes them again.
func (d *Database) keep(ctx context.Context, u vocab.Username, reader string, made map[vocab.ID]json.RawMessage, forms []user.Form) {
	if len(made) == 0 && len(forms) == 0 {
		return
	}
	_ = d.databases.Write(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		if len(made) > 0 {
			err = tx.Objects.SetReadable(ctx, made)
		}
		if err == nil && len(forms) > 0 {
			err = tx.Feed.KeepForms(ctx, reader, forms)
		}
		return err
	})
}

// readRows reads the items that find returns, with the forms that are stored for the parameter
// reader, a result of readerOf. If reader is empty, it reads no forms. It reads the user's copies
// of the items' actors in the same transaction.
func (d *Database) readRows(ctx context.Context, u vocab.Username, reader string, find find) (rows []Row, stored Stored, err error) {
	var copies map[vocab.ID]vocab.Card
	err = d.databases.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		tx.Feed.ReadFor(reader)
		items, next, err := find(ctx, tx)
		if err != nil {
			return err
		}
		rows, stored.Next = parseRows(items), next
		if actors := actorsOf(rows); len(actors) > 0 {
			copies, err = tx.Actors.FindCards(ctx, actors)
		}
		return err
	})
	stored.Cards = d.collectCards(rows, copies)
	return rows, stored, err
}

// collectCards returns the cards of the rows' actors and authors: the current one for a local
// user, the user's copy for others, and an empty one if there is no copy.
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

// localCard returns the card of a local user. The card is empty if the account is gone.
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

// parseRows returns the items that can be parsed, as rows.
func parseRows(items []user.FeedItem) []Row {
	rows := make([]Row, 0, len(items))
	for _, item := range items {
		if row, isReadable := ParseRow(item); isReadable {
			rows = append(rows, row)
		}
	}
	return rows
}
