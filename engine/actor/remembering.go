package actor

import (
	"context"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// remembering finds the owner of a key among the actors in the cache and in the store, including
// old copies. It fetches nothing.
type remembering struct{ *Resolver }

// ByKey returns the actor whose copy lists the key. The fault is NotFound when there is none.
func (r remembering) ByKey(ctx context.Context, keyID vocab.ID) (*vocab.Actor, error) {
	a, err := r.Known(ctx, keyID.Document())
	if err == nil && a == nil {
		var owner vocab.ID
		if owner, err = r.recallClaim(ctx, keyID); err == nil && owner != "" {
			a, err = r.Known(ctx, owner)
		}
	}
	if err != nil {
		return nil, err
	}
	if a != nil {
		a = r.withKey(a, keyID)
	}
	if a == nil {
		return nil, fault.New(fault.NotFound, "no actor is remembered to list that key")
	}
	return a, r.Gate.CheckActor(a.ID)
}

// renewKey fetches nothing and returns a as it is.
func (remembering) renewKey(_ context.Context, a *vocab.Actor, _ vocab.ID) (*vocab.Actor, error) {
	return a, nil
}

// NoteProof does nothing.
func (remembering) NoteProof(context.Context, string, bool) {}
