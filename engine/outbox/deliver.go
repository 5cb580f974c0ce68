package outbox

import "context"

// deliver only logs. The commit in persist has already passed the deliveries to the dispatcher.
func (o *Outbox) deliver(ctx context.Context, x *exchange) error {
	o.Log.DebugContext(ctx, "deliveries handed over", "user", x.User, "activity", x.activity.ID)
	return nil
}
