package feed

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The feeds.
const (
	Main          = "main"          // posts and boosts
	Notifications = "notifications" // activities of other actors that concern the user
	Requests      = "requests"      // private messages of strangers
	Archive       = "archive"       // imported posts that the user wrote under another account
)

// Limits on the number of entries of a page.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// Store holds the entries of users' feeds. A store may have a cache in front of the database.
type Store interface {
	// Page returns up to limit entries of a feed after a place, the newest first, and fewer when
	// they are large.
	Page(ctx context.Context, u vocab.Username, feed string, after *user.Place, limit int) (Stored, error)
	// Item returns the entry with this id, of any feed. It finds an entry of the feed Requests
	// only if the parameter requests is true. It returns no entries if there is no such entry.
	Item(ctx context.Context, u vocab.Username, id uuid.UUID, requests bool) (Stored, error)
	// Reading returns how far the user has read a feed that All lists. It counts the entries that
	// the filter shows.
	Reading(ctx context.Context, u vocab.Username, feed string, f Filter) (Reading, error)
}

// Stored is a part of a feed before the gate checks it.
type Stored struct {
	Entries []Shown
	Next    *user.Place             // the place after which the next page begins; nil: there is none
	Cards   map[vocab.ID]vocab.Card // of all actors and authors
}

// Shown is an entry as its user sees it, with the actors that the gate checks. The entry is
// shown only if the gate lets all of them through.
type Shown struct {
	Item
	Voices []vocab.ID // the actors who sent or wrote it

	followers vocab.ID      // the followers collection by which its visibility was determined
	line      user.FeedLine // its place and the revisions of its documents
}

// Gate decides whether an actor may be heard. CheckActor returns nil if the actor may be heard,
// and otherwise an error with the reason.
type Gate interface {
	CheckActor(id vocab.ID) error
}

// Reader reads feeds.
type Reader struct {
	store    Store
	gate     Gate
	profiles Profiles
	local    Local
}

// New returns a reader of the feeds in a store. Posts of an actor that the gate refuses, and
// posts that the user has muted, stay in the store and are not shown, even if other actors
// passed them on.
func New(store Store, gate Gate, profiles Profiles, local Local) *Reader {
	return &Reader{store, gate, profiles, local}
}

// Page returns up to limit entries of a feed after a cursor, the newest first, and fewer if they
// are large. An empty cursor is the beginning, and limit 0 means DefaultLimit. Entries that are
// added meanwhile do not move the place of a cursor. A page is shorter if some of its entries
// are not shown, or if the entries that meet the criterion of a feed lie far apart. So a short
// page may have a Next: only the last page has none. The fault is NotFound if there is no such
// feed, and Invalid for a limit out of bounds or a cursor of another feed or user.
func (r *Reader) Page(ctx context.Context, u vocab.Username, feed, cursor string, limit int) (Page, error) {
	feed, err := resolveName(feed)
	if err != nil {
		return Page{}, err
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	if limit < 1 || limit > MaxLimit {
		return Page{}, fault.New(fault.Invalid, fmt.Sprintf("the limit must be 1 to %d", MaxLimit)).WithCode("bad_limit")
	}
	scope := scopeOf(u, feed)
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

// showPage returns the items that the gate lets through and the user has not muted, with their
// actors.
func (r *Reader) showPage(u vocab.Username, stored Stored) Page {
	filter := r.filterOf(u)
	page := Page{Items: make([]Item, 0, len(stored.Entries)), Actors: map[vocab.ID]vocab.Card{}}
	for _, e := range stored.Entries {
		if !filter.isShown(e) {
			continue
		}
		page.Items = append(page.Items, e.Item)
		page.Actors[e.ActorURI] = stored.Cards[e.ActorURI]
		if e.AuthorURI != "" {
			page.Actors[e.AuthorURI] = stored.Cards[e.AuthorURI]
		}
	}
	return page
}

// Filter decides which entries a user is shown.
type Filter struct {
	isShown func(Shown) bool
	byWords bool // isShown looks at the objects, too
}

// filterOf returns the filter that leaves out what the gate refuses and what the user has muted.
func (r *Reader) filterOf(u vocab.Username) Filter {
	mutes, me := r.profiles.User(u).Moderation, r.local.ID(u)
	return Filter{func(e Shown) bool { return r.isShown(e) && !isMuted(e, mutes, me) }, mutes.HasKeywords()}
}

// isShown reports whether the gate lets through every actor who sent or wrote the entry.
func (r *Reader) isShown(e Shown) bool {
	return !slices.ContainsFunc(e.Voices, func(id vocab.ID) bool { return r.gate.CheckActor(id) != nil })
}

// Item returns the entry with this id, of any feed. It finds an entry of the feed Requests only
// if the parameter requests is true. The fault is NotFound if there is no such entry.
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
