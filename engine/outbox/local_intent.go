package outbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
)

// localIntent is the intent of an action that changes what the user alone has: no activity is made
// of it, and nobody is told.
type localIntent interface {
	params
	// applyChange makes the change.
	applyChange(ctx context.Context, tx *db.Tx, x *exchange) error
}

// applyLocally does a local action and answers it: the steps that make an activity are left out.
func (o *Outbox) applyLocally(ctx context.Context, x *exchange, intent localIntent) error {
	err := o.Store.Write(ctx, x.User, func(ctx context.Context, tx *db.Tx) error {
		if err := o.keepAnswer(ctx, tx, x); err != nil {
			return err
		}
		if err := intent.applyChange(ctx, tx, x); err != nil {
			return err
		}
		return tx.AddAudit(ctx, newAudit(x, "ok"))
	})
	if db.TakenKey(err) {
		return fault.Wrap(fault.Busy, "the Idempotency-Key is in use", err).After(time.Second)
	}
	if err != nil {
		return err
	}
	return o.respond(ctx, x)
}
