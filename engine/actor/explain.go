package actor

import (
	"context"
	"crypto"
	"slices"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Explained is one signature of a request, with everything that was found out about it and its key.
type Explained struct {
	signature.Claim
	Findings []signature.Finding // as Claims and Signer would make them
	Owner    *vocab.Actor        // whose key it is; nil when that was not found out
	Key      crypto.PublicKey    // nil when there is none to hold the claim against
	Renewed  bool                // the key was another one before its server was asked again
}

// Explain goes through the checks of Signer and stops at none. It must be want who signed, unless
// that is empty. With a key the claim is held against that one, and nobody is asked whose it is.
func (v *Verifier) Explain(ctx context.Context, s signature.Examined, want vocab.ID, key crypto.PublicKey) Explained {
	x := Explained{Claim: s.Claim, Findings: slices.Clone(s.Findings), Key: key}
	named := slices.ContainsFunc(s.Findings, func(f signature.Finding) bool { return f.Check == "key_id" && f.Reached && f.Err == nil })
	if key != nil || !named {
		x.Findings = slices.Concat(x.Findings, signature.None(ownerChecks), signature.None(keyChecks), s.Claim.Examine(key))
		return x
	}
	p := &claimed{Verifier: v, ctx: ctx, claim: s.Claim, want: want}
	owner := signature.All(p, ownerChecks)
	held := p.examineClaim()
	if p.actor != nil && slices.ContainsFunc(held, func(f signature.Finding) bool { return f.Err != nil }) {
		if renewed, err := p.renewKey(); err == nil && renewed {
			held, x.Renewed = p.examineClaim(), true
		}
	}
	x.Findings = slices.Concat(x.Findings, owner, held)
	x.Owner, x.Key = p.actor, p.key
	return x
}

// examineClaim holds the claim against the key that the actor lists, as checkClaim does.
func (p *claimed) examineClaim() []signature.Finding {
	found := signature.None(keyChecks)
	if p.actor != nil {
		found = signature.All(p, keyChecks)
	}
	return append(found, p.claim.Examine(p.key)...)
}

// ExplainSender goes through what Admits checks of the actor alone.
func (v *Verifier) ExplainSender(id vocab.ID) []signature.Finding {
	if id == "" {
		return signature.None(senderChecks)
	}
	return signature.All(&sender{v, id}, senderChecks)
}

// VerifierOf returns a verifier that knows one actor and asks nobody.
func VerifierOf(a *vocab.Actor, gate Gate, origin string) *Verifier {
	return &Verifier{actors: given{a}, gate: gate, origin: origin}
}

// given is an actor whose document is at hand.
type given struct{ *vocab.Actor }

func (g given) ByKey(_ context.Context, keyID vocab.ID) (*vocab.Actor, error) {
	if indexOfKey(g.Actor, keyID) < 0 {
		return nil, fault.New(fault.NotFound, "the actor does not list that key")
	}
	return g.Actor, nil
}

func (g given) renewKey(context.Context, *vocab.Actor, vocab.ID) (*vocab.Actor, error) {
	return g.Actor, nil
}

func (g given) isOwn(vocab.ID) bool { return false }

func (given) NoteProof(context.Context, string, bool) {}
