package outbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/fault"
)

// signRequest loads the keys that sign the delivery attempts, and logs an error. Each attempt
// makes its own signature, because a signature has a date. The activity is stored by now and is
// sent as soon as the keys can be read, so unreadable keys are no reason for a refusal here. The
// earlier step resolveRecipients refuses the action for that reason, because nothing is stored at
// that time.
func (o *Outbox) signRequest(ctx context.Context, x *exchange) error {
	if len(x.inboxes) == 0 {
		return nil
	}
	if _, err := o.Keys.Keys(x.User); err != nil && !fault.IsLogged(err) {
		o.Log.ErrorContext(ctx, "keys could not be read", "user", x.User, "err", err)
	}
	return nil
}
