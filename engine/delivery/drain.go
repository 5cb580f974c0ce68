package delivery

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// releaseTime is the time that Run may take at its end to release leases and to write the ledger.
const releaseTime = 5 * time.Second

// drain waits for the turns and attempts in progress, and cancels them when the drain time is
// over. Meanwhile it writes the outcomes, so that they are stored even if the process is killed.
// Then it releases all leases, and writes the last batch of the ledger. The fault is Busy if it has
// canceled attempts.
func (d *Dispatcher) drain(ctx context.Context, cancel func()) (err error) {
	d.loop.isDraining = true
	over := time.NewTimer(d.Drain)
	defer over.Stop()
	for d.loop.beside > 0 {
		d.startWriting(ctx)
		select {
		case <-d.mail.arrived:
			d.mail.deliver()
		case <-over.C:
			if d.loop.queues.underWay > 0 {
				err = fault.New(fault.Busy, "deliveries did not end in time and were cut off; they go on at the next start")
			}
			cancel() // turns and attempts in progress notice this, and end
		}
	}
	d.mail.close()
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer end()
	d.releaseAll(ctx)
	d.writeBatch(ctx, d.loop.takeBatch(d.Now()))
	return err
}

// startWriting begins every turn that may write outcomes now. After ctx has ended, it begins none.
func (d *Dispatcher) startWriting(ctx context.Context) {
	for ctx.Err() == nil {
		u, t := d.loop.beginWriting(d.Now())
		if u == nil {
			return
		}
		d.begin(func() { d.runTurn(ctx, u.name, t) })
	}
}

// releaseAll writes the outcomes that no turn has written, and releases every lease.
func (d *Dispatcher) releaseAll(ctx context.Context) {
	users := userSet{}
	for u := range d.loop.ledger.entries {
		users[u] = true
	}
	for u := range d.loop.leases.rows {
		users[u] = true
	}
	var g errgroup.Group
	g.SetLimit(maxTurns)
	for u := range users {
		entries := d.loop.ledger.takeEntries(u)
		g.Go(func() error { d.releaseUser(ctx, u, entries); return nil })
	}
	_ = g.Wait() // every error was logged
}

func (d *Dispatcher) releaseUser(ctx context.Context, u vocab.Username, entries []entry) {
	if err := d.users.release(ctx, u, entries, d.Now()); err != nil { // then the next process takes the leases over
		d.Log.WarnContext(ctx, "deliveries could not be given back", "user", u, "err", err)
	}
}
