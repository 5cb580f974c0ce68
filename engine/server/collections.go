package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// collection is one of the collections that every user has. Its owner sees all of it, others what they may.
type collection struct {
	name  string                                         // the last part of its id
	shown func(registry.Collections) registry.Visibility // who may read it at all; nil: everybody
	count func(_ context.Context, _ *db.Tx, all bool) (int, error)
	list  func(_ context.Context, _ *db.Tx, all bool, after *db.Place, n int) ([]listed, error)
}

// listed is an item of a collection, with its place.
type listed struct {
	item any
	at   db.Place
}

var (
	inboxCollection     = activities("inbox", db.Inbound)
	outboxCollection    = activities("outbox", db.Outbound)
	followersCollection = relationships("followers", db.Follower, func(c registry.Collections) registry.Visibility { return c.Followers })
	followingCollection = relationships("following", db.Following, func(c registry.Collections) registry.Visibility { return c.Following })
)

func activities(name, direction string) collection {
	return collection{
		name: name,
		count: func(ctx context.Context, tx *db.Tx, all bool) (int, error) {
			return tx.CountActivities(ctx, direction, !all)
		},
		list: func(ctx context.Context, tx *db.Tx, all bool, after *db.Place, n int) ([]listed, error) {
			rows, err := tx.Activities(ctx, direction, !all, after, n)
			if err != nil {
				return nil, err
			}
			docs, err := activityDocs(ctx, tx, rows)
			if err != nil {
				return nil, err
			}
			items := make([]listed, len(rows))
			for i, row := range rows {
				if direction == db.Outbound {
					delete(docs[i], "@context") // the page has it, so what the proof covers is not there
					delete(docs[i], "proof")
				}
				items[i] = listed{docs[i], db.Place{At: row.Published, ID: row.ID}}
			}
			return items, nil
		},
	}
}

func relationships(name, kind string, shown func(registry.Collections) registry.Visibility) collection {
	return collection{
		name:  name,
		shown: shown,
		count: func(ctx context.Context, tx *db.Tx, _ bool) (int, error) { return tx.CountRelationships(ctx, kind) },
		list: func(ctx context.Context, tx *db.Tx, _ bool, after *db.Place, n int) ([]listed, error) {
			rows, err := tx.Relationships(ctx, kind, after, n)
			items := make([]listed, len(rows))
			for i, row := range rows {
				items[i] = listed{string(row.Actor), db.Place{At: row.CreatedAt, ID: row.ID}}
			}
			return items, err
		},
	}
}

// getCollection serves a collection to everybody, and more of it to its owner.
func (s *Server) getCollection(c collection) handle {
	return func(a *answer, r *http.Request, p httprouter.Params) error {
		contentType, err := a.document(r)
		if err != nil {
			return err
		}
		a.vary("Authorization")
		if err := s.checkSigner(r); err != nil {
			return err
		}
		u, err := s.resident(r, p)
		if err != nil {
			return err
		}
		owner, err := s.isOwner(a, r, u)
		if err != nil {
			return err
		}
		if !owner && c.shown != nil {
			profile, err := s.Profiles.User(u)
			if err != nil {
				return fmt.Errorf("read who may see %s of %s: %w", c.name, u, err)
			}
			if c.shown(profile.Collections) != registry.Public {
				return s.hide(a, r, contentType, c, u)
			}
		}
		return s.serve(a, r, contentType, c, u, owner)
	}
}

// getInbox serves what a user received, to that user only (ActivityPub §5.2). Others learn nothing, not even whether
// there is such a user.
func (s *Server) getInbox(a *answer, r *http.Request, p httprouter.Params) error {
	a.cache(cachePrivate)
	a.vary("Authorization")
	u, err := s.reader(a, r)
	if err != nil {
		return err
	}
	if p.ByName("user") != u.String() {
		return fault.New(fault.Forbidden, "the inbox is another user's")
	}
	contentType, err := a.document(r)
	if err != nil {
		return err
	}
	return s.serve(a, r, contentType, inboxCollection, u, true)
}

// isOwner tells whether u asks. A request without a token is nobody's; a token that does not hold is refused.
func (s *Server) isOwner(a *answer, r *http.Request, u vocab.Username) (bool, error) {
	if _, given := bearer(r); !given {
		return false, nil
	}
	asker, err := s.reader(a, r)
	return err == nil && asker == u, err
}

// serve answers with the collection, or with the page of it that is asked for. Other parameters are ignored: peers add
// their own.
func (s *Server) serve(a *answer, r *http.Request, contentType string, c collection, u vocab.Username, owner bool) error {
	read := s.strangers.Read
	if owner {
		read = s.owners.Read
	}
	id := s.Local.ID(u) + "/" + vocab.ID(c.name)
	var doc vocab.Doc
	var err error
	if wantsPage(r) {
		doc, err = s.page(r, read, c, u, id, owner)
	} else {
		doc, err = s.root(r, read, c, u, id, owner)
	}
	if err != nil {
		return err
	}
	if owner {
		a.cache(cachePrivate)
		a.send(http.StatusOK, contentType, doc.JSON())
		return nil
	}
	a.cache(cachePublic)
	a.sendTagged(r, contentType, doc.JSON())
	return nil
}

// firstPage asks for the page at the beginning; those that follow are asked for by cursor.
const firstPage = "page=true"

func wantsPage(r *http.Request) bool {
	q := r.URL.Query()
	return q.Has("page") || q.Has("cursor")
}

type read func(context.Context, vocab.Username, func(context.Context, *db.Tx) error) error

func (s *Server) root(r *http.Request, read read, c collection, u vocab.Username, id vocab.ID, owner bool) (vocab.Doc, error) {
	total := 0
	err := read(r.Context(), u, func(ctx context.Context, tx *db.Tx) (err error) {
		total, err = c.count(ctx, tx, owner)
		return err
	})
	return vocab.Collection{ID: id, Total: total, First: id + "?" + firstPage}.Doc(), err
}

func (s *Server) page(r *http.Request, read read, c collection, u vocab.Username, id vocab.ID, owner bool) (vocab.Doc, error) {
	scope := u.String() + "/" + c.name
	cursor := r.URL.Query().Get("cursor")
	after, err := feed.DecodeCursor(scope, cursor)
	if err != nil {
		return nil, err
	}
	var items []listed
	err = read(r.Context(), u, func(ctx context.Context, tx *db.Tx) (err error) {
		items, err = c.list(ctx, tx, owner, after, s.PageSize+1) // one more tells whether a page follows
		return err
	})
	if err != nil {
		return nil, err
	}
	p := vocab.Page{ID: id + "?" + firstPage, PartOf: id}
	if cursor != "" {
		p.ID = id + "?cursor=" + vocab.ID(cursor)
	}
	if len(items) > s.PageSize {
		items = items[:s.PageSize]
		p.Next = id + "?cursor=" + vocab.ID(feed.EncodeCursor(scope, items[len(items)-1].at))
	}
	for _, i := range items {
		p.Items = append(p.Items, i.item)
	}
	return p.Doc(), nil
}

// hide answers for a collection that is its owner's alone: it is there, and nothing in it is told, not even how much.
func (s *Server) hide(a *answer, r *http.Request, contentType string, c collection, u vocab.Username) error {
	if wantsPage(r) {
		return errNothing
	}
	a.cache(cachePublic)
	a.sendTagged(r, contentType, vocab.Collection{ID: s.Local.ID(u) + "/" + vocab.ID(c.name), Total: -1}.Doc().JSON())
	return nil
}
