package delivery

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
)

// Committed queues the deliveries that a commit leased to this dispatcher. It also requests a turn
// (see schedule), which claims the user's other due deliveries. If it is not known whether the
// commit took place, that turn releases the leases that the commit may have taken. While the
// dispatcher runs, Committed does not wait.
func (d *Dispatcher) Committed(ctx context.Context, c user.Commit) {
	if !c.Owes {
		return
	}
	taken := d.mail.post(func() {
		d.loop.queueRows(c.User, c.Leased, c.LeasedUntil.Add(-leaseTime), c.LeasedUntil)
		if c.Unknown {
			d.loop.schedule.user(c.User).doubt(d.Now())
		}
		d.loop.requestTurn(c.User, atOnce)
	})
	// The deliveries are released now, so that they do not wait until the next process takes them
	// over.
	if !taken && len(c.Leased) > 0 {
		d.releaseUser(ctx, c.User, nil)
	}
}
