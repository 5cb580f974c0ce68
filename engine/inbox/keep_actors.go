package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// keepActors stores the actors without which the activity could not be applied later. It must
// run before the activity is made durable. The domain that sent the activity is charged for the
// actors that were not stored yet.
func (i *Inbox) keepActors(ctx context.Context, x *receiving) error {
	for _, a := range []*vocab.Actor{x.Actor, x.passer, x.target} {
		if a == nil {
			continue
		}
		err := i.Actors.Keep(ctx, a, func(bytes int) error { return spendBudget(i.bounds.newActors, x.paidBy(), perStored+bytes) })
		if err != nil {
			return err
		}
	}
	return nil
}

// spendBudget takes n from the payer's budget if anything is left of the budget. Otherwise it
// refuses. The empty payer, for this server's own users, pays nothing.
func spendBudget(l *policy.Limiter, payer string, n int) error {
	if payer == "" {
		return nil
	}
	if err := limitFault(l.Ready(payer)); err != nil {
		return err
	}
	l.Spend(payer, n)
	return nil
}
