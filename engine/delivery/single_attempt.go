package delivery

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Attempted is the result of an attempt at a delivery.
type Attempted struct {
	Outcome  user.Outcome
	Answered bool // the host answered, and neither with 5xx nor with the wish to wait
	entry    entry
}

// Attempt makes one attempt at a delivery of u's that the caller has leased in the name of the
// dispatcher's owner. It works whether or not Run is running. It returns false when ctx ended
// during the attempt: the outcome is then unknown.
func (d *Dispatcher) Attempt(ctx context.Context, u vocab.Username, delivery user.Delivery) (Attempted, bool) {
	res := d.sender.attempt(ctx, &row{Delivery: delivery, user: u, domain: policy.RegistrableDomain(delivery.Host)})
	if res.cut {
		return Attempted{}, false
	}
	return Attempted{Outcome: res.outcome, Answered: res.reaction == answered, entry: entry{delivery, res.outcome, res.gone}}, true
}

// Record stores the outcomes of attempts at u's deliveries, except those whose leases have
// expired before.
func (d *Dispatcher) Record(ctx context.Context, u vocab.Username, all []Attempted, now time.Time) error {
	entries := make([]entry, len(all))
	for n, a := range all {
		entries[n] = a.entry
	}
	return d.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		_, err := postgres{d.Store, d.Users, d.Owner}.writeEntries(ctx, tx, entries, now)
		return err
	})
}
