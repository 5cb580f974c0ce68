package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
)

// localIntent is the intent of an action that only changes private data of the user. The action
// becomes no activity, and no other actor is told.
type localIntent interface {
	params
	// applyChange makes the change.
	applyChange(ctx context.Context, tx *user.Tx, x *exchange) error
}

// applyLocally carries out a local action and answers it. The later steps of the pipeline,
// which make an activity, do not run.
func (o *Outbox) applyLocally(ctx context.Context, x *exchange, intent localIntent) error {
	err := o.storeAnswered(ctx, x, func(ctx context.Context, tx *user.Tx) error {
		if err := o.answers.keepAnswer(tx, x); err != nil {
			return err
		}
		if err := intent.applyChange(ctx, tx, x); err != nil {
			return err
		}
		return tx.Audits.Add(ctx, newAudit(x, "ok"))
	})
	if err != nil {
		return err
	}
	return o.answers.respond(ctx, x)
}
