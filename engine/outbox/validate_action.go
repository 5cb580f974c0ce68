package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// validateAction refuses everything but the actions of the vocabulary with the parameters they
// have. One that was answered before, under its Idempotency-Key, ends here, and so does a local
// one.
func (o *Outbox) validateAction(ctx context.Context, x *exchange, next pipeline.Next) error {
	if x.intent != nil { // the engine's own
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
		if replayed, err := o.replayAnswer(ctx, x); replayed || err != nil {
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
	x.intent = wanted.(intent) // as word says
	return next(ctx)
}

// digestAction stands for an action: two with the same digest ask for the same.
func digestAction(a pipeline.Action) []byte {
	b := bytes.NewBufferString(a.Name + "\n")
	if err := json.Compact(b, a.Params); err != nil { // absent: any error means that there is no JSON, and read has passed it
		b.WriteString("{}")
	}
	sum := sha256.Sum256(b.Bytes())
	return sum[:]
}

// answer is a Result as it is stored.
type answer struct {
	Activity vocab.ID `json:"activityId"`
	Object   vocab.ID `json:"objectId,omitempty"`
	Job      *Job     `json:"job,omitempty"`

	Accepted     *conversation.Accepted `json:"accepted,omitempty"`
	Conversation uuid.UUID              `json:"conversationId,omitzero"`

	Unresolved []string `json:"unresolved,omitempty"`
}

// replayAnswer answers x as the action under its Idempotency-Key was answered before, if it was.
func (o *Outbox) replayAnswer(ctx context.Context, x *exchange) (bool, error) {
	var stored *db.Answer
	err := o.Store.Write(ctx, x.User, func(ctx context.Context, tx *db.Tx) (err error) {
		stored, err = tx.StoredAnswer(ctx, x.IdempotencyKey, x.now)
		return err
	})
	if err != nil || stored == nil {
		return false, err
	}
	if !bytes.Equal(stored.Digest, x.digest) {
		return false, fault.New(fault.Unprocessable, "the Idempotency-Key was used for another action").WithCode("idempotency_key_reuse")
	}
	x.answer = answer{}
	if err := json.Unmarshal(stored.Answer, &x.answer); err != nil {
		return false, fmt.Errorf("read stored answer: %w", err)
	}
	x.replayed = true
	return true, o.respond(ctx, x)
}
