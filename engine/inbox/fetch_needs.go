package inbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fetchNeeds fetches what the activity's handler needs from its own origin: Apply never touches the network. It is the
// end of resolveAddressing, so that nobody can make us ask other servers about what concerns no one here.
func (i *Inbox) fetchNeeds(ctx context.Context, x *receiving) error {
	x.fetched = map[vocab.ID]*vocab.Object{}
	for _, id := range i.Handlers.Needs(x.Activity) {
		if err := i.fetchNeed(ctx, x, id); err != nil {
			return fmt.Errorf("fetch %s: %w", id, err)
		}
	}
	return i.fetchMove(ctx, x)
}

// fetchNeed fetches one thing. What is not there, or not for us, stays unfetched: the handler then ignores the activity.
// Only a server that cannot be asked now is reason to have the peer come again.
func (i *Inbox) fetchNeed(ctx context.Context, x *receiving, id vocab.ID) error {
	if id.Same(x.Actor.ID) {
		fresh, err := i.Actors.Refresh(ctx, id)
		if err != nil {
			return unresolved(err)
		}
		x.Actor = fresh
		return nil
	}
	if i.Local.IsLocal(id) {
		return i.localObject(ctx, x, id)
	}
	o, _, err := i.Actors.Object(ctx, id, nil)
	switch {
	case err == nil && o.OwnAuthors():
		x.fetched[id] = o
	case err == nil:
	case slices.Contains([]fault.Kind{fault.Unavailable, fault.Busy, fault.RateLimited}, fault.KindOf(err)):
		return fault.Wrap(fault.Unavailable, "the object's server does not answer", err)
	case slices.Contains([]fault.Kind{fault.Internal, fault.Config}, fault.KindOf(err)): // ours, not the peer's
		return err
	default:
		i.Log.InfoContext(ctx, "object not fetched", "activity", x.Activity.ID, "host", id.Host(), "err", err)
	}
	return nil
}

// localObject takes a public object of a local user from its database.
func (i *Inbox) localObject(ctx context.Context, x *receiving, id vocab.ID) error {
	u, _, ok := i.Local.Holder(id)
	if !ok {
		return nil
	}
	if active, err := i.Store.ActiveUsers(ctx, []vocab.Username{u}); err != nil || len(active) == 0 {
		return err
	}
	return i.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		stored, err := tx.Object(ctx, id)
		if err != nil || stored == nil || stored.DeletedAt != nil {
			return err
		}
		o, err := stored.Parse()
		if err != nil {
			return err
		}
		if o.Public() && o.AttributedTo.Same(i.Local.ID(u)) {
			x.fetched[id] = o
		}
		return nil
	})
}
