package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

var collections = []string{"Collection", "OrderedCollection", "CollectionPage", "OrderedCollectionPage"}

// Collection fetches a collection, or a page of one, from its own server. The instance actor signs
// the request. The fetch counts against the limit for objects. Only that server vouches for what
// the collection lists.
func (r *Resolver) Collection(ctx context.Context, id vocab.ID) (vocab.Doc, error) {
	if err := r.Gate.Check(id.Host()); err != nil {
		return nil, err
	}
	d, err := shareFlight(ctx, r.flights, "collection", id, func(ctx context.Context) (document, error) {
		if err := r.spendFetch(ctx, r.objectRate, id); err != nil {
			return document{}, err
		}
		return r.fetchAsInstance(ctx, transport.Request{URL: id})
	})
	if err != nil {
		return nil, fmt.Errorf("fetch collection %s: %w", id, err)
	}
	if kind, err := d.doc.Type(); err != nil || !slices.Contains(collections, kind) {
		return nil, fault.Wrap(fault.Protocol, "the peer answers with no collection", errors.Join(fmt.Errorf("it is a %.40q", kind), err))
	}
	return d.doc, nil
}
