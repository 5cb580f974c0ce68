package outbox

import "context"

// deliver hands over what is to be delivered. Nobody waits for the world.
func (o *Outbox) deliver(ctx context.Context, x *exchange) error {
	if x.queued {
		o.Queue.Take(ctx, x.User, x.leased, x.leases.Until)
	}
	return nil
}
