package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// acquaintRecipients commits, before anything of these actors enters a user's database, that they
// may concern the user. Recipients who will certainly keep nothing are left out of x before; when
// nobody remains, x says why. An Undo or Delete brings nothing to a user who has nothing of its
// actor's.
func (i *Inbox) acquaintRecipients(ctx context.Context, x *receiving) error {
	if i.Handlers.Lookup(x.Activity).TakesBack {
		return nil
	}
	if err := i.acquaintWith(ctx, x, x.Actor.ID, true); err != nil || len(x.Recipients) == 0 {
		return err
	}
	for _, o := range x.fetched {
		if o.AttributedTo == "" { // a Tombstone
			continue
		}
		if err := i.acquaintWith(ctx, x, o.AttributedTo, false); err != nil {
			return err
		}
	}
	return nil
}

// acquaintWith commits that an actor may concern the recipients. The domain that caused the
// request pays for the recipients that neither knew the actor nor follow the sender.
func (i *Inbox) acquaintWith(ctx context.Context, x *receiving, a vocab.ID, sends bool) error {
	now := i.Now() // before the rows are committed: they are believed no longer than from here
	if i.known.hasAll(a, x.Recipients, now) {
		return nil
	}
	if x.signer != nil {
		err := i.chargeAcquaintances(ctx, x, a, sends)
		if err != nil || len(x.Recipients) == 0 {
			return err
		}
	}
	if err := i.Store.Instance.Acquaintances.Add(ctx, a, x.Recipients, false); err != nil {
		return err
	}
	i.known.addAll(a, x.Recipients, now)
	return nil
}

// chargeAcquaintances leaves out recipients who have had nothing to do with the sender and will
// certainly keep nothing, and charges for the others who have had nothing to do with the actor.
func (i *Inbox) chargeAcquaintances(ctx context.Context, x *receiving, a vocab.ID, sends bool) error {
	met, err := acquaintedWith(ctx, i.Store, a)
	if err != nil {
		return err
	}
	recipients := x.Recipients[:0:0]
	var fresh []vocab.Username
	for _, u := range x.Recipients {
		if met[u] {
			recipients = append(recipients, u)
			continue
		}
		reason := ""
		if sends {
			reason = i.refusedUnread(x, u)
		}
		if reason != "" {
			x.unkept = reason
			continue
		}
		recipients, fresh = append(recipients, u), append(fresh, u)
	}
	if x.Recipients = recipients; len(recipients) > 0 {
		x.unkept = ""
	}
	if len(fresh) == 0 {
		return nil
	}
	strangers, err := i.budgets.countStrangers(ctx, x, fresh)
	if err != nil || strangers == 0 {
		return err
	}
	return spendBudget(i.bounds.newAcquaintances, x.paidBy(), strangers)
}

// refusedUnread tells why a user who has had nothing to do with the sender will not keep a
// private post, as far as that is certain without the user's database; empty when that one
// decides, as checkPermitted does.
func (i *Inbox) refusedUnread(x *receiving, u vocab.Username) string {
	doc := x.Activity.Object.Doc
	if x.Activity.Type != vocab.Create || x.passer != nil || doc == nil || doc["inReplyTo"] != nil || doc.Sealed() != "" {
		return "" // of a sealed one only the database knows whether its conversation is the user's, too
	}
	post := audienceOfPost(x.Activity, x.Actor, x.fetched)
	if post == nil || post.IsPublic() {
		return ""
	}
	circle := i.Local.Followers(u)
	if post.Names(circle) {
		return ""
	}
	r := audience.Recipient{Viewer: audience.Viewer{ID: i.Local.ID(u), Circles: []vocab.ID{circle}}}
	if !audience.IsLetterOfStranger(*post, r) {
		if post.With(x.Activity.Addressing).MaySee(r.Viewer) {
			return ""
		}
		return IgnoredFollowers
	}
	if i.Profiles.User(u).Messaging.TakesStrangers() == registry.DropStrangers {
		return IgnoredStranger
	}
	return ""
}
