package inbox

import "context"

// executeSideEffects runs the handler of the activity's type. A type nobody knows has none: it is stored, not refused.
func (i *Inbox) executeSideEffects(ctx context.Context, x *applying) error {
	return i.Handlers.Received(ctx, x.tx, &x.Received)
}
