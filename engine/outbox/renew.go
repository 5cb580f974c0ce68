package outbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// renewTime bounds how long a dispatch waits for recipients that have changed.
const renewTime = 5 * time.Second

// renewRecipients asks where recipients take deliveries now who have said that they changed, and
// were not asked since. When that cannot be told in time, they are reached as they are known.
func (o *Outbox) renewRecipients(ctx context.Context, x *exchange) error {
	if !o.Stale.HasStale() {
		return nil
	}
	ids, err := o.listExpected(ctx, x)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	x.renewed = map[vocab.ID]*vocab.Actor{}
	for _, id := range ids {
		if !o.Stale.IsStale(id) {
			continue
		}
		a, err := o.Actors.Resolve(ctx, id)
		if err != nil {
			o.Log.DebugContext(ctx, "old copy of a recipient used", "actor", id, "err", err)
			continue
		}
		x.renewed[id] = a
	}
	return nil
}

// listExpected returns who will be reached, unless that changes before the activity is stored.
func (o *Outbox) listExpected(ctx context.Context, x *exchange) (ids []vocab.ID, err error) {
	for _, a := range x.named {
		ids = append(ids, a.ID)
	}
	for _, m := range x.unnamed {
		ids = append(ids, m.Actor)
	}
	if !x.audience().IncludesFollowers() {
		return ids, nil
	}
	err = o.Store.Read(ctx, x.User, func(ctx context.Context, tx *db.Tx) error {
		followers, err := tx.FollowerDestinations(ctx)
		for _, f := range followers {
			ids = append(ids, f.Actor)
		}
		return err
	})
	return ids, err
}

// replaceRenewed lets recipients that have changed be reached where they take deliveries now.
func (x *exchange) replaceRenewed(to []db.Destination) []db.Destination {
	for n, d := range to {
		a := x.renewed[d.Actor]
		if a == nil {
			continue
		}
		to[n].Inbox = a.Inbox
		if d.SharedInbox != "" {
			to[n].SharedInbox = a.SharedInbox
		}
	}
	return to
}
