package explain

import (
	"context"
	"encoding/json"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/vocab"
)

// objects fetches an object from its server.
type objects interface {
	Object(ctx context.Context, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error)
}

// checkPassedOn checks an activity whose request was signed by another actor than the activity's
// own. The activity is accepted if it has a proof by its actor, or if the actor's server shows it.
// If objects is nil, checkPassedOn does not ask that server.
func (t *explainer) checkPassedOn(ctx context.Context, v *actor.Verifier, a *vocab.Activity, objects objects) {
	if t.out.Code != "foreign_key" || a == nil || !t.hasGoodSignature(ctx, v) {
		return
	}
	proven := t.checkProof(ctx, v, a)
	t.out.Checks = append(t.out.Checks, proven)
	origin := Check{Check: "origin", Result: CheckNotReached}
	switch {
	case proven.Result != CheckNotReached: // there is a proof, so the check of the proof decides
	case a.Type == vocab.Delete:
		origin.Says = "whether what it deletes is gone is asked for when it comes"
	case objects != nil:
		origin = checkOrigin(ctx, a, objects)
	}
	t.out.Checks = append(t.out.Checks, origin)
	for _, c := range []Check{proven, origin} {
		switch c.Result {
		case CheckPassed:
			t.out.Verified, t.out.Code, t.out.Hint, t.out.failure = true, "", "", nil
		case CheckFailed:
			t.out.Code = c.Code
			t.out.failure = fault.New(fault.Unauthenticated, c.Says).WithCode(c.Code)
			t.out.Hint = t.hint()
		}
	}
}

// hasGoodSignature reports whether one of the signatures verifies, no matter which actor made
// it.
func (t *explainer) hasGoodSignature(ctx context.Context, v *actor.Verifier) bool {
	for i := range t.signatures {
		if refusal(v.Explain(ctx, t.seen.Signatures[i], "", nil).Findings) == nil {
			return true
		}
	}
	return false
}

func (t *explainer) checkProof(ctx context.Context, v *actor.Verifier, a *vocab.Activity) Check {
	c := Check{Check: "proof", Result: CheckNotReached, Says: "there is none that can be verified"}
	p, err := proof.Parse(a.Doc, t.At)
	if err == nil && p != nil {
		_, err = v.Prover(ctx, p, a.Actor)
	}
	switch {
	case err == nil && p != nil && handler.IsOutdated(a, p.Created, t.At):
		c.Says = string(a.Actor) + " proves it with " + string(p.Method) + ", but so long ago that the actor's server is asked for it"
	case err == nil && p != nil:
		c.Result, c.Says = CheckPassed, string(a.Actor)+" proves it with "+string(p.Method)
	case err != nil && fault.KindOf(err) != fault.NotFound:
		c.Result, c.Says, c.Code = CheckFailed, err.Error(), codeOf(err)
	}
	return c
}

func checkOrigin(ctx context.Context, a *vocab.Activity, objects objects) Check {
	c := Check{Check: "origin", Result: CheckFailed, Code: "foreign_key"}
	if !a.ID.SameOrigin(a.Actor) {
		c.Says = "its id is not on its actor's server"
		return c
	}
	o, raw, err := objects.Object(ctx, a.ID, nil)
	if err != nil {
		c.Says = err.Error()
		return c
	}
	if there, err := vocab.ActivityOf(o.Doc, raw); err != nil || !there.ID.Same(a.ID) || !there.Actor.Same(a.Actor) {
		c.Says = "its actor's server shows something else under its id"
		return c
	}
	return Check{Check: "origin", Result: CheckPassed, Says: a.Actor.Host() + " shows it, and what it shows is taken"}
}
