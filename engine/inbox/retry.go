package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Retry gives an activity back that was set aside: it waits in the journal, from which the
// process that serves applies it. The objects that its handler needs are fetched anew. Its id is
// free before the journal holds it, so that no drain finds it taken, and it is set aside until
// then: whatever Retry dies of, the activity is there to be given back, or waits.
func (i *Inbox) Retry(ctx context.Context, u vocab.Username, p db.Poisoned) error {
	a, err := vocab.ParseActivity(p.Raw)
	if err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	x := &receiving{Inbound: pipeline.Inbound{User: u, Activity: a, Recipients: []vocab.Username{u}}}
	if len(p.Forwarders) > 0 { // it comes again as it came
		x.passer = &vocab.Actor{ID: p.Forwarders[0]}
	}
	if x.Actor, err = i.Actors.Resolve(ctx, a.Actor); err != nil {
		return fmt.Errorf("resolve %s: %w", a.Actor, err)
	}
	if err := i.validateSchema(ctx, x); err != nil {
		return err
	}
	if err := i.fetcher.fetchNeeds(ctx, x); err != nil {
		return err
	}
	if err := i.acquaintRecipients(ctx, x); err != nil {
		return err
	}
	if i.Handlers.Lookup(a).Concern.Holders { // which may have come for who merely holds something of its actor
		x.User = vocab.Username{}
	}
	x.meant = x.meantFor(i.Deps)
	in := i.rowOf(x)
	in.Forwarders = p.Forwarders
	in.Recipients, in.Waiting = nil, in.Recipients
	applied := false // by an earlier retry that did not come to its end
	err = i.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		there, err := tx.ActivityBy(ctx, db.Owned{ID: a.ID, Actor: a.Actor})
		if err != nil {
			return err
		}
		if applied = there != nil; applied {
			return tx.DropPoison(ctx, p)
		}
		return tx.Unclaim(ctx, []db.Owned{{ID: a.ID, Actor: a.Actor}})
	})
	if err != nil || applied {
		return err
	}
	if err := i.Store.Instance.Journal.Resubmit(ctx, in); err != nil {
		return err
	}
	return i.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error { return tx.DropPoison(ctx, p) })
}
