package outbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// lockAudience lets nobody be blocked, taken out of followers or groups, or added, while an
// activity is stored that relies on it, and the other way round: an actor who is blocked or out
// when an activity commits gets nothing of it. Nothing at all is stored while everybody is told
// that the user is gone.
func (o *Outbox) lockAudience(ctx context.Context, tx *db.Tx, x *exchange) error {
	endsGroup := x.activity.Type == vocab.Delete && x.group != nil
	_, leaves := x.intent.(deleteActor)
	if endsGroup || leaves || o.Handlers.Lookup(x.activity).ChangesWho {
		return tx.ChangeAudience(ctx)
	}
	return tx.HoldAudience(ctx)
}

// chooseInboxes chooses where the activity goes, in the transaction that stores it. Followers are
// reached where their collection is addressed, others where they are named or in a group; nobody
// is delivered to for Public (ActivityPub §5.6) but relays, the one who acts is left out (§7.1),
// and an actor that the policy refuses is skipped, which the job shows. Nothing local
// reaches another server, whoever is named in it.
func (o *Outbox) chooseInboxes(ctx context.Context, tx *db.Tx, x *exchange) error {
	if _, leaves := x.intent.(deleteActor); leaves {
		return o.chooseEverybody(ctx, tx, x)
	}
	named, earlier, err := o.admitRecipients(ctx, tx, x)
	if err != nil {
		return err
	}
	to := x.audience()
	var followers []db.Destination
	if to.ReachesFollowers() {
		if followers, err = tx.FollowerDestinations(ctx); err != nil {
			return err
		}
	}
	if x.embedded != nil {
		related, err := tx.RelatedDestinations(ctx)
		if err != nil {
			return err
		}
		named = append(named, related...)
	}
	followers, named = x.replaceRenewed(followers), x.replaceRenewed(named)
	relays, told := o.chooseRelays(x)
	inboxes := delivery.MergeInboxes(delivery.Destinations(followers, named, o.Local.InboxOwner), slices.Concat(earlier, relays))
	if to.IsLocal() {
		inboxes = slices.DeleteFunc(inboxes, func(i db.Inbox) bool { return i.Host != "" })
	}
	if to.IncludesFollowers() {
		delivery.AddFollowersDigests(inboxes, followers)
	}
	x.inboxes, x.told = o.skipRefused(x, inboxes), o.skipRefused(x, told)
	if x.activity.Type == vocab.Delete && x.before != nil {
		return o.withdrawDeliveries(ctx, tx, x)
	}
	return nil
}

// audience returns who the activity is for.
func (x *exchange) audience() audience.Audience {
	return audience.Of(vocab.Addressing{To: x.to, Cc: x.cc}, x.actor.ID, x.actor.Followers)
}

// admitRecipients returns those named or in a group that the activity may go to, and where it went
// before. An Undo or Delete goes to everybody who had the activity that it takes back. Nothing
// else goes to an actor that is in the group no more, or that the user blocks: an action that
// names one is refused, while new words of an old object leave one out.
func (o *Outbox) admitRecipients(ctx context.Context, tx *db.Tx, x *exchange) (to []db.Destination, earlier []db.Inbox, err error) {
	if o.Handlers.Lookup(x.activity).Ends {
		return listDestinations(x.named, x.unnamed, nil), x.earlier, nil
	}
	blocked, err := tx.Blocked(ctx, x.listRecipients())
	if err != nil {
		return nil, nil, err
	}
	if x.activity.Type != vocab.Update && slices.ContainsFunc(x.listRecipients(), func(id vocab.ID) bool { return blocked[id] }) {
		return nil, nil, refuseBlocked()
	}
	x.members, err = tx.StillMembers(ctx, x.unnamed)
	return listDestinations(x.named, x.members, blocked), handler.WithoutActors(x.earlier, blocked), err
}

func refuseBlocked() error {
	return fault.New(fault.Conflict, "this would go to an actor that the user blocks: unblock it first").WithCode("blocked")
}

// listRecipients returns everybody but followers that the activity would go to.
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

func listDestinations(named []*vocab.Actor, members []db.Unnamed, but map[vocab.ID]bool) (all []db.Destination) {
	for _, a := range named {
		if a.Inbox != "" && !but[a.ID] {
			all = append(all, db.Destination{Actor: a.ID, Inbox: a.Inbox})
		}
	}
	for _, m := range members {
		all = append(all, db.Destination{Actor: m.Actor, Inbox: m.Inbox})
	}
	return all
}

// skipRefused leaves out the user's own inbox, and says of those that the policy refuses that they
// are skipped.
func (o *Outbox) skipRefused(x *exchange, inboxes []db.Inbox) []db.Inbox {
	inboxes = slices.DeleteFunc(inboxes, func(i db.Inbox) bool { return i.Host == "" && i.URL.Same(o.Local.Inbox(x.User)) })
	return delivery.SkipRefused(o.Gate, inboxes)
}
