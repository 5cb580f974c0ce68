package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
)

// sealedIntent is the intent of an action that package conversation may carry out, as it does in
// encrypted conversations. Then the outbox makes no activity of the action.
type sealedIntent interface {
	params
	// submit carries out the action if that is the task of package conversation, and reports
	// whether it is. A repeated call must change nothing, because the answer is stored only after
	// the call.
	submit(ctx context.Context, in *conversations, x *exchange) (bool, error)
}

// submitSealed carries out and answers an action if that is the task of package conversation, and
// reports whether it is.
func (o *Outbox) submitSealed(ctx context.Context, x *exchange, intent sealedIntent) (bool, error) {
	done, err := intent.submit(ctx, o.conversations, x)
	if !done || err != nil {
		return done, err
	}
	err = o.storeAnswered(ctx, x, func(ctx context.Context, tx *user.Tx) error {
		if err := o.answers.keepAnswer(tx, x); err != nil {
			return err
		}
		return tx.Audits.Add(ctx, newAudit(x, "ok"))
	})
	if err != nil {
		return true, err
	}
	return true, o.answers.respond(ctx, x)
}
