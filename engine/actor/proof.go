package actor

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Prove returns the activity d of u with a proof by u's Ed25519 key (FEP-8b32), in the form in
// which it is stored and sent. The fault is Unavailable while the keys cannot be read.
func (l *Local) Prove(u vocab.Username, d vocab.Doc, now time.Time) (json.RawMessage, error) {
	keys, err := l.keys.Keys(u)
	if err != nil {
		return nil, unreadableKeys(err)
	}
	if d, err = proof.Sign(d, vocab.ID(keys.Ed25519.ID), keys.Ed25519.Private, now); err != nil {
		return nil, err
	}
	return d.JSON(), nil
}

// Attest returns u's signature of a text, by the Ed25519 key that u's actor lists. The fault is
// Unavailable while the keys cannot be read.
func (l *Local) Attest(u vocab.Username, text []byte) ([]byte, error) {
	keys, err := l.keys.Keys(u)
	if err != nil {
		return nil, unreadableKeys(err)
	}
	return keys.Ed25519.Private.Sign(rand.Reader, text, crypto.Hash(0))
}

func unreadableKeys(err error) error {
	return fault.Wrap(fault.Unavailable, "the user's keys cannot be read", err).WithCode("keys_unavailable").WithHint(fault.Hint(err))
}

// Prover returns the actor who made the proof. That actor must be want, and its own document must
// list the key among its assertion methods (FEP-521a). The fault is Unauthenticated if the proof
// does not hold or is another actor's, or if the actor lists the key only in another place. It is
// NotFound if there is no such key. That says nothing against the document (FEP-8b32). If the key
// cannot be fetched now, fault.IsPassing is true for the fault.
func (v *Verifier) Prover(ctx context.Context, p *proof.Proof, want vocab.ID) (*vocab.Actor, error) {
	if !p.Method.SameOrigin(want) {
		return nil, refuseUnproven("foreign_proof", "the proof is not by a key of the actor's server", nil)
	}
	a, err := v.actors.ByKey(ctx, p.Method)
	if err != nil {
		return nil, explainNotFound(err)
	}
	if !a.ID.Same(want) {
		return nil, refuseUnproven("foreign_proof", "the proof is another actor's", nil)
	}
	refusal := checkProof(p, a)
	if refusal == nil || v.actors.isOwn(p.Method) {
		return a, refusal
	}
	if a, err = v.actors.renewKey(ctx, a, p.Method); err != nil { // the key may have changed since it was remembered
		return nil, explainNotFound(err)
	}
	return a, checkProof(p, a)
}

// checkProof verifies the proof with the key that a lists as its own.
func checkProof(p *proof.Proof, a *vocab.Actor) error {
	i := slices.IndexFunc(a.Keys, func(k vocab.ActorKey) bool { return k.ID == p.Method && k.Asserts && k.Owner.Same(a.ID) })
	if i < 0 {
		return refuseUnproven("unusable_key", "the actor proves nothing by that key", nil)
	}
	key, err := signature.ParseMultikey(a.Keys[i].Multibase)
	if err != nil {
		return refuseUnproven("unusable_key", "the actor lists no key of that id that can be used", err)
	}
	edwards, ok := key.(ed25519.PublicKey)
	if !ok {
		return refuseUnproven("unusable_key", "the key of the proof is not an Ed25519 key", nil)
	}
	return p.Verify(edwards)
}

// explainNotFound returns NotFound for an error that says that a proof's key has no owner that
// can be found. It returns other errors as they are.
func explainNotFound(err error) error {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.NoUser, fault.NoHost, fault.Forbidden, fault.Protocol, fault.Invalid, fault.Gone:
		return fault.Wrap(fault.NotFound, "the key of the proof cannot be found", err)
	}
	return err
}
