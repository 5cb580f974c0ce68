package outbox

import "context"

// emitEvents only logs. persist has already committed the event as a row, together with the
// activity and in order with the user's other events.
func (o *Outbox) emitEvents(ctx context.Context, x *exchange) error {
	o.Log.DebugContext(ctx, "activity sent", "user", x.User, "activity", x.activity.ID, "type", x.activity.Type)
	return nil
}
