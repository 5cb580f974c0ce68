package actor

import (
	"context"
	"crypto"
	"slices"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Explained is one signature of a request, with the results of all checks of the signature and its
// key.
type Explained struct {
	signature.Claim
	Findings []signature.Finding // of the checks that Claims and Signer make
	Owner    *vocab.Actor        // the owner of the key; nil when it was not found
	Key      crypto.PublicKey    // nil when there is no key to verify the claim with
	Renewed  bool                // the key was fetched again and had changed
}

// Explain makes all the checks of Signer, even after one of them has failed. If want is not
// empty, the signer must be the actor want. If key is not nil, the claim is verified with key,
// and the owner of the key is not looked up.
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

// examineClaim verifies the claim with the key that the actor lists, as checkClaim does, and
// returns the result of every check.
func (p *claimed) examineClaim() []signature.Finding {
	found := signature.None(keyChecks)
	if p.actor != nil {
		found = signature.All(p, keyChecks)
	}
	return append(found, p.claim.Examine(p.key)...)
}

// ExplainSender returns the result of each check that Admits makes of the actor that id names. It
// makes no check when id is empty.
func (v *Verifier) ExplainSender(id vocab.ID) []signature.Finding {
	if id == "" {
		return signature.None(senderChecks)
	}
	return signature.All(&sender{v, id}, senderChecks)
}

// VerifierOf returns a verifier that finds only the keys of the actor a and fetches nothing.
func VerifierOf(a *vocab.Actor, gate Gate, origin string) *Verifier {
	return &Verifier{actors: given{a}, gate: gate, origin: origin}
}

// given finds the keys of one actor, whose document need not be fetched.
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
