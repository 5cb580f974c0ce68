package inbox

import (
	"context"
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of the search for something that belongs to the user among the links of an activity.
const (
	maxLinks = 4  // links to follow from the activity to something that belongs to the user
	maxAsked = 16 // linked objects and activities to look at
)

// forwarder forwards activities to the followers of users (ActivityPub §7.1.2).
type forwarder struct {
	addresses actor.Addresses
	handlers  *handler.Registry
	bounds    *bounds
	log       *slog.Logger
}

// mayForward reports whether the budgets of the sender and its domain allow one more forwarded
// activity.
func (f *forwarder) mayForward(x *applying) bool {
	host, sender := policy.RegistrableDomain(x.Actor.ID.Host()), string(x.Actor.ID.Canonical())
	return limitBy(f.bounds.passedOfSender, sender) == nil && limitBy(f.bounds.passedOfDomain, host) == nil
}

// maxForwardCost limits the deliveries that count against the user's budget when one activity is
// forwarded, even if more are needed. So a user with very many followers can forward some
// activities, too.
const maxForwardCost = 5000

// mayForwardTo reports whether the user's budget has room to deliver one activity to this many
// inboxes.
func (f *forwarder) mayForwardTo(x *applying, inboxes int) bool {
	ok, _ := f.bounds.forwarded.AllowMany(x.User.String(), policy.RegistrableDomain(x.Actor.ID.Host()), min(inboxes, maxForwardCost), 0)
	return ok
}

// listReached returns the inboxes to which the user has forwarded the thing that a Delete or Undo
// takes back. The result is empty for any other activity. It is also empty if the thing was never
// forwarded or was taken back before, or if its delivery job is forgotten.
func (f *forwarder) listReached(ctx context.Context, x *applying) ([]user.Inbox, error) {
	id := x.Activity.Object.ID
	if id == "" || !f.handlers.Lookup(x.Activity).TakesBack {
		return nil, nil
	}
	reached, err := x.tx.Deliveries.ListForwardedTo(ctx, id)
	for n, i := range reached {
		reached[n].Targets = slices.DeleteFunc(i.Targets, func(id vocab.ID) bool { return f.isReachedBySender(x, id) })
	}
	return delivery.MergeInboxes(reached, nil), err // without those that have no target any more
}

// isOwedToFollowers reports whether the user must forward the activity to the user's followers
// (ActivityPub §7.1.2). The activity must name the collection of these followers and be linked to
// something that belongs to the user. If the sender does not follow the user, the link must lead
// to a public object. If the sender follows the user, the link may lead to the user, or to any
// object that the sender may see. So strangers cannot reach a user's followers by a mention
// alone. An activity that names hidden recipients cannot be forwarded as it came, and a vote is
// private; neither is forwarded.
func (f *forwarder) isOwedToFollowers(ctx context.Context, x *applying) (bool, error) {
	a := x.Activity
	followers := f.addresses.Followers(x.User)
	if !audience.NamesOpenly(a.Addressing, followers) || a.Doc.Hides() || isVote(x) {
		return false, nil
	}
	follower, err := x.tx.Relationships.IsAccepted(ctx, user.Follower, x.Actor.ID)
	if err != nil {
		return false, err
	}
	s := search{x: x, local: f.addresses, follower: follower, left: maxAsked}
	return s.findLink(ctx, a.Doc, maxLinks)
}

// search looks for something that belongs to the user among the links of an activity.
type search struct {
	x        *applying
	local    actor.Addresses
	follower bool // the sender follows the user
	left     int  // how many more links it may look at
}

// findLink reports whether a link of the document d leads to something that belongs to the user.
// It also follows the links of a linked document that d embeds, that was fetched, or that the
// user has stored. It follows at most the given number of links in a row.
func (s *search) findLink(ctx context.Context, d vocab.Doc, links int) (bool, error) {
	for _, name := range []string{"object", "inReplyTo", "target", "tag"} {
		refs, err := d.Refs(name)
		if err != nil {
			continue // an unreadable property names nothing
		}
		for _, r := range refs {
			if s.left--; s.left < 0 {
				return false, nil
			}
			if found, err := s.isLink(ctx, r, links-1); err != nil || found {
				return found, err
			}
		}
	}
	return false, nil
}

// isLink reports whether one link leads to something that belongs to the user.
func (s *search) isLink(ctx context.Context, r vocab.Ref, links int) (bool, error) {
	if s.follower && r.ID.Same(s.x.Me) {
		return true, nil
	}
	held, err := s.findHeld(ctx, r.ID)
	if err != nil {
		return false, err
	}
	if held != nil && s.x.Mine(r.ID) {
		o, err := vocab.ObjectOf(held)
		if err != nil {
			return false, err
		}
		if !s.follower {
			return audience.IsPublic(o.Addressing), nil
		}
		return handler.Sees(ctx, s.x.tx, s.local, &s.x.Received, o)
	}
	for _, d := range []vocab.Doc{r.Doc, held} {
		if d == nil || links == 0 {
			continue
		}
		if found, err := s.findLink(ctx, d, links); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// findHeld returns the object or activity that id names, as it was fetched or as the user's
// database has it. It returns nil when there is none.
func (s *search) findHeld(ctx context.Context, id vocab.ID) (vocab.Doc, error) {
	if id == "" {
		return nil, nil
	}
	if o := s.x.Fetched[id]; o != nil {
		return o.Doc, nil
	}
	var raw []byte
	o, err := s.x.tx.Objects.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if o != nil && o.DeletedAt == nil {
		raw = o.Raw
	} else {
		a, err := s.x.tx.Activities.Find(ctx, id)
		if err != nil || a == nil {
			return nil, err
		}
		raw = a.Raw
	}
	return vocab.ParseDoc(raw)
}

// forwardActivity queues the activity, in the bytes in which it came. The deliveries are signed by
// the user; the proof of the activity's author stays in the bytes. A Delete or Undo of a forwarded
// thing goes to the inboxes that the thing reached (see listReached). Such a Delete or Undo uses
// up no budget, because there is only one for each thing. Other activities go to the followers
// that the sender could not reach, if the budgets have room.
func (f *forwarder) forwardActivity(ctx context.Context, x *applying, reached []user.Inbox) error {
	a := x.Activity
	if len(reached) == 0 && !f.mayForward(x) {
		f.logNotForwarded(ctx, x)
		return nil
	}
	all, err := x.tx.Relationships.FollowerDestinations(ctx)
	if err != nil {
		return err
	}
	inboxes := reached
	if len(reached) == 0 {
		followers := slices.DeleteFunc(slices.Clone(all), func(d user.Destination) bool { return f.isReachedBySender(x, d.Actor) })
		inboxes = delivery.Destinations(followers, nil, f.addresses.InboxOwner)
		if !f.mayForwardTo(x, len(inboxes)) {
			f.logNotForwarded(ctx, x)
			return nil
		}
	}
	delivery.AddFollowersDigests(inboxes, all)
	return x.tx.Deliveries.Enqueue(ctx, user.Job{ID: uuid.Must(uuid.NewV7()), Activity: a.ID, Version: f.handlers.VersionID(a), Actor: a.Actor, Object: f.orderForwarded(x), Type: a.Type, Body: a.Raw, Forwarded: true}, inboxes, x.Applied)
}

// orderForwarded returns the id by which the deliveries of a forwarded activity are ordered (see
// Registry.OrderOf). It is the activity's own id if the object is the user's, or not of the
// sender's server, because the sender may choose such an object to hold up others' deliveries.
func (f *forwarder) orderForwarded(x *applying) vocab.ID {
	id := f.handlers.OrderOf(x.Activity)
	if x.Mine(id) || !id.SameOrigin(x.Actor.ID) {
		return x.Activity.ID
	}
	return id
}

// isReachedBySender reports whether the sender's server delivers the activity to an actor itself.
func (f *forwarder) isReachedBySender(x *applying, to vocab.ID) bool {
	a := x.Activity
	return audience.Names(a.Addressing, to) || to.SameOrigin(a.Actor) && !f.addresses.IsLocal(a.Actor)
}

func (f *forwarder) logNotForwarded(ctx context.Context, x *applying) {
	f.log.InfoContext(ctx, "activity not passed on", "user", x.User, "activity", x.Activity.ID, "actor", x.Actor.ID, "err", "its sender had too much passed on lately")
}
