package delivery

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Attempted is how an attempt at a delivery ended.
type Attempted struct {
	Outcome  db.Outcome
	Answered bool // the host did, with whatever status
	ended    ended
}

// Attempt makes one attempt at a delivery of u's that the caller has leased as the dispatcher's owner, beside Run or
// without it. It tells false when ctx ended meanwhile: nothing is known of the outcome then.
func (d *Dispatcher) Attempt(ctx context.Context, u vocab.Username, delivery db.Delivery) (Attempted, bool) {
	r := &row{Delivery: delivery, user: &user{name: u}, domain: policy.RegistrableDomain(delivery.Host)}
	res := d.try(ctx, r)
	if res.cut {
		return Attempted{}, false
	}
	d.report(ctx, r, res.outcome)
	return Attempted{Outcome: res.outcome, Answered: res.heard == answered, ended: ended{delivery: delivery, outcome: res.outcome, gone: res.gone}}, true
}

// Record stores how attempts at u's deliveries ended, as far as their leases have not.
func (d *Dispatcher) Record(ctx context.Context, u vocab.Username, all []Attempted, now time.Time) error {
	list := make([]ended, len(all))
	for n, a := range all {
		list[n] = a.ended
	}
	return d.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		_, err := stored{d.Store, d.Owner}.settle(ctx, tx, list, now)
		return err
	})
}
