package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// keepActors stores, before anything of an activity is durable, the actors that nobody could
// apply it without later. Those that nobody here knew yet are paid for by the domain that sent
// it.
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

// spendBudget takes n of a budget for a payer with anything left of it, and refuses others. This
// server's own users pay nothing.
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
