package actor

import (
	"context"
	"crypto"
	"fmt"
	"net/http"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Verifier finds out who signed a request.
type Verifier struct {
	actors     finder
	remembered finder // fetches nothing
	gate       Gate
	origin     string
	now        func() time.Time
}

// finder finds the owner of a key.
type finder interface {
	ByKey(ctx context.Context, keyID vocab.ID) (*vocab.Actor, error)
	renewKey(ctx context.Context, a *vocab.Actor, keyID vocab.ID) (*vocab.Actor, error)
	isOwn(id vocab.ID) bool // reports whether id belongs to this server
	NoteProof(ctx context.Context, host string, proven bool)
}

// NewVerifier returns a verifier of requests to origin.
func NewVerifier(r *Resolver, gate Gate, origin string, now func() time.Time) *Verifier {
	return &Verifier{r, remembering{r}, gate, origin, now}
}

// Claims returns the signatures of the request that pass the checks of signature.Parse. Nothing
// in them is proven yet.
func (v *Verifier) Claims(req *http.Request, body []byte) ([]signature.Claim, error) {
	return signature.Parse(req, body, signature.Options{Origin: v.origin, Now: v.now()})
}

// Admits refuses a local or blocked actor, from which no request is accepted. It fetches
// nothing.
func (v *Verifier) Admits(actor vocab.ID) error {
	return signature.First(&sender{v, actor}, senderChecks)
}

// sender is the actor that a request claims to come from.
type sender struct {
	*Verifier
	id vocab.ID
}

var senderChecks = []signature.Check[*sender]{
	{Name: "sender", Run: func(s *sender) error {
		if s.id.Origin() == s.origin {
			return refuseUnproven("local_actor", "a local actor does not come from outside", nil)
		}
		return nil
	}},
	{Name: "sender_policy", Run: func(s *sender) error { return s.gate.CheckActor(s.id) }},
}

// Signer returns the actor who made one of the claims. If the actor want made one of them,
// Signer returns that actor. The fault is Unauthenticated for a wrong claim, Forbidden for a
// blocked host, and Gone when the actor was deleted. If the key cannot be fetched now,
// fault.IsPassing is true for the fault, and the sender may retry.
func (v *Verifier) Signer(ctx context.Context, claims []signature.Claim, want vocab.ID) (*vocab.Actor, error) {
	a, err := v.findSigner(ctx, claims, want)
	switch {
	case err == nil:
		v.actors.NoteProof(ctx, a.ID.Host(), true)
	case fault.KindOf(err) == fault.Unauthenticated:
		v.actors.NoteProof(ctx, "", false)
	}
	return a, err
}

// Introduce returns the actor who signed the headers of a request whose body is not read yet. It
// does not check the body. Once the body is read, Claims tells whether the body is the one that
// was signed.
func (v *Verifier) Introduce(ctx context.Context, req *http.Request) (*vocab.Actor, error) {
	claims, err := v.readHeaders(req)
	if err != nil {
		return nil, err
	}
	return v.Signer(ctx, claims, "")
}

// Recognize is like Introduce, but it uses only the keys in the cache and the store, and fetches
// none. A request that it does not recognize does not count against the sender.
func (v *Verifier) Recognize(ctx context.Context, req *http.Request) (*vocab.Actor, error) {
	claims, err := v.readHeaders(req)
	if err != nil {
		return nil, err
	}
	recognizing := *v
	recognizing.actors = v.remembered
	return recognizing.findSigner(ctx, claims, "")
}

// readHeaders returns the signatures in which the headers show no error. It does not check the
// body.
func (v *Verifier) readHeaders(req *http.Request) ([]signature.Claim, error) {
	x, err := signature.Examine(req, nil, signature.Options{Origin: v.origin, Now: v.now()})
	if err != nil {
		return nil, err
	}
	if err := firstFailure(x.Findings); err != nil { // it concerns all signatures
		return nil, err
	}
	var refusal error
	var claims []signature.Claim
	for _, s := range x.Signatures {
		if err := firstFailure(s.Findings); err == nil {
			claims = append(claims, s.Claim)
		} else if refusal == nil {
			refusal = err
		}
	}
	if len(claims) == 0 && refusal != nil {
		return nil, refusal
	}
	return claims, nil
}

// firstFailure returns the first error in found, or nil if there is none. It ignores the check
// of the body's digest.
func firstFailure(found []signature.Finding) error {
	for _, f := range found {
		if f.Err != nil && f.Check != signature.DigestCheck {
			return f.Err
		}
	}
	return nil
}

// findSigner does what Signer does. If want is empty, only the claims with keys of one server
// count, so that nobody can make this server ask several servers for keys.
func (v *Verifier) findSigner(ctx context.Context, claims []signature.Claim, want vocab.ID) (*vocab.Actor, error) {
	if want == "" {
		claims = ofOneServer(claims)
	}
	var other *vocab.Actor
	var refusal error
	for _, c := range claims {
		a, err := v.proveClaim(ctx, c)
		switch {
		case err == nil && (want == "" || a.ID.Same(want)):
			return a, nil
		case err == nil && other == nil:
			other = a
		case err != nil && (refusal == nil || fault.KindOf(refusal) == fault.Unauthenticated):
			refusal = fmt.Errorf("%s: %w", c, err)
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

// ofOneServer returns the claims whose keys are on the server of the first one.
func ofOneServer(claims []signature.Claim) (same []signature.Claim) {
	for _, c := range claims {
		if vocab.IDOf(c.KeyID).SameOrigin(vocab.IDOf(claims[0].KeyID)) {
			same = append(same, c)
		}
	}
	return same
}

func (v *Verifier) proveClaim(ctx context.Context, c signature.Claim) (*vocab.Actor, error) {
	p := &claimed{Verifier: v, ctx: ctx, claim: c}
	if err := signature.First(p, ownerChecks); err != nil {
		return nil, err
	}
	err := p.checkClaim()
	if err == nil {
		return p.actor, nil
	}
	renewed, failure := p.renewKey()
	switch {
	case failure != nil:
		return nil, failure
	case !renewed:
		return nil, err
	}
	return p.actor, p.checkClaim()
}

// claimed is a claim that is being verified. It lives as long as one call, so it may hold ctx.
type claimed struct {
	*Verifier
	ctx   context.Context
	claim signature.Claim
	want  vocab.ID // the actor that must have signed; empty for any
	keyID vocab.ID
	actor *vocab.Actor // the owner of the key
	key   crypto.PublicKey
}

// ownerChecks find the owner of the key, and keyChecks read the key. After these checks, the
// claim is verified with the key.
var (
	ownerChecks = []signature.Check[*claimed]{
		{Name: "policy", Run: (*claimed).checkPolicy},
		{Name: "key_server", Needs: []string{"policy"}, Run: (*claimed).checkServer},
		{Name: "key", Needs: []string{"policy"}, Run: (*claimed).findOwner},
		{Name: "owner", Needs: []string{"key"}, Run: (*claimed).checkOwner},
	}
	keyChecks = []signature.Check[*claimed]{{Name: "usable", Run: (*claimed).readKey}}
)

func (p *claimed) checkPolicy() (err error) {
	if p.keyID, err = vocab.ParseID(p.claim.KeyID); err != nil {
		return refuseUnproven("bad_key_id", "the key id is not an absolute https URL", err)
	}
	if p.actors.isOwn(p.keyID) {
		return nil
	}
	return p.gate.Check(p.keyID.Host())
}

// checkServer refuses a key that is not on the server of want, before the key is fetched.
func (p *claimed) checkServer() error {
	if p.want != "" && !p.keyID.SameOrigin(p.want) {
		return refuseUnproven("foreign_key", "the signing key is not on the actor's server", nil)
	}
	return nil
}

func (p *claimed) findOwner() (err error) {
	p.actor, err = p.actors.ByKey(p.ctx, p.keyID)
	return explainUnknown(err)
}

func (p *claimed) checkOwner() error {
	if p.want != "" && !p.actor.ID.Same(p.want) {
		return refuseUnproven("foreign_key", "the signing key is another actor's", nil)
	}
	return nil
}

// readKey reads the key that the actor lists.
func (p *claimed) readKey() error {
	key, err := ListedKey(p.actor, p.keyID)
	if err != nil {
		p.key = nil
		return refuseUnproven("unusable_key", "the actor lists no key of that id that can be used", err)
	}
	p.key = key
	return nil
}

// checkClaim verifies the claim with the key that the actor lists.
func (p *claimed) checkClaim() error {
	if err := signature.First(p, keyChecks); err != nil {
		return err
	}
	return p.claim.Verify(p.key)
}

// renewKey fetches the key again, because it may have changed since it was stored. The result
// renewed reports whether the key has changed or is not usable any more.
func (p *claimed) renewKey() (renewed bool, err error) {
	if p.actors.isOwn(p.keyID) {
		return false, nil
	}
	a, err := p.actors.renewKey(p.ctx, p.actor, p.keyID)
	if err != nil {
		return false, explainUnknown(err)
	}
	p.actor = a
	now, err := ListedKey(a, p.keyID)
	return err != nil || !sameKey(p.key, now), nil
}

func sameKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// explainUnknown returns Unauthenticated for an error that says that a key has no owner that can
// be found. It returns other errors as they are.
func explainUnknown(err error) error {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.NoUser, fault.NoHost, fault.Forbidden, fault.Protocol, fault.Invalid:
		return refuseUnproven("unknown_key", "the key and its owner cannot be found", err)
	}
	return err
}

// ExplainGone returns Unauthenticated for an error of Signer that says that the key's owner was
// deleted, and other errors as they are. As an answer to the request, Gone would say that the
// requested resource was deleted.
func ExplainGone(err error) error {
	if fault.KindOf(err) == fault.Gone {
		return refuseUnproven("key_gone", "the signing key is gone", err)
	}
	return err
}

func refuseUnproven(code, public string, err error) error {
	return fault.Wrap(fault.Unauthenticated, public, err).WithCode(code)
}
