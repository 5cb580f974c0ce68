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
	entry    entry
}

// Attempt makes one attempt at a delivery of u's that the caller has leased as the dispatcher's
// owner, beside Run or without it. It returns false when ctx ended meanwhile: the outcome is
// unknown then.
func (d *Dispatcher) Attempt(ctx context.Context, u vocab.Username, delivery db.Delivery) (Attempted, bool) {
	res := d.sender.attempt(ctx, &row{Delivery: delivery, user: u, domain: policy.RegistrableDomain(delivery.Host)})
	if res.cut {
		return Attempted{}, false
	}
	return Attempted{Outcome: res.outcome, Answered: res.reaction == answered, entry: entry{delivery, res.outcome, res.gone}}, true
}

// Record stores how attempts at u's deliveries ended, unless their leases have ended before.
func (d *Dispatcher) Record(ctx context.Context, u vocab.Username, all []Attempted, now time.Time) error {
	entries := make([]entry, len(all))
	for n, a := range all {
		entries[n] = a.entry
	}
	return d.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		_, err := postgres{d.Store, d.Users, d.Owner}.writeEntries(ctx, tx, entries, now)
		return err
	})
}
