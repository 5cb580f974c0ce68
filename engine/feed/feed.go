package feed

import (
	"context"
	"fmt"
	"slices"

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

// Store holds the entries of users' feeds. A cache can stand before the database.
type Store interface {
	// Page returns up to limit entries of a feed after a place, the newest first, and fewer when
	// they are large.
	Page(ctx context.Context, u vocab.Username, feed string, after *db.Place, limit int) (Stored, error)
	// Item returns one entry of any feed, of the requests only with requests; none when there is
	// no such entry.
	Item(ctx context.Context, u vocab.Username, id uuid.UUID, requests bool) (Stored, error)
}

// Stored is a part of a feed as it is stored.
type Stored struct {
	Rows  []Row
	Next  *db.Place               // where the page that follows begins; nil: nothing follows
	Cards map[vocab.ID]vocab.Card // of actors and authors that the user has a copy of
}

// Local knows the users.
type Local interface {
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

// New returns a reader of the feeds in store. Posts of an actor that gate refuses stay there and
// are not shown, whoever passed them on. hasEmoji reports whether the content of a type of activity
// is an emoji.
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
	stored, err := r.store.Page(ctx, u, feed, after, limit)
	if err != nil {
		return Page{}, fmt.Errorf("read feed %s: %w", feed, err)
	}
	page := r.showPage(u, stored)
	if stored.Next != nil {
		page.Next = EncodeCursor(scope, *stored.Next)
	}
	return page, nil
}

// showPage makes items of the rows that the gate lets through, and collects their actors.
func (r *Reader) showPage(u vocab.Username, stored Stored) Page {
	rows := slices.DeleteFunc(stored.Rows, func(row Row) bool { return !r.isShown(row) })
	page := Page{Items: make([]Item, len(rows)), Actors: r.collectCards(rows, stored.Cards)}
	languages := r.profiles.User(u).Languages
	for n, row := range rows {
		page.Items[n] = row.showItem(languages, page.Actors[row.authorOrActor()].Followers, r.hasEmoji(row.Type))
	}
	return page
}

// isShown reports whether the gate lets everybody be heard who sent or wrote this.
func (r *Reader) isShown(row Row) bool {
	by := []vocab.ID{row.Actor}
	if authors, err := row.object.IDs("attributedTo"); err == nil {
		by = append(by, authors...)
	}
	return !slices.ContainsFunc(by, func(id vocab.ID) bool { return r.gate.CheckActor(id) != nil })
}

// collectCards returns how the actors and authors of the rows are shown: local users as they are
// now, others as the user's copies say, and those without a copy by nothing.
func (r *Reader) collectCards(rows []Row, copies map[vocab.ID]vocab.Card) map[vocab.ID]vocab.Card {
	cards := map[vocab.ID]vocab.Card{}
	for _, id := range actorsOf(rows) {
		u, isLocal := r.local.Owner(id)
		if !isLocal {
			cards[id] = copies[id]
			continue
		}
		cards[id] = vocab.Card{}
		if d, err := r.local.Document(u); err == nil { // an account that is gone has none
			cards[id] = vocab.CardOf(id, d)
		}
	}
	return cards
}

// Item returns one entry of any feed, of the requests only with requests; the fault is NotFound.
func (r *Reader) Item(ctx context.Context, u vocab.Username, id uuid.UUID, requests bool) (Entry, error) {
	stored, err := r.store.Item(ctx, u, id, requests)
	if err != nil {
		return Entry{}, fmt.Errorf("read feed entry: %w", err)
	}
	page := r.showPage(u, stored)
	if len(page.Items) == 0 {
		return Entry{}, fault.New(fault.NotFound, "there is no such entry")
	}
	return Entry{page.Items[0], page.Actors}, nil
}
