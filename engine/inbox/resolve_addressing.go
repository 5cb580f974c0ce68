package inbox

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// spread are the activities that concern whoever holds something of their actor, addressed or not.
var spread = map[string]bool{"Update": true, "Delete": true, "Undo": true, "Move": true, "Block": true,
	"Add": true, "Remove": true}

// concerning are the activities that concern the local owner of what they are about, addressed or not. A post concerns whom it
// answers only when it is for everybody: a private one is for those whom it names.
var concerning = map[string]bool{"Follow": true, "Accept": true, "Reject": true, "Undo": true, "Block": true, "Like": true, "Dislike": true,
	"Announce": true, "Create": true}

// resolveAddressing finds the local users whom the activity may concern, and when there are any, fetches what its
// handler needs. It may find too many, never too few: each user's own transaction decides by its own relationships.
// Groups are never expanded on the way in. A report is for the operator alone, and ends here,
// and so does what relays and the instance actor have between them.
func (i *Inbox) resolveAddressing(ctx context.Context, x *receiving, next pipeline.Next) error {
	if x.Activity.Type == "Flag" {
		return i.report(ctx, x)
	}
	if i.Relays.Answers(x.Activity) {
		return i.relayAnswer(ctx, x)
	}
	if x.Activity.Type == "Follow" && x.Activity.Object.ID.Same(i.Local.InstanceID()) && x.passer == nil {
		_, err := i.Relays.FollowedBack(ctx, x.Actor, x.Activity.ID)
		return err
	}
	users := map[vocab.Username]bool{}
	concerned := named(x)
	if !x.relay { // whom it only concerns gets it from its author
		concerned = append(concerned, about(x.Activity)...)
		if !x.User.IsZero() && !i.betrayed(x) {
			users[x.User] = true
		}
	}
	for _, id := range concerned {
		if u, _, ok := i.Local.Holder(id); ok {
			users[u] = true
		}
	}
	if err := i.acquainted(ctx, x, users); err != nil {
		return err
	}
	var err error
	if x.Recipients, err = i.Store.ActiveUsers(ctx, slices.Collect(maps.Keys(users))); err != nil {
		return fmt.Errorf("find recipients: %w", err)
	}
	if len(x.Recipients) == 0 {
		x.unkept = IgnoredNobody
		return nil
	}
	if err := i.mayStore(ctx, x); err != nil {
		return err
	}
	if err := i.fetchNeeds(ctx, x); err != nil {
		return err
	}
	return next(ctx)
}

// betrayed tells of a private post that somebody passes on to a user whom it does not name, nor the followers of who does it.
func (i *Inbox) betrayed(x *receiving) bool {
	a := x.Activity
	return x.passer != nil && a.Type == "Create" && handler.Direct(a, x.Actor.Followers) && !a.Names(x.passer.Followers) && !a.Names(i.Local.ID(x.User))
}

// named returns whom the activity names. What was posted to one user's inbox reaches no others by hidden names.
func named(x *receiving) []vocab.ID {
	a := x.Activity
	ids := slices.Concat(a.To, a.Cc, a.Audience)
	if x.User.IsZero() {
		ids = slices.Concat(ids, a.Bto, a.Bcc)
	}
	return ids
}

// about returns what the activity is about, down to the object of an embedded activity and the parent of a reply: its
// local owner is concerned.
func about(a *vocab.Activity) []vocab.ID {
	if !concerning[a.Type] || a.Type == "Create" && !a.Public() {
		return nil
	}
	ids := []vocab.ID{a.Object.ID}
	for _, name := range []string{"object", "inReplyTo", "actor"} {
		if r, err := a.Object.Doc.Ref(name); err == nil {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// unaddressed tells of a boost that names nobody, as some servers send them to those who follow.
func unaddressed(a *vocab.Activity) bool { return a.Type == "Announce" && len(a.All()) == 0 }

// acquainted adds the users who know the sender: followers when it speaks to its followers or everybody, all when it
// changes or takes back what they may hold. What is passed on to the followers of who does it is for those, too.
func (i *Inbox) acquainted(ctx context.Context, x *receiving, users map[vocab.Username]bool) error {
	a := x.Activity
	if x.passer != nil && x.User.IsZero() && a.Names(x.passer.Followers) {
		if err := i.add(ctx, users, x.passer.ID, true); err != nil {
			return err
		}
	}
	toFollowers := a.Public() || a.Names(x.Actor.Followers) || unaddressed(a)
	letter := a.Type == "Update" && !x.User.IsZero() && !toFollowers && len(a.All()) > 0 // whom else it is for gets it, too
	all := spread[a.Type] && !letter
	if !all && (!x.User.IsZero() || !toFollowers) {
		return nil
	}
	return i.add(ctx, users, x.Actor.ID, !all || a.Type == "Move") // a follow is all that moves
}

// add adds the users who know an actor, or only those who follow it.
func (i *Inbox) add(ctx context.Context, users map[vocab.Username]bool, actor vocab.ID, follow bool) error {
	known, err := i.Store.Acquainted(ctx, actor, follow)
	if err != nil {
		return fmt.Errorf("find recipients: %w", err)
	}
	for _, u := range known {
		users[u] = true
	}
	return nil
}
