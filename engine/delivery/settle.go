package delivery

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// settleEntries writes outcomes. It returns the creation time of each job whose first success is
// among them. If the transaction fails because of an outcome, its halves are written in
// transactions of their own, until an outcome that cannot be stored is alone. That one is stored
// without its details, so that it does not stop the user's other deliveries for good.
func (p postgres) settleEntries(ctx context.Context, u vocab.Username, all []entry, now time.Time) ([]time.Time, error) {
	waited, err := p.commitEntries(ctx, u, all, now)
	switch {
	case !isLasting(err):
		return waited, err
	case len(all) == 1:
		p.log.ErrorContext(ctx, "the outcome of a delivery could not be stored", "user", u, "inbox", all[0].delivery.Inbox, "err", err)
		return p.commitEntries(ctx, u, []entry{all[0].withoutDetails()}, now)
	}
	waited = nil
	for _, half := range [][]entry{all[:len(all)/2], all[len(all)/2:]} {
		w, err := p.settleEntries(ctx, u, half, now)
		if err != nil {
			return nil, err
		}
		waited = append(waited, w...)
	}
	return waited, nil
}

// commitEntries writes outcomes in one transaction.
func (p postgres) commitEntries(ctx context.Context, u vocab.Username, all []entry, now time.Time) (waited []time.Time, err error) {
	err = p.store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		waited, err = p.writeEntries(ctx, tx, all, now)
		return err
	})
	return waited, err
}

// withoutDetails returns e with only the fields that decide when its delivery is tried again.
func (e entry) withoutDetails() entry {
	o := e.outcome
	return entry{delivery: e.delivery, outcome: user.Outcome{Delivery: o.Delivery, Status: o.Status, NextAt: o.NextAt, Spent: o.Spent, HTTPStatus: o.HTTPStatus,
		Error: "the outcome could not be stored"}}
}

// isLasting reports whether a transaction would fail again for the same reason.
func isLasting(err error) bool { return err != nil && fault.KindOf(err) == fault.Internal }
