package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// untold stands for the total of a collection whose document states no total. If the document
// stated a total, every reader could make this server count.
const untold = -1

// related is a kind of collection of public objects that belong to a public object.
type related struct {
	name   string
	isKept func(object vocab.Doc, collection vocab.ID) bool // reports whether the object has this collection
	list   func(_ context.Context, _ *user.Tx, object vocab.ID, after *user.Place, n int) ([]user.PublicObject, error)
}

var (
	repliesCollection = related{"replies", func(vocab.Doc, vocab.ID) bool { return true },
		func(ctx context.Context, tx *user.Tx, object vocab.ID, after *user.Place, n int) ([]user.PublicObject, error) {
			return tx.Threads.ListPublicAnswers(ctx, object, after, n)
		}}
	// threadCollection is the collection of an object that begins a thread. Every other object
	// names the collection of the thread that it is in.
	threadCollection = related{"context", func(object vocab.Doc, collection vocab.ID) bool { return object.Text("context") == string(collection) },
		func(ctx context.Context, tx *user.Tx, object vocab.ID, after *user.Place, n int) ([]user.PublicObject, error) {
			return tx.Threads.ListPublic(ctx, object, after, n)
		}}
)

// getRelated serves a collection that belongs to an object of a user. An object that is not public
// has no collection.
func (s *collections) getRelated(kind related) handle {
	return func(a *answer, r *http.Request, p httprouter.Params) error {
		thing := p.ByName("thing")
		if !isOwnPart(thing) {
			return errNothing
		}
		err := s.getCollection(s.relatedCollection(kind, s.idOf(p), vocab.ID("objects/"+thing)))(a, r, p)
		if fault.KindOf(err) == fault.Gone {
			return errNothing
		}
		return err
	}
}

// relatedCollection returns the collection of this kind that belongs to an object of the user me.
// The parameter path is the part of the object's id after the user's id.
func (s *collections) relatedCollection(kind related, me, path vocab.ID) collection {
	object := me + "/" + path
	c := collection{name: string(path) + "/" + kind.name, isMany: true, describe: func(_ context.Context, _ *user.Tx, d vocab.Doc) error {
		d["attributedTo"] = string(me)
		return nil
	}}
	check := func(ctx context.Context, tx *user.Tx) error {
		found, err := findObject(ctx, tx, me, object, true)
		if err == nil && (found.doc == nil || found.deleted || !kind.isKept(found.doc, me+"/"+vocab.ID(c.name))) {
			err = errNothing
		}
		return err
	}
	c.count = func(ctx context.Context, tx *user.Tx, _ []vocab.ID) (int, error) { return untold, check(ctx, tx) }
	c.list = func(ctx context.Context, tx *user.Tx, _ []vocab.ID, after *user.Place, n int) ([]listed, error) {
		if err := check(ctx, tx); err != nil {
			return nil, err
		}
		found, err := kind.list(ctx, tx, object, after, n)
		items := make([]listed, len(found))
		for i, o := range found {
			items[i] = listed{at: user.Place{At: o.Published, ID: o.ID}}
			if s.isHeard(o) {
				items[i].item = string(o.URI)
			}
		}
		return items, err
	}
	return c
}

// isHeard reports whether the gate admits all authors of an object.
func (s *collections) isHeard(o user.PublicObject) bool {
	by, err := vocab.ParseDoc(o.By)
	if err != nil {
		return false
	}
	authors, err := by.IDs("attributedTo")
	return err == nil && len(authors) > 0 && !slices.ContainsFunc(authors, func(id vocab.ID) bool { return s.gate.CheckActor(id) != nil })
}
