package outbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/fault"
)

// signRequest loads the keys that sign the delivery attempts, and logs an error if they cannot be
// read. Each attempt makes its own signature, because a signature has a date. signRequest does not
// refuse the action, because the activity is stored by now and is sent as soon as the keys can be
// read. The earlier step resolveRecipients refuses an action that cannot be signed, because
// nothing is stored at that time.
func (o *Outbox) signRequest(ctx context.Context, x *exchange) error {
	if len(x.inboxes) == 0 {
		return nil
	}
	if _, err := o.Keys.Keys(x.User); err != nil && !fault.IsLogged(err) {
		o.Log.ErrorContext(ctx, "keys could not be read", "user", x.User, "err", err)
	}
	return nil
}
