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
	Answered bool // the host answered, and the answer was neither a 5xx other than 501 nor a request to wait
	entry    entry
}

// Attempt makes one attempt at a delivery of the user u. The caller must have leased the delivery
// under the name in d.Owner. Attempt works whether or not Run is running. It returns false if ctx
// ended during the attempt, because the outcome is then unknown.
func (d *Dispatcher) Attempt(ctx context.Context, u vocab.Username, delivery user.Delivery) (Attempted, bool) {
	res := d.sender.attempt(ctx, &row{Delivery: delivery, user: u, domain: policy.RegistrableDomain(delivery.Host)})
	if res.cut {
		return Attempted{}, false
	}
	return Attempted{Outcome: res.outcome, Answered: res.reaction == answered, entry: entry{delivery, res.outcome, res.gone}}, true
}

// Record stores the outcomes of attempts at u's deliveries. It ignores a delivery that d.Owner no
// longer leases.
func (d *Dispatcher) Record(ctx context.Context, u vocab.Username, all []Attempted, now time.Time) error {
	entries := make([]entry, len(all))
	for n, a := range all {
		entries[n] = a.entry
	}
	_, err := postgres{d.Store, d.Users, d.Owner, d.Log}.settleEntries(ctx, u, entries, now)
	return err
}
