package outbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
)

// sealedIntent is the intent of an action that may be for an encrypted conversation. That one keeps
// what it is sent; no activity is made of it here.
type sealedIntent interface {
	params
	// submit does what the action asks of an encrypted conversation, and reports whether it was for
	// one. Done again it must change nothing: the answer is stored afterwards.
	submit(ctx context.Context, o *Outbox, x *exchange) (bool, error)
}

// submitSealed answers an action that was for an encrypted conversation.
func (o *Outbox) submitSealed(ctx context.Context, x *exchange, intent sealedIntent) (bool, error) {
	done, err := intent.submit(ctx, o, x)
	if !done || err != nil {
		return done, err
	}
	err = o.Store.Write(ctx, x.User, func(ctx context.Context, tx *db.Tx) error {
		if err := o.keepAnswer(ctx, tx, x); err != nil {
			return err
		}
		return tx.AddAudit(ctx, newAudit(x, "ok"))
	})
	if db.TakenKey(err) {
		return true, fault.Wrap(fault.Busy, "the Idempotency-Key is in use", err).After(time.Second)
	}
	if err != nil {
		return true, err
	}
	return true, o.respond(ctx, x)
}
