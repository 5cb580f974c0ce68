package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// respond hands the activity to the writers of its recipients and waits until every one has committed: what is
// acknowledged is durable. If one could not, the peer comes again, and the others drop the repeat.
func (i *Inbox) respond(ctx context.Context, x *receiving) error {
	if err := i.acquaint(ctx, x); err != nil {
		return err
	}
	raw := openly(x.Activity)
	errs := make([]error, len(x.Recipients))
	var wg sync.WaitGroup
	for n, u := range x.Recipients {
		wg.Go(func() {
			if err := i.writers.submit(ctx, u, i.apply(x, u, raw)); err != nil {
				errs[n] = fmt.Errorf("apply for %s: %w", u, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// openly writes the activity without hidden recipients, and as it came when it has none.
func openly(a *vocab.Activity) json.RawMessage {
	if !a.Doc.Hides() {
		return a.Raw
	}
	return a.Doc.WithoutHidden().JSON()
}

func (i *Inbox) apply(x *receiving, u vocab.Username, raw json.RawMessage) *applying {
	me := i.Local.ID(u)
	return &applying{raw: raw, Received: handler.Received{User: u, Me: me, Activity: x.Activity, Actor: x.Actor, Fetched: x.fetched,
		Named: x.User == u || x.Activity.Names(me), Now: i.Now()}}
}

// acquaint commits, before anything of these actors enters a user's database, that they may concern the user.
func (i *Inbox) acquaint(ctx context.Context, x *receiving) error {
	actors := []vocab.ID{x.Actor.ID}
	for _, o := range x.fetched {
		actors = append(actors, o.AttributedTo)
	}
	for _, a := range actors {
		if i.known.all(a, x.Recipients) {
			continue
		}
		if err := i.Store.Acquaint(ctx, a, x.Recipients, false); err != nil {
			return err
		}
		i.known.add(a, x.Recipients)
	}
	return nil
}
