package outbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// renewTime is the longest time that a dispatch waits for the fetches of changed recipients.
const renewTime = 5 * time.Second

// renewRecipients fetches the recipients (see listExpected) that have announced a change and were
// not fetched since, to learn their current inboxes. If a fetch fails or takes too long, the
// stored copy is used.
func (f *finder) renewRecipients(ctx context.Context, x *exchange) error {
	if !f.stale.HasStale() {
		return nil
	}
	ids, err := f.listExpected(ctx, x)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	x.renewed = map[vocab.ID]*vocab.Actor{}
	for _, id := range ids {
		if !f.stale.IsStale(id) {
			continue
		}
		a, err := f.actors.Resolve(ctx, id)
		if err != nil {
			f.log.DebugContext(ctx, "old copy of a recipient used", "actor", id, "err", err)
			continue
		}
		x.renewed[id] = a
	}
	return nil
}

// listExpected returns the named actors, the members of addressed groups and, if they are
// addressed, the followers. These recipients may still change before the activity is stored.
func (f *finder) listExpected(ctx context.Context, x *exchange) (ids []vocab.ID, err error) {
	for _, a := range x.named {
		ids = append(ids, a.ID)
	}
	for _, m := range x.unnamed {
		ids = append(ids, m.Actor)
	}
	if !x.audience().IncludesFollowers() {
		return ids, nil
	}
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) error {
		followers, err := tx.Relationships.FollowerDestinations(ctx)
		for _, d := range followers {
			ids = append(ids, d.Actor)
		}
		return err
	})
	return ids, err
}

// replaceRenewed puts the current inboxes into those recipients that renewRecipients has fetched.
func (x *exchange) replaceRenewed(to []user.Destination) []user.Destination {
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
