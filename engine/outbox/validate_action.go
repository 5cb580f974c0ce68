package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
)

// validateAction refuses actions that are not in the vocabulary, and wrong parameters. An action
// that was answered before under its Idempotency-Key is answered here, without the later steps.
// Actions that package conversation carries out (see sealedIntent) and local actions are answered
// here, too.
func (o *Outbox) validateAction(ctx context.Context, x *exchange, next pipeline.Next) error {
	if x.intent != nil { // the engine itself made the dispatch
		return next(ctx)
	}
	a, ok := vocabulary[x.Action.Name]
	if !ok {
		return fault.New(fault.Unprocessable, fmt.Sprintf("%.60q is not an action", x.Action.Name)).WithCode("unknown_action").At("/action")
	}
	wanted, err := a.read(x.Action.Params)
	if err != nil {
		return err
	}
	x.digest = digestAction(x.Action)
	if x.IdempotencyKey != "" {
		if replayed, err := o.answers.replayAnswer(ctx, x); replayed || err != nil {
			return err
		}
	}
	if x.Assistant {
		if err := o.countAttempt(ctx, x); err != nil {
			return err
		}
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
