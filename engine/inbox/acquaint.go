package inbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// acquaintRecipients commits to the instance database that the recipients of an activity are
// acquaintances of its actors, which means that these actors may concern the recipients. It must
// run before anything by these actors enters a user's database. Recipients who will certainly
// store nothing are first removed from x; when none is left, x.unkept gives the reason. Nothing
// is committed for an Undo or Delete, because such an activity brings nothing to a user who has
// stored nothing by its actor.
func (i *Inbox) acquaintRecipients(ctx context.Context, x *receiving) error {
	if i.Handlers.Lookup(x.Activity).TakesBack {
		return nil
	}
	if err := i.acquaintVoter(ctx, x); err != nil || len(x.Recipients) == 0 {
		return err
	}
	if err := i.acquaintWith(ctx, x, x.Actor.ID, true); err != nil || len(x.Recipients) == 0 {
		return err
	}
	for _, o := range x.fetched {
		if o.AttributedTo == "" { // a Tombstone has no author
			continue
		}
		if err := i.acquaintWith(ctx, x, o.AttributedTo, false); err != nil {
			return err
		}
	}
	return nil
}

// acquaintWith commits that the recipients are acquaintances of the actor a. The parameter sends
// is true when a is the activity's sender. The party that caused the activity is charged for each
// recipient who was no acquaintance of a. Recipients who follow the sender cost nothing, and
// neither do followers of an actor of another server that passes the activity on.
func (i *Inbox) acquaintWith(ctx context.Context, x *receiving, a vocab.ID, sends bool) error {
	now := i.Now() // taken before the commit, so that i.known trusts the rows for no longer than it may
	if i.known.hasAll(a, x.Recipients, now) {
		return nil
	}
	if x.paidBy() != "" {
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

// acquaintVoter commits that the recipients of a vote that a group announces are acquaintances of
// the voter. It first removes recipients who do not follow the group, because they will certainly
// store nothing. The group is charged for each recipient who was no acquaintance. These recipients
// follow the group, but they still cost something, because otherwise the group could invent voters
// without end. When the group's budget is spent, these recipients are removed too, and the group
// is not told (see fetchAnnounced).
func (i *Inbox) acquaintVoter(ctx context.Context, x *receiving) error {
	voter := i.Handlers.Voter(x.Activity)
	if voter == "" || i.Local.IsLocal(voter) {
		return nil
	}
	followers, err := x.followersOf(ctx, i.Store, x.Actor.ID)
	if err != nil {
		return err
	}
	now := i.Now()
	if x.keepRecipients(followers, IgnoredUnrelated); i.known.hasAll(voter, x.Recipients, now) {
		return nil
	}
	met, err := acquaintedWith(ctx, i.Store, voter)
	if err != nil {
		return err
	}
	fresh := 0
	for _, u := range x.Recipients {
		if !met[u] {
			fresh++
		}
	}
	if fresh > 0 && spendBudget(i.bounds.newVoters, string(x.Actor.ID), fresh) != nil {
		if x.keepRecipients(met, IgnoredGroupBudget); len(x.Recipients) == 0 {
			return nil
		}
	}
	if err := i.Store.Instance.Acquaintances.Add(ctx, voter, x.Recipients, false); err != nil {
		return err
	}
	i.known.addAll(voter, x.Recipients, now)
	return nil
}

// keepRecipients removes the recipients who are not in users. If none is left, x.unkept gets the
// reason.
func (x *receiving) keepRecipients(users map[vocab.Username]bool, reason string) {
	x.Recipients = slices.DeleteFunc(slices.Clone(x.Recipients), func(u vocab.Username) bool { return !users[u] })
	if len(x.Recipients) == 0 {
		x.unkept = reason
	}
}

// chargeAcquaintances looks at the recipients who have had nothing to do with the actor. If sends
// is true, it removes those recipients who will certainly store nothing. For each of the others it
// charges the party that caused the activity, unless the recipient follows the sender or the actor
// of another server that passes the activity on.
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
	strangers, err := i.budgets.findStrangers(ctx, x, fresh)
	if err != nil || len(strangers) == 0 {
		return err
	}
	return spendBudget(i.bounds.newAcquaintances, x.paidBy(), len(strangers))
}

// refusedUnread returns the reason why a user who has had nothing to do with the sender will not
// store a post that is not public. It uses only facts that are certain without the user's
// database. It returns "" when that database must be read to decide, as checkPermitted does later.
func (i *Inbox) refusedUnread(x *receiving, u vocab.Username) string {
	doc := x.Activity.Object.Doc
	if x.Activity.Type != vocab.Create || x.passer != nil || doc == nil || doc["inReplyTo"] != nil || i.Handlers.IsApart(x.Activity) {
		return "" // only the user's database knows whether the user is in the conversation of a sealed post
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
