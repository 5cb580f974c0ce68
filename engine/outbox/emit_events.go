package outbox

import "context"

// emitEvents says that there is something to relay: the event itself was committed with the activity.
func (o *Outbox) emitEvents(_ context.Context, x *exchange) error {
	if o.Emitted != nil {
		o.Emitted(x.User)
	}
	return nil
}
