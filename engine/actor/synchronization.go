package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxListed is the size of the largest list of followers that is read, in bytes.
const maxListed = 1 << 20

// FollowersAt returns the address at which another server gets the list of those followers of u
// that belong to that server (FEP-8fcf). The server must sign its request.
func (a Addresses) FollowersAt(u vocab.Username) vocab.ID { return a.Followers(u) + "_synchronization" }

// Synchronization returns the statement about u's followers on one server (FEP-8fcf). The
// parameter digest is the digest of those followers.
func (a Addresses) Synchronization(u vocab.Username, digest vocab.FollowersDigest) vocab.Synchronization {
	return vocab.Synchronization{Collection: a.Followers(u), URL: a.FollowersAt(u), Digest: digest}
}

// FollowersHere fetches the list in which another server names the local users that follow one
// of its actors. The instance actor signs the request. The list has up to vocab.MaxSynchronized
// ids in at most 1 MiB. Each id occurs once. FollowersHere does not check whether an id belongs
// to this server. The fault is Protocol for a document that is not a whole collection.
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
		return nil, fault.Wrap(fault.Protocol, "the peer answers with no list of followers", err)
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
