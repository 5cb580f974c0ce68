package outbox

import "context"

// deliver has nothing left to do: before persist returned, its commit handed the deliveries to the
// dispatcher.
func (o *Outbox) deliver(ctx context.Context, x *exchange) error {
	o.Log.DebugContext(ctx, "deliveries handed over", "user", x.User, "activity", x.activity.ID)
	return nil
}
