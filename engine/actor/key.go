package actor

import (
	"context"
	"crypto"
	"fmt"
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// claim is a key with the owner that the document of the key names. The claim counts only if that
// owner lists the key, too.
type claim struct {
	owner vocab.ID
	key   vocab.ActorKey
	at    time.Time
}

// ListedKey returns the key with the id keyID that a lists as its own.
func ListedKey(a *vocab.Actor, keyID vocab.ID) (crypto.PublicKey, error) {
	i := indexOfKey(a, keyID)
	if i < 0 || !a.Keys[i].Owner.Same(a.ID) {
		return nil, fault.New(fault.NotFound, "the actor does not list that key as its own")
	}
	return parseKey(a.Keys[i])
}

func parseKey(k vocab.ActorKey) (crypto.PublicKey, error) {
	if k.PEM == "" {
		return signature.ParseMultikey(k.Multibase)
	}
	return signature.ParsePublicKeyPEM(k.PEM)
}

// indexOfKey returns the index of the key in a.Keys, or -1. The key must have exactly the id
// keyID, and be on the server of a. PeerTube before 7.1, ActivityPods and some relays name the
// actor in place of its key. Then the actor's id counts as the id of its key in PEM, if the actor
// has only one such key. Keys in another form, such as those of ActivityPods for proofs, do not
// count.
func indexOfKey(a *vocab.Actor, keyID vocab.ID) int {
	if !keyID.SameOrigin(a.ID) {
		return -1
	}
	i := slices.IndexFunc(a.Keys, func(k vocab.ActorKey) bool { return k.ID == keyID })
	if i >= 0 || keyID != a.ID {
		return i
	}
	isPEM := func(k vocab.ActorKey) bool { return k.PEM != "" }
	if i = slices.IndexFunc(a.Keys, isPEM); i >= 0 && slices.ContainsFunc(a.Keys[i+1:], isPEM) {
		return -1
	}
	return i
}

// ByKey returns the actor that owns the key. The document at the key's id is that actor, or
// names it. In both cases the actor's document, under its own id on the same server, must list
// the key, because a key document that names an owner proves nothing by itself.
func (r *Resolver) ByKey(ctx context.Context, keyID vocab.ID) (*vocab.Actor, error) {
	at := keyID.Document()
	if r.Local.isOwn(keyID) {
		return r.byLocalKey(ctx, keyID)
	}
	if err := r.Gate.Check(keyID.Host()); err != nil {
		return nil, err
	}
	have, err := r.recallActor(ctx, at)
	if err != nil {
		return nil, err
	}
	if have != nil { // the usual case, in which the key's id is the actor's id with a fragment
		return r.findOwner(ctx, at, keyID)
	}
	claimed, err := r.recallClaim(ctx, keyID)
	if err != nil {
		return nil, err
	}
	if claimed != "" {
		a, err := r.findOwner(ctx, claimed, keyID)
		if fault.KindOf(err) != fault.NotFound {
			return a, err
		}
	}
	c, err := shareFlight(ctx, r.flights, "key", keyID, func(ctx context.Context) (claim, error) { return r.fetchKey(ctx, keyID) })
	if err != nil {
		return nil, fmt.Errorf("fetch key %s: %w", keyID, err)
	}
	return r.findOwner(ctx, c.owner, keyID)
}

func (r *Resolver) byLocalKey(ctx context.Context, keyID vocab.ID) (*vocab.Actor, error) {
	a, err := r.localActor(ctx, keyID.Document())
	if err != nil {
		return nil, err
	}
	if indexOfKey(a, keyID) < 0 {
		return nil, fault.New(fault.NotFound, "there is no such key here")
	}
	return a, nil
}

// recallClaim returns the id of the key's owner according to the cache or the store, or "" if
// neither has the key. If keyID has a fragment, a stored actor counts only if its id is keyID
// without the fragment. Other actors may list keys that they do not own, and only the document at
// keyID says which actor owns the key.
func (r *Resolver) recallClaim(ctx context.Context, keyID vocab.ID) (vocab.ID, error) {
	if c, ok := r.claims.get(keyID); ok && r.Now().Sub(c.at) < r.TTL {
		return c.owner, nil
	}
	row, err := r.Store.FindByKey(ctx, keyID)
	if err != nil || row == nil {
		if fault.KindOf(err) == fault.Invalid {
			err = nil // the stored document is ignored, as in recallActor
		}
		return "", err
	}
	if at := keyID.Document(); at != keyID && !row.Actor.ID.Same(at) {
		return "", nil
	}
	r.actors.getOrPut(row.Actor.ID.Canonical(), row)
	return row.Actor.ID, nil
}

// findOwner returns the actor that id names, if that actor lists the key. If the cached or stored
// copy of the actor does not list the key, findOwner calls Refresh for a newer copy.
func (r *Resolver) findOwner(ctx context.Context, id, keyID vocab.ID) (*vocab.Actor, error) {
	for _, ask := range []func(context.Context, vocab.ID) (*vocab.Actor, error){r.Current, r.Refresh} {
		a, err := ask(ctx, id)
		if err != nil {
			return nil, err
		}
		if a = r.withKey(a, keyID); a != nil {
			return a, nil
		}
	}
	return nil, fault.New(fault.NotFound, "the actor does not list that key")
}

// withKey returns a if a lists the key, and nil otherwise. An actor may list only the id of a
// key that has a document of its own. Then withKey takes the key from that document, if the
// document was fetched within the TTL and names the actor as the owner.
func (r *Resolver) withKey(a *vocab.Actor, keyID vocab.ID) *vocab.Actor {
	i := indexOfKey(a, keyID)
	if i < 0 {
		return nil
	}
	if k := a.Keys[i]; k.PEM != "" || k.Multibase != "" {
		return a
	}
	c, ok := r.claims.get(keyID)
	if !ok || !c.owner.Same(a.ID) || r.Now().Sub(c.at) >= r.TTL {
		return nil
	}
	whole := *a
	whole.Keys = slices.Clone(a.Keys)
	whole.Keys[i] = c.key
	whole.Keys[i].Asserts = a.Keys[i].Asserts
	return &whole
}

// fetchKey fetches the document at the id of a key.
func (r *Resolver) fetchKey(ctx context.Context, keyID vocab.ID) (claim, error) {
	if c, ok := r.claims.get(keyID); ok && r.Now().Sub(c.at) < refreshEvery {
		return c, nil // the key was fetched just now, so the problem is that its owner does not list it
	}
	if err := r.spendFetch(ctx, r.rate, keyID); err != nil {
		return claim{}, err
	}
	asked := r.Now()
	req, err := r.signRequest(transport.Request{URL: keyID.Document(), Limit: maxActor, Check: func(res *transport.Response) error {
		stripped := checkWhole(res)
		if d, err := vocab.ParseDoc(res.Body); stripped == nil || err != nil {
			return stripped
		} else if _, err := keyIn(d, keyID); err != nil {
			return stripped
		}
		return nil
	}})
	if err != nil {
		return claim{}, err
	}
	d, err := r.fetchDocument(ctx, req)
	if err != nil {
		return claim{}, err
	}
	if a, err := vocab.ActorOf(d.doc, d.raw); err == nil && len(a.Keys) > 0 && a.ID.Document().Same(keyID.Document()) {
		if _, err := r.rememberActor(ctx, a.ID, a, asked); err != nil {
			return claim{}, err
		}
		return claim{owner: a.ID}, nil
	}
	k, err := keyIn(d.doc, keyID)
	if err == nil {
		_, err = parseKey(k) // a text that is not a key is not remembered
	}
	if err != nil {
		return claim{}, err
	}
	c := claim{k.Owner, k, r.Now()}
	r.claims.put(keyID, c)
	return c, nil
}

// keyIn returns the key with the id keyID. The document d is that key, or holds it, as
// GoToSocial's stub of an actor does. The owner of the key must be on the same server as the
// key.
func keyIn(d vocab.Doc, keyID vocab.ID) (vocab.ActorKey, error) {
	for _, of := range append([]vocab.Doc{d}, slices.Concat(d.Subs("publicKey"), d.Subs("assertionMethod"))...) {
		if k := vocab.KeyOf(of); k.ID == keyID && k.Owner.SameOrigin(keyID) {
			return k, nil
		}
	}
	return vocab.ActorKey{}, fault.New(fault.Protocol, "the peer does not answer with that key and an owner of its own server")
}

// renewKey fetches the owner of the key again, unless that was done within the last minute, and
// returns the actor that lists the key. If the key has a document of its own, renewKey takes the
// owner from that document, because a may be another actor of the same server that lists the key.
func (r *Resolver) renewKey(ctx context.Context, a *vocab.Actor, keyID vocab.ID) (*vocab.Actor, error) {
	if c, ok := r.claims.get(keyID); ok && r.Now().Sub(c.at) >= refreshEvery {
		r.claims.drop(keyID)
	}
	owner := a.ID
	if keyID == keyID.Document() && !keyID.Same(a.ID) {
		c, err := shareFlight(ctx, r.flights, "key", keyID, func(ctx context.Context) (claim, error) { return r.fetchKey(ctx, keyID) })
		if err == nil { // otherwise a is all that is known of the key
			owner = c.owner
		}
	}
	if _, err := r.Refresh(ctx, owner); err != nil {
		return nil, err
	}
	return r.ByKey(ctx, keyID)
}
