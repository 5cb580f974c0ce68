package actor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Object fetches an object or activity from its own server, and also returns its bytes. The
// instance actor signs the request. If the server does not show the object and as is not nil,
// Object asks once more, and the user *as signs that request. Callers name a user only for an id
// that was sent to that user, because the second request tells the server that the user is
// interested. Both requests count against the budget of the server's domain. The fault is
// Forbidden when the policy refuses the object's server or an author of the object.
func (r *Resolver) Object(ctx context.Context, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error) {
	return r.fetchObject(ctx, id, as, func(what string, work func(context.Context) (document, error)) (document, error) {
		return shareFlight(ctx, r.flights, what, id, work)
	})
}

// ObjectNow is like Object, but it also fetches an id that could not be fetched a moment ago,
// because the object may not have existed then. The caller limits how often it asks.
func (r *Resolver) ObjectNow(ctx context.Context, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error) {
	return r.fetchObject(ctx, id, as, func(_ string, work func(context.Context) (document, error)) (document, error) {
		return recoverWork(ctx, work)
	})
}

// fetchObject fetches an object. It calls the function ask for each try, with a name for the try
// and the work to do.
func (r *Resolver) fetchObject(ctx context.Context, id vocab.ID, as *vocab.Username, ask func(string, func(context.Context) (document, error)) (document, error)) (*vocab.Object, json.RawMessage, error) {
	if r.Local.isOwn(id) {
		return nil, nil, fault.New(fault.NotFound, "nothing of our own is fetched")
	}
	if err := r.Gate.Check(id.Host()); err != nil {
		return nil, nil, err
	}
	req := transport.Request{URL: id}
	try := func(ctx context.Context) (document, error) {
		if err := r.spendFetch(ctx, r.objectRate, id); err != nil {
			return document{}, err
		}
		return r.fetchAsInstance(ctx, req)
	}
	d, err := ask("object", try)
	if fault.KindOf(err) == fault.NotFound && as != nil {
		keys, fail := r.Local.keys.Keys(*as)
		if fail != nil {
			return nil, nil, fail
		}
		req.As = &keys
		d, err = ask("object for "+as.String(), try)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("fetch object %s: %w", id, err)
	}
	if doc, changed := d.doc.Renamed(r.Local.ByPage); changed {
		d.doc, d.raw = doc, doc.JSON()
	}
	o, err := vocab.ObjectOf(d.doc)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Protocol, "the peer answers with no object", err)
	}
	if err := vocab.CheckBounds(d.doc, ""); err != nil {
		return nil, nil, fault.Wrap(fault.Protocol, "the peer shows more than is taken", err)
	}
	for _, author := range o.Authors() {
		if err := r.Gate.CheckActor(author); err != nil {
			return nil, nil, fmt.Errorf("fetch object %s: %w", id, err)
		}
	}
	return o, d.raw, nil
}
