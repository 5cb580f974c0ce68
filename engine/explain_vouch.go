package engine

import (
	"context"
	"encoding/json"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/vocab"
)

// objects shows what a server has under an id.
type objects interface {
	Object(ctx context.Context, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error)
}

// vouch goes through what makes good that somebody else signed what an actor did: a proof of the actor's own, else that the
// actor's server shows the activity. Without objects that server is not asked.
func (t *telling) vouch(ctx context.Context, v *actor.Verifier, a *vocab.Activity, objects objects) {
	if t.out.Code != "foreign_key" || a == nil || !t.passed(ctx, v) {
		return
	}
	proven := t.proven(ctx, v, a)
	t.out.Checks = append(t.out.Checks, proven)
	origin := ExplainedCheck{Check: "origin", Result: CheckNotReached}
	switch {
	case proven.Result != CheckNotReached: // which decides
	case a.Type == vocab.Delete:
		origin.Says = "whether what it deletes is gone is asked for when it comes"
	case objects != nil:
		origin = shown(ctx, a, objects)
	}
	t.out.Checks = append(t.out.Checks, origin)
	for _, c := range []ExplainedCheck{proven, origin} {
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

// passed tells whether one of the signatures is good, whoever made it.
func (t *telling) passed(ctx context.Context, v *actor.Verifier) bool {
	for i := range t.signatures {
		if refusal(v.Explain(ctx, t.seen.Signatures[i], "", nil).Findings) == nil {
			return true
		}
	}
	return false
}

func (t *telling) proven(ctx context.Context, v *actor.Verifier, a *vocab.Activity) ExplainedCheck {
	c := ExplainedCheck{Check: "proof", Result: CheckNotReached, Says: "there is none that can be verified"}
	p, err := proof.Parse(a.Doc, t.At)
	if err == nil && p != nil {
		_, err = v.Prover(ctx, p, a.Actor)
	}
	switch {
	case err == nil && p != nil:
		c.Result, c.Says = CheckPassed, string(a.Actor)+" proves it with "+string(p.Method)
	case err != nil && fault.KindOf(err) != fault.NotFound:
		c.Result, c.Says, c.Code = CheckFailed, err.Error(), codeOf(err)
	}
	return c
}

func shown(ctx context.Context, a *vocab.Activity, objects objects) ExplainedCheck {
	c := ExplainedCheck{Check: "origin", Result: CheckFailed, Code: "foreign_key"}
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
	return ExplainedCheck{Check: "origin", Result: CheckPassed, Says: a.Actor.Host() + " shows it, and what it shows is taken"}
}
