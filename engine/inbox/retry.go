package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Retry gives an activity back that was set aside: it waits in the journal, from which the process that serves applies
// it, and its id may be taken again. What its handler needs is fetched anew. Whatever it dies of, the activity is still
// set aside, or waits.
//
// The row of the journal is committed while the user's transaction is open: whoever drains it waits there for the id,
// and finds it free. It is the one place where a transaction of a user waits for another database, in a process with
// connections of its own.
func (i *Inbox) Retry(ctx context.Context, u vocab.Username, p db.Poisoned) error {
	a, err := vocab.ParseActivity(p.Raw)
	if err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	x := &receiving{Inbound: pipeline.Inbound{User: u, Activity: a, Recipients: []vocab.Username{u}}}
	if x.Actor, err = i.Actors.Resolve(ctx, a.Actor); err != nil {
		return fmt.Errorf("resolve %s: %w", a.Actor, err)
	}
	if err := i.validateSchema(ctx, x); err != nil {
		return err
	}
	if err := i.fetchNeeds(ctx, x); err != nil {
		return err
	}
	if err := i.acquaint(ctx, x); err != nil {
		return err
	}
	x.meant = i.meant(x)
	in := i.intake(x, a.Raw)
	in.Recipients, in.Waiting = nil, in.Recipients
	return i.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.ReturnPoison(ctx, p.URI); err != nil {
			return err
		}
		return i.Store.Resubmit(ctx, in)
	})
}
