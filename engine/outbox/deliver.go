package outbox

import "context"

// deliver wakes the dispatcher. Nobody waits for the world.
func (o *Outbox) deliver(_ context.Context, x *exchange) error {
	if x.queued {
		o.Wake(x.User)
	}
	return nil
}
