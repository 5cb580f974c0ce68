package delivery

import (
	"context"

	"github.com/lightweb/lightweb/db"
)

// Committed begins with the deliveries that a commit leased to this dispatcher, and looks for what
// else the user owes. It waits for nothing while the dispatcher runs.
func (d *Dispatcher) Committed(ctx context.Context, c db.Commit) {
	if !c.Owes {
		return
	}
	taken := d.mail.post(func() {
		d.loop.queueRows(c.User, c.Leased, c.LeasedUntil.Add(-leaseTime), c.LeasedUntil)
		d.loop.requestTurn(c.User, atOnce)
	})
	if !taken && len(c.Leased) > 0 { // the next process would take them over, too
		d.releaseUser(ctx, c.User, nil)
	}
}
