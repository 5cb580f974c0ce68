package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxListed bounds the list of an actor's followers here, in bytes.
const maxListed = 1 << 20

// FollowersAt returns where a server that signs is shown the followers of u that are its own
// (FEP-8fcf).
func (l *Local) FollowersAt(u vocab.Username) vocab.ID { return l.Followers(u) + "_synchronization" }

// Synchronization returns what is said of u's followers on a server when this is their digest.
func (l *Local) Synchronization(u vocab.Username, digest vocab.FollowersDigest) vocab.Synchronization {
	return vocab.Synchronization{Collection: l.Followers(u), URL: l.FollowersAt(u), Digest: digest}
}

// FollowersHere fetches, as the instance actor, the list of those that a server takes for followers
// of an actor of its own: up to vocab.MaxSynchronized ids in at most 1 MiB, each once and of
// whatever server. The fault is Protocol for anything but a whole collection in one document.
func (r *Resolver) FollowersHere(ctx context.Context, url vocab.ID) ([]vocab.ID, error) {
	if err := r.Gate.Check(url.Host()); err != nil {
		return nil, err
	}
	req, err := r.signRequest(transport.Request{URL: url, Limit: maxListed})
	if err != nil {
		return nil, err
	}
	d, err := r.fetchDocument(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("fetch followers %s: %w", url, err)
	}
	ids, err := listedIn(d.doc)
	if err != nil {
		return nil, fault.Wrap(fault.Protocol, "what the peer shows is no list of followers", err)
	}
	return ids, nil
}

func listedIn(d vocab.Doc) ([]vocab.ID, error) {
	kind, err := d.Type()
	if err != nil {
		return nil, err
	}
	name := map[string]string{"Collection": "items", "OrderedCollection": "orderedItems"}[kind]
	if name == "" {
		return nil, fmt.Errorf("it is a %.40q", kind)
	}
	if d["first"] != nil || d["next"] != nil {
		return nil, errors.New("it comes in pages")
	}
	ids, err := d.IDs(name)
	if len(ids) > vocab.MaxSynchronized {
		return nil, errors.New("it is too long")
	}
	return ids, err
}
