package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// stream is a public collection of the user, as the user's clients see it.
type stream struct {
	ID      vocab.ID `json:"id"` // the id by which AddToStream names the stream
	Name    string   `json:"name"`
	Tags    []string `json:"tags"`
	Objects int      `json:"objects"` // how many objects it has
}

// streamList is all streams of a user.
type streamList struct {
	Items []stream `json:"items"`
}

// getStreams serves the user's streams to the user's clients, sorted by name.
func (s *clientAPI) getStreams(a *answer, r *http.Request, _ httprouter.Params) error {
	u, err := s.authorizeReader(a, r)
	if err != nil {
		return err
	}
	if _, err := readQuery(r); err != nil {
		return err
	}
	list := streamList{Items: []stream{}}
	err = s.owners.Read(r.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		streams, err := tx.Streams.List(ctx)
		for _, one := range streams {
			list.Items = append(list.Items, stream{one.URI, one.Name, one.Tags, one.Objects})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read streams: %w", err)
	}
	return a.sendJSON(r, list)
}

func shownToAll(registry.Collections) registry.Visibility { return registry.Public }

// getFeatured serves the ids of the objects that a user pinned, to everybody.
func (s *collections) getFeatured(a *answer, r *http.Request, p httprouter.Params) error {
	return s.getWhole(a, r, p, "featured", func(ctx context.Context, tx *user.Tx, me vocab.ID) (ids []any, err error) {
		pins, err := tx.Pins.List(ctx, me)
		for _, pin := range pins {
			ids = append(ids, string(pin.Object))
		}
		return ids, err
	})
}

// getStreamsOf serves the ids of a user's streams, to everybody.
func (s *collections) getStreamsOf(a *answer, r *http.Request, p httprouter.Params) error {
	return s.getWhole(a, r, p, "streams", func(ctx context.Context, tx *user.Tx, _ vocab.ID) (ids []any, err error) {
		streams, err := tx.Streams.List(ctx)
		for _, one := range streams {
			ids = append(ids, string(one.URI))
		}
		return ids, err
	})
}

// getWhole serves a collection that has no pages.
func (s *collections) getWhole(a *answer, r *http.Request, p httprouter.Params, name string, list func(context.Context, *user.Tx, vocab.ID) ([]any, error)) error {
	me := s.idOf(p)
	return s.getCollection(collection{
		name:  name,
		shown: shownToAll,
		describe: func(ctx context.Context, tx *user.Tx, d vocab.Doc) error {
			items, err := list(ctx, tx, me)
			d["totalItems"] = len(items)
			if len(items) > 0 { // in JSON-LD an empty list means the same as no list
				d["orderedItems"] = items
			}
			return err
		},
	})(a, r, p)
}

// getStream serves one of a user's streams, to everybody.
func (s *collections) getStream(a *answer, r *http.Request, p httprouter.Params) error {
	if !isOwnPart(p.ByName("stream")) {
		return errNothing
	}
	me, name := s.idOf(p), "streams/"+p.ByName("stream")
	uri := me + "/" + vocab.ID(name)
	return s.getCollection(collection{
		name:   name,
		shown:  shownToAll,
		isMany: true,
		count: func(ctx context.Context, tx *user.Tx, _ []vocab.ID) (int, error) {
			one, err := tx.Streams.Find(ctx, uri)
			if err != nil || one == nil {
				return 0, orNothing(err)
			}
			return one.Objects, nil
		},
		list: func(ctx context.Context, tx *user.Tx, _ []vocab.ID, after *user.Place, n int) ([]listed, error) {
			objects, err := tx.Streams.ListObjects(ctx, uri, after, n)
			items := make([]listed, len(objects))
			for i, o := range objects {
				items[i] = listed{string(o.Object), user.Place{At: o.AddedAt, ID: o.ID}}
			}
			return items, err
		},
		describe: func(ctx context.Context, tx *user.Tx, d vocab.Doc) error {
			one, err := tx.Streams.Find(ctx, uri)
			if err != nil || one == nil {
				return orNothing(err)
			}
			for name, value := range outbox.StreamDoc(me, *one) {
				d[name] = value
			}
			d["@context"] = vocab.Context()
			return nil
		},
	})(a, r, p)
}

// idOf returns the id of the user that a path names.
func (s *access) idOf(p httprouter.Params) vocab.ID {
	u, err := vocab.ParseUsername(p.ByName("user"))
	if err != nil {
		return "" // findResident refuses it
	}
	return s.local.ID(u)
}

// orNothing returns err, or errNothing if err is nil.
func orNothing(err error) error {
	if err == nil {
		err = errNothing
	}
	return err
}
