package inbox

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// resolveAddressing finds the local users that the activity may concern. If there are any, it
// fetches the objects that the handler needs. It never finds too few users. It may find too many,
// which does no harm, because each user's own transaction decides again, by the user's
// relationships. Groups are never expanded for received activities. A report is for the operator
// alone and ends here, and so do the activities between relays and the instance actor.
func (i *Inbox) resolveAddressing(ctx context.Context, x *receiving, next pipeline.Next) error {
	ctx = paidBySigner(ctx, x)
	if x.Activity.Type == vocab.Flag {
		return i.takeReport(ctx, x)
	}
	if i.Relays.IsAnswer(x.Activity) {
		return i.takeRelayAnswer(ctx, x)
	}
	if x.Activity.Type == vocab.Follow && x.Activity.Object.ID.Same(i.Local.InstanceID()) && x.passer == nil {
		_, err := i.Relays.AcceptFollowBack(ctx, x.Actor, x.Activity.ID)
		return err
	}
	if x.gone {
		return i.budgets.limitDeletions(x, func() error { return i.resolveRecipients(ctx, x, next) })
	}
	return i.resolveRecipients(ctx, x, next)
}

// resolveRecipients sets the recipients of x, within the budgets of the party that pays.
func (i *Inbox) resolveRecipients(ctx context.Context, x *receiving, next pipeline.Next) error {
	users, err := i.findReached(ctx, x, x.arrival(i.Deps).Reach())
	if err != nil {
		return err
	}
	if x.Recipients, err = i.Store.Instance.Users.Active(ctx, slices.Collect(maps.Keys(users))); err != nil {
		return fmt.Errorf("find recipients: %w", err)
	}
	if len(x.Recipients) == 0 {
		x.unkept = IgnoredNobody
		return nil
	}
	if err := i.budgets.chargeFanOut(ctx, x); err != nil {
		return err
	}
	if err := i.budgets.limitStored(ctx, x); err != nil {
		return err
	}
	if err := i.fetcher.fetchNeeds(ctx, x); err != nil || x.unkept != "" {
		return err
	}
	return next(ctx)
}

// arrival returns the activity with the way in which it arrived.
func (x *receiving) arrival(d Deps) audience.Arrival {
	a := audience.Arrival{Activity: x.Activity, Concern: d.Handlers.Lookup(x.Activity).Concern, Sender: x.Actor, Forwarder: x.passer, Relayed: x.relay}
	if !x.User.IsZero() {
		a.Inbox = d.Local.ID(x.User)
	}
	return a
}

// findReached returns the local users in a reach: the owners that it names, the users who may
// follow its actors, and, if r.Acquainted is true, all users that its sender may concern.
func (i *Inbox) findReached(ctx context.Context, x *receiving, r audience.Reach) (map[vocab.Username]bool, error) {
	users := map[vocab.Username]bool{}
	for _, id := range r.Owners {
		if u, _, ok := i.Local.Holder(id); ok {
			users[u] = true
		}
	}
	for _, actor := range r.Followers {
		follow, err := x.followersOf(ctx, i.Store, actor)
		if err != nil {
			return nil, err
		}
		maps.Copy(users, follow)
	}
	if r.Acquainted {
		known, err := acquaintedWith(ctx, i.Store, r.Sender)
		if err != nil {
			return nil, err
		}
		maps.Copy(users, known)
	}
	return users, nil
}

// followersOf returns the users who may follow an actor. They are read only once for a request.
func (x *receiving) followersOf(ctx context.Context, store *db.Cluster, actor vocab.ID) (map[vocab.Username]bool, error) {
	if follow, read := x.followers[actor]; read {
		return follow, nil
	}
	users, err := store.Instance.Acquaintances.Users(ctx, actor, true)
	if err != nil {
		return nil, fmt.Errorf("find followers of %s: %w", actor, err)
	}
	if x.followers == nil {
		x.followers = map[vocab.ID]map[vocab.Username]bool{}
	}
	x.followers[actor] = setOf(users)
	return x.followers[actor], nil
}

// acquaintedWith returns the users that an actor may concern.
func acquaintedWith(ctx context.Context, store *db.Cluster, actor vocab.ID) (map[vocab.Username]bool, error) {
	users, err := store.Instance.Acquaintances.Users(ctx, actor, false)
	if err != nil {
		return nil, fmt.Errorf("find acquaintances of %s: %w", actor, err)
	}
	return setOf(users), nil
}

func setOf(users []vocab.Username) map[vocab.Username]bool {
	set := make(map[vocab.Username]bool, len(users))
	for _, u := range users {
		set[u] = true
	}
	return set
}
