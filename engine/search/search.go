// Package search finds objects and actors in a user's database by their words. The index gets new
// and changed objects when the user searches, and never when an activity comes in. Archived posts
// are indexed when they are imported.
package search

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxPeople is the greatest number of actors that a search finds.
const maxPeople = 10

// Store reads and writes users' databases.
type Store interface {
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
}

// Shower shows objects of a user's database, as far as the user may see them.
type Shower interface {
	// Held also returns how many of the objects it has looked at. If the objects are large, it
	// does not look at all of them.
	Held(ctx context.Context, q thread.Query, uris []vocab.ID) (shown []thread.Object, actors map[vocab.ID]vocab.Card, looked int, err error)
}

// Gate decides whether an actor may be heard. CheckActor returns nil if the actor may be heard,
// and otherwise an error with the reason.
type Gate interface {
	CheckActor(id vocab.ID) error
}

// Deps are the parts that a searcher works with.
type Deps struct {
	Store  Store
	Shower Shower
	Gate   Gate
	Log    *slog.Logger
	Now    func() time.Time
}

// Searcher searches.
type Searcher struct {
	Deps
	behind chan vocab.Username // users whose index Run completes
	passed sync.Map            // users whose index a pass of this process has begun to fill
}

// maxBehind is the greatest number of users that can wait until Run completes their index.
const maxBehind = 64

// New returns a searcher.
func New(d Deps) *Searcher { return &Searcher{Deps: d, behind: make(chan vocab.Username, maxBehind)} }

// Query is a search of a user's client.
type Query struct {
	User      vocab.Username
	Text      string
	Cursor    string
	Limit     int
	Assistant bool // for an LLM engine, which sees nothing that waits among the requests
}

// Person is an actor that was found.
type Person struct {
	URI    vocab.ID `json:"uri"`
	Name   string   `json:"name"`
	Handle string   `json:"handle"`
	Icon   vocab.ID `json:"icon"`
}

// Page is a part of what was found, the newest first.
type Page struct {
	Items    []thread.Object         `json:"items"`
	Actors   map[vocab.ID]vocab.Card `json:"actors"`
	People   []Person                `json:"people"`   // only on the first page
	Complete bool                    `json:"complete"` // the index has everything; else the same search may find more a little later
	Next     string                  `json:"next,omitempty"`
}

// Search returns the objects and actors that match a query and that the user may see. The fault
// is Invalid for a query without words, a query that is too long, or a cursor of another query. It
// is Unprocessable if the search would take too long.
func (s *Searcher) Search(ctx context.Context, q Query) (page Page, err error) {
	parsed, err := parseQuery(q.Text)
	if err != nil {
		return page, err
	}
	scope := q.User.String() + "/search/" + parsed.words
	after, err := feed.DecodeCursor(scope, q.Cursor)
	if err != nil {
		return page, err
	}
	if page.Complete, err = s.newPass(q.User).indexBatches(ctx, maxBatches); err != nil {
		return page, fmt.Errorf("index: %w", err)
	}
	if !page.Complete {
		s.completeLater(q.User)
	}
	var found []user.Found
	var actors []user.FoundActor
	err = s.Store.Read(ctx, q.User, func(ctx context.Context, tx *user.Tx) (err error) {
		if err := tx.Search.Bound(ctx); err != nil {
			return err
		}
		if found, err = tx.Search.FindObjects(ctx, parsed.words, !q.Assistant, after, q.Limit+1); err != nil || after != nil {
			return err
		}
		actors, err = s.searchActors(ctx, tx, parsed.called, !q.Assistant)
		return err
	})
	if err != nil {
		return page, fmt.Errorf("search: %w", err)
	}
	page.People = describePeople(actors)
	looked := 0
	page.Items, page.Actors, looked, err = s.Shower.Held(ctx, thread.Query{User: q.User, Assistant: q.Assistant}, urisOf(found[:min(len(found), q.Limit)]))
	if err == nil && looked < len(found) {
		last := found[looked-1]
		page.Next = feed.EncodeCursor(scope, user.Place{At: last.Published, ID: last.ID})
	}
	return page, err
}

// searchActors returns up to maxPeople actors whose handle and name contain all texts in the
// parameter called. It leaves out actors that the user blocks or the gate refuses.
func (s *Searcher) searchActors(ctx context.Context, tx *user.Tx, called []string, requests bool) (kept []user.FoundActor, err error) {
	found, err := tx.Search.FindActors(ctx, called, requests, maxPeople)
	if err != nil {
		return nil, err
	}
	ids := make([]vocab.ID, len(found))
	for n, a := range found {
		ids[n] = a.URI
	}
	blocked, err := tx.Blocks.FindAmong(ctx, ids)
	for _, a := range found {
		if !blocked[a.URI] && s.Gate.CheckActor(a.URI) == nil {
			kept = append(kept, a)
		}
	}
	return kept, err
}

// describePeople returns actors in the form that is shown. It skips an actor that cannot be
// parsed.
func describePeople(actors []user.FoundActor) []Person {
	people := []Person{}
	for _, a := range actors {
		if d, err := vocab.ParseDoc(a.Raw); err == nil {
			card := vocab.CardOf(a.URI, d)
			people = append(people, Person{a.URI, card.Name, card.Handle, card.Icon})
		}
	}
	return people
}

func urisOf(found []user.Found) []vocab.ID {
	uris := make([]vocab.ID, len(found))
	for n, f := range found {
		uris[n] = f.URI
	}
	return uris
}

// completeLater asks Run to complete a user's index. If Run has no room, the next search asks
// again.
func (s *Searcher) completeLater(u vocab.Username) {
	select {
	case s.behind <- u:
	default:
	}
}

// Run completes the indexes of users whose search found their index incomplete, one user at a
// time, until ctx ends.
func (s *Searcher) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case u := <-s.behind:
			s.completeIndex(ctx, u)
		}
	}
}

// indexInTime indexes one batch within batchTime.
func (p *pass) indexInTime(ctx context.Context) (complete bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	return p.indexBatches(ctx, 1)
}

// completeIndex indexes until nothing is left. After a failure the next search tries again.
func (s *Searcher) completeIndex(ctx context.Context, u vocab.Username) {
	p := s.newPass(u)
	for ctx.Err() == nil {
		complete, err := p.indexInTime(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "index was not completed", "user", u, "err", err)
		}
		if complete || err != nil {
			return
		}
	}
}
