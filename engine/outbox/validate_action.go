package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
)

// ErrScope refuses an action that the scopes of the token do not allow.
var ErrScope = fault.New(fault.Forbidden, "the token is not for that").WithCode("insufficient_scope")

// validateAction refuses actions that are not in the vocabulary, and wrong parameters. An action
// that was answered before under its Idempotency-Key is answered here, without the later steps.
// Actions that package conversation carries out (see sealedIntent) and local actions are answered
// here, too.
func (o *Outbox) validateAction(ctx context.Context, x *exchange, next pipeline.Next) error {
	if x.intent != nil { // the engine itself made the dispatch
		return next(ctx)
	}
	wanted, refusal := checkAction(x.Dispatch)
	if refusal == nil {
		x.digest = digestAction(x.Action)
		if x.IdempotencyKey != "" {
			if replayed, err := o.answers.replayAnswer(ctx, x); replayed || err != nil {
				return err
			}
		}
	}
	if x.Assistant {
		if err := o.countAttempt(ctx, x); err != nil {
			return err
		}
	}
	if refusal != nil {
		return refusal
	}
	if err := o.findCause(ctx, x); err != nil {
		return err
	}
	if sealed, is := wanted.(sealedIntent); is {
		if done, err := o.submitSealed(ctx, x, sealed); done || err != nil {
			return err
		}
	}
	if local, is := wanted.(localIntent); is {
		return o.applyLocally(ctx, x, local)
	}
	x.intent = wanted.(intent) // the function word accepts only types that are intents
	return next(ctx)
}

// checkAction checks the name and the parameters of an action, and whether the client may dispatch
// it.
func checkAction(d Dispatch) (params, error) {
	a, ok := vocabulary[d.Action.Name]
	switch {
	case !ok:
		return nil, fault.New(fault.Unprocessable, fmt.Sprintf("%.60q is not an action", d.Action.Name)).WithCode("unknown_action").At("/action")
	case d.Assistant && !slices.Contains(a.scopes, instance.ScopeLLM):
		return nil, ErrScope
	}
	return a.read(d.Action.Params)
}

// digestAction returns a digest of the name and parameters of an action. Two actions with the
// same digest ask for the same.
func digestAction(a pipeline.Action) []byte {
	b := bytes.NewBufferString(a.Name + "\n")
	// Compact fails only if there are no parameters, because read has refused all other malformed
	// JSON.
	if err := json.Compact(b, a.Params); err != nil {
		b.WriteString("{}")
	}
	sum := sha256.Sum256(b.Bytes())
	return sum[:]
}
