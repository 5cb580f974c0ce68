package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// respond makes the activity durable for its recipients, and answers.
func (i *Inbox) respond(ctx context.Context, x *receiving) error {
	if err := i.commit(ctx, x); err != nil {
		return err
	}
	return x.refused
}

// commit makes the activity durable: what is acknowledged is never lost. For one recipient it waits for the commit in
// that user's database; for several, or for one who cannot take it now, for that of the intake journal.
func (i *Inbox) commit(ctx context.Context, x *receiving) error {
	if err := i.acquaint(ctx, x); err != nil || len(x.Recipients) == 0 {
		return err
	}
	if err := i.keepActors(ctx, x); err != nil {
		return err
	}
	x.meant = i.meant(x)
	raw := asStored(x.Activity)
	if len(x.Recipients) > 1 {
		return i.writers.keep(ctx, x, raw, nil)
	}
	u := x.Recipients[0]
	e, err := i.writers.submit(ctx, u, i.apply(x, u, raw))
	if errors.Is(err, errParked) {
		return i.writers.keep(ctx, x, raw, e)
	}
	if err != nil {
		return fmt.Errorf("apply for %s: %w", u, err)
	}
	return nil
}

// openly writes the activity without hidden recipients, and as it came when it has none.
func openly(a *vocab.Activity) json.RawMessage {
	if !a.Doc.Hides() {
		return a.Raw
	}
	return a.Doc.WithoutHidden().JSON()
}

// asStored writes the activity as users' databases hold it: openly, and with what it names in canonical form.
func asStored(a *vocab.Activity) json.RawMessage {
	if d, changed := a.Doc.WithCanonicalIDs(); changed {
		return d.WithoutHidden().JSON()
	}
	return openly(a)
}

// meant returns the users the activity is for in person.
func (i *Inbox) meant(x *receiving) map[vocab.Username]bool {
	users := map[vocab.Username]bool{}
	for _, id := range i.arrival(x).InPerson() {
		if u, ok := i.Local.Owner(id); ok {
			users[u] = true
		}
	}
	return users
}

func (i *Inbox) apply(x *receiving, u vocab.Username, raw json.RawMessage) *applying {
	r := handler.Received{User: u, Me: i.Local.ID(u), Activity: x.Activity, Actor: x.Actor,
		Target: x.target, Named: x.meant[u], Now: i.Now()}
	if x.passer != nil {
		r.Forwarders = []*vocab.Actor{x.passer}
	}
	return &applying{raw: raw, payer: x.pays(), fetched: x.fetched, reader: x.reader, Received: r}
}
