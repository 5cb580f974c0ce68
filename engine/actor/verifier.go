package actor

import (
	"context"
	"crypto"
	"net/http"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Verifier tells who signed a request.
type Verifier struct {
	actors *Resolver
	gate   Gate
	origin string
	now    func() time.Time
}

// NewVerifier returns a verifier of requests to origin.
func NewVerifier(r *Resolver, gate Gate, origin string, now func() time.Time) *Verifier {
	return &Verifier{r, gate, origin, now}
}

// Claims returns the signatures of the request that are worth verifying. Nothing in them is proven yet.
func (v *Verifier) Claims(req *http.Request, body []byte) ([]signature.Claim, error) {
	return signature.Parse(req, body, signature.Options{Origin: v.origin, Now: v.now()})
}

// Signer returns the actor who made one of the claims: want, if it made one. What is wrong with the claims is
// Unauthenticated, a blocked host Forbidden. The fault is Gone when the actor was deleted, and one of passing when nobody
// can tell now: the request may then come again.
func (v *Verifier) Signer(ctx context.Context, claims []signature.Claim, want vocab.ID) (*vocab.Actor, error) {
	var other *vocab.Actor
	var refusal error
	for _, c := range claims {
		a, err := v.signer(ctx, c)
		switch {
		case err == nil && (want == "" || a.ID.Same(want)):
			return a, nil
		case err == nil && other == nil:
			other = a
		case err != nil && (refusal == nil || fault.KindOf(refusal) == fault.Unauthenticated):
			refusal = err
		}
	}
	if other != nil {
		return other, nil
	}
	if refusal == nil {
		refusal = fault.New(fault.Unauthenticated, "the request is not signed").WithCode("unsigned")
	}
	return nil, refusal
}

func (v *Verifier) signer(ctx context.Context, c signature.Claim) (*vocab.Actor, error) {
	keyID, err := vocab.ParseID(c.KeyID)
	if err != nil {
		return nil, unproven("bad_key_id", "the key id is not an absolute https URL", err)
	}
	if err := v.gate.Check(keyID.Host()); err != nil && !v.actors.Local.owns(keyID) {
		return nil, err
	}
	a, err := v.actors.ByKey(ctx, keyID)
	if err != nil {
		return nil, unknown(err)
	}
	key, err := v.proven(c, a, keyID)
	if err != nil {
		if a, err = v.again(ctx, c, a, keyID, key, err); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// again verifies a claim that failed with the key that was remembered, in case that the key has changed since.
func (v *Verifier) again(ctx context.Context, c signature.Claim, a *vocab.Actor, keyID vocab.ID, old crypto.PublicKey, refusal error) (*vocab.Actor, error) {
	if v.actors.Local.owns(keyID) {
		return nil, refusal
	}
	a, err := v.actors.renewKey(ctx, a, keyID)
	if err != nil {
		return nil, unknown(err)
	}
	if now, err := v.actors.Key(a, keyID); err == nil && sameKey(old, now) {
		return nil, refusal
	}
	_, err = v.proven(c, a, keyID)
	return a, err
}

// proven verifies the claim with the key that a lists.
func (v *Verifier) proven(c signature.Claim, a *vocab.Actor, keyID vocab.ID) (crypto.PublicKey, error) {
	key, err := v.actors.Key(a, keyID)
	if err != nil {
		return nil, unproven("unusable_key", "the actor lists no key of that id that can be used", err)
	}
	return key, c.Verify(key)
}

func sameKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// unknown returns what it means for a request that the owner of its key was not found.
func unknown(err error) error {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.NoUser, fault.NoHost, fault.Forbidden, fault.Protocol, fault.Invalid:
		return unproven("unknown_key", "the key and its owner cannot be found", err)
	}
	return err
}

func unproven(code, public string, err error) error {
	return fault.Wrap(fault.Unauthenticated, public, err).WithCode(code)
}
