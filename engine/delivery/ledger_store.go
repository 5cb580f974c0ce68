package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/lightweb/lightweb/db/instance"
)

const (
	ledgerPoll  = 2 * time.Second        // how often changes by other processes are read
	ledgerDelay = 250 * time.Millisecond // how long changes are collected before a batch is written
)

// keepLedger reads the instance database. Then, until ctx ends, it writes a batch whenever the
// ledger has changes, and reads changes by other processes.
func (d *Dispatcher) keepLedger(ctx context.Context, news <-chan struct{}) {
	d.readLedger(ctx)
	poll := time.NewTicker(d.poll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			d.readChanges(ctx)
		case <-news:
			if !sleep(ctx, ledgerDelay) {
				return
			}
		}
		if b, ok := ask(d.mail, func() batch { return d.loop.takeBatch(d.Now()) }); ok {
			failed, marked := d.writeBatch(ctx, b)
			d.mail.post(func() { d.loop.endBatch(b, failed, marked) })
		}
	}
}

// readLedger reads the instance database. A part that cannot be read now is read later; turns
// and attempts do not wait for it.
func (d *Dispatcher) readLedger(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	var m memories
	var errs [3]error
	m.hosts, errs[0] = d.Hosts.List(ctx, true)
	d.warn(ctx, "hosts not read", errs[0])
	m.parked, errs[1] = d.Due.ListParked(ctx)
	d.warn(ctx, "parked deliveries not read", errs[1])
	m.owing, errs[2] = d.Due.ListDue(ctx, time.Time{})
	d.warn(ctx, "users who owe deliveries not read", errs[2])
	m.isAll = errors.Join(errs[:]...) == nil
	d.mail.post(func() { d.loop.recall(m, d.Now()) })
}

func (d *Dispatcher) warn(ctx context.Context, message string, err error) {
	if err != nil && ctx.Err() == nil {
		d.Log.WarnContext(ctx, message, "err", err)
	}
}

// readChanges reads changes by other processes.
func (d *Dispatcher) readChanges(ctx context.Context) {
	type known struct {
		seen   time.Time
		hasAll bool
	}
	k, ok := ask(d.mail, func() known { return known{d.loop.ledger.seen, d.loop.hasAll} })
	if !ok {
		return
	}
	if !k.hasAll {
		d.readLedger(ctx)
	}
	now := d.Now()
	changed, err := d.Hosts.ListChanged(ctx, k.seen)
	d.warn(ctx, "hosts not read", err)
	owing, err := d.Due.ListDue(ctx, now)
	d.warn(ctx, "users who owe deliveries not read", err)
	d.mail.post(func() { d.loop.recallChanges(changed, owing, now) })
}

// writeBatch writes a batch. It returns the parts that could not be written, and the users whose
// marks another process has changed meanwhile.
func (d *Dispatcher) writeBatch(ctx context.Context, b batch) (failed batch, marked []instance.Due) {
	var err error
	if len(b.due) > 0 {
		if marked, err = d.Due.MarkDue(ctx, b.due); err != nil {
			d.warn(ctx, "the users who owe deliveries are not remembered", err)
			failed.due = b.due
		}
	}
	if len(b.hosts) > 0 {
		if err := d.Hosts.Save(ctx, b.hosts, b.seen); err != nil {
			d.warn(ctx, "hosts not remembered", err)
			failed.hosts = b.hosts
		}
	}
	if len(b.parked) > 0 {
		if err := d.Due.MarkParked(ctx, b.parked, false); err != nil {
			d.warn(ctx, "parked deliveries not remembered", err)
			failed.parked = b.parked
		}
	}
	if len(b.resumed) > 0 {
		if err := d.Due.MarkParked(ctx, b.resumed, true); err != nil {
			d.warn(ctx, "parked deliveries not remembered", err)
			failed.resumed = b.resumed
		}
	}
	return failed, marked
}
