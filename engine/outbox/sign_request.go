package outbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/fault"
)

// signRequest loads the keys that the attempts will sign with; each makes its own signature, since
// that carries the date. The activity is stored by now and will be sent whenever the keys can be
// read, so that they cannot is no refusal any more: resolveRecipients refuses, before anything is
// stored.
func (o *Outbox) signRequest(ctx context.Context, x *exchange) error {
	if len(x.inboxes) == 0 {
		return nil
	}
	if _, err := o.Keys.Keys(x.User); err != nil && !fault.IsLogged(err) {
		o.Log.ErrorContext(ctx, "keys could not be read", "user", x.User, "err", err)
	}
	return nil
}
