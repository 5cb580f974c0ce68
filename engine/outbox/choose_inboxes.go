package outbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// lockAudience locks the user's blocks, followers and groups until the transaction ends. The lock
// is exclusive for an activity that changes them, and shared for all others. So an actor that is
// blocked or removed before an activity commits does not get the activity. Also, two activities
// cannot change the relationship of the user and an actor at the same time. The lock is exclusive
// for the Delete of the user, too, so that no other activity is stored at the same time.
func (f *fanOut) lockAudience(ctx context.Context, tx *user.Tx, x *exchange) error {
	endsGroup := x.activity.Type == vocab.Delete && x.group != nil
	_, leaves := x.intent.(deleteActor)
	undone := x.activity.Type == vocab.Undo && f.handlers.OfType(x.activity.Object.Type()).ChangesWho
	if endsGroup || leaves || undone || f.handlers.Lookup(x.activity).ChangesWho {
		return tx.ChangeAudience(ctx)
	}
	return tx.HoldAudience(ctx)
}

// chooseInboxes chooses the inboxes that the activity goes to, in the transaction that stores it.
// Followers get it if their collection is addressed. Other actors get it if they are named or in
// an addressed group, or if the object was sent to them before. An Update of the profile also goes
// to actors with any other accepted relationship. The address Public adds only relays (ActivityPub
// §5.6). The sender is left out (§7.1). An inbox is skipped if the policy refuses its host or all
// its actors, and the job shows that. A local activity goes to no other server, even if it names
// actors there.
func (f *fanOut) chooseInboxes(ctx context.Context, tx *user.Tx, x *exchange) error {
	if _, leaves := x.intent.(deleteActor); leaves {
		return f.chooseEverybody(ctx, tx, x)
	}
	named, earlier, err := f.admitRecipients(ctx, tx, x)
	if err != nil {
		return err
	}
	to := x.audience()
	var followers []user.Destination
	if to.ReachesFollowers() {
		if followers, err = tx.Relationships.FollowerDestinations(ctx); err != nil {
			return err
		}
	}
	if x.embedded != nil {
		related, err := tx.Relationships.RelatedDestinations(ctx)
		if err != nil {
			return err
		}
		named = append(named, related...)
	}
	followers, named = x.replaceRenewed(followers), x.replaceRenewed(named)
	relays, told := f.chooseRelays(x)
	inboxes := delivery.MergeInboxes(delivery.Destinations(followers, named, f.addresses.InboxOwner), slices.Concat(earlier, relays))
	if to.IsLocal() {
		inboxes = slices.DeleteFunc(inboxes, func(i user.Inbox) bool { return i.Host != "" })
	}
	if to.IncludesFollowers() {
		delivery.AddFollowersDigests(inboxes, followers)
	}
	x.inboxes, x.told = f.skipRefused(x, inboxes), f.skipRefused(x, told)
	if x.activity.Type == vocab.Delete && x.before != nil {
		return f.withdrawDeliveries(ctx, tx, x)
	}
	return nil
}

// audience returns the audience of the activity.
func (x *exchange) audience() audience.Audience {
	return audience.Of(vocab.Addressing{To: x.to, Cc: x.cc}, x.actor.ID, x.actor.Followers)
}

// admitRecipients returns the named actors and group members that the activity may go to, and the
// inboxes that the object or activity went to before. An activity whose handler has Ends, such as
// an Undo, Delete, Reject or Block, goes to everybody who got the activity that it ends. No other
// activity goes to an actor that has left the addressed group, or that the user blocks. If a
// blocked actor is named, the action is refused, except that an Update only leaves that actor out.
func (f *fanOut) admitRecipients(ctx context.Context, tx *user.Tx, x *exchange) (to []user.Destination, earlier []user.Inbox, err error) {
	if f.handlers.Lookup(x.activity).Ends {
		return listDestinations(x.named, x.unnamed, nil), x.earlier, nil
	}
	blocked, err := tx.Blocks.FindAmong(ctx, x.listRecipients())
	if err != nil {
		return nil, nil, err
	}
	if x.activity.Type != vocab.Update && slices.ContainsFunc(x.listRecipients(), func(id vocab.ID) bool { return blocked[id] }) {
		return nil, nil, refuseBlocked()
	}
	x.members, err = tx.Groups.StillMembers(ctx, x.unnamed)
	return listDestinations(x.named, x.members, blocked), handler.WithoutActors(x.earlier, blocked), err
}

func refuseBlocked() error {
	return fault.New(fault.Conflict, "this would go to an actor that the user blocks: unblock it first").WithCode("blocked")
}

// listRecipients returns the actors that the activity would go to, except followers and group
// members.
func (x *exchange) listRecipients() (ids []vocab.ID) {
	for _, a := range x.named {
		ids = append(ids, a.ID)
	}
	if x.quoted != nil {
		ids = append(ids, x.quoted.ID)
	}
	for _, i := range x.earlier {
		ids = append(ids, i.Targets...)
	}
	return ids
}

func listDestinations(named []*vocab.Actor, members []user.Unnamed, but map[vocab.ID]bool) (all []user.Destination) {
	for _, a := range named {
		if a.Inbox != "" && !but[a.ID] {
			all = append(all, user.Destination{Actor: a.ID, Inbox: a.Inbox})
		}
	}
	for _, m := range members {
		all = append(all, user.Destination{Actor: m.Actor, Inbox: m.Inbox})
	}
	return all
}

// skipRefused removes the user's own inbox from the list, and marks the inboxes that the policy
// refuses as skipped.
func (f *fanOut) skipRefused(x *exchange, inboxes []user.Inbox) []user.Inbox {
	inboxes = slices.DeleteFunc(inboxes, func(i user.Inbox) bool { return i.Host == "" && i.URL.Same(f.addresses.Inbox(x.User)) })
	return delivery.SkipRefused(f.gate, inboxes)
}
