package outbox

import "context"

// emitEvents ends the dispatch. Its event is a row that persist has committed with the activity, in
// the order in which everything else happened to the user.
func (o *Outbox) emitEvents(ctx context.Context, x *exchange) error {
	o.Log.DebugContext(ctx, "activity sent", "user", x.User, "activity", x.activity.ID, "type", x.activity.Type)
	return nil
}
