package inbox

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of the search for what an activity is about.
const (
	maxLinks = 4  // from the activity to something of the user's
	maxAsked = 16 // things looked at
)

// mayForward reports whether the sender has not had too much passed on lately. A Delete or Undo
// is always passed on: there are no more of them than of what they take back.
func (p *applier) mayForward(x *applying) bool {
	if p.isRetraction(x) {
		return true
	}
	host, sender := policy.RegistrableDomain(x.Actor.ID.Host()), string(x.Actor.ID.Canonical())
	return limitBy(p.bounds.passedOfSender, sender) == nil && limitBy(p.bounds.passedOfDomain, host) == nil
}

// maxForwardCost is what forwarding one activity counts at most, so that a user with very many
// followers has some forwarded, too.
const maxForwardCost = 5000

// mayForwardTo reports whether the user's budget has room for so many deliveries of one activity.
func (p *applier) mayForwardTo(x *applying, inboxes int) bool {
	if p.isRetraction(x) {
		return true
	}
	ok, _ := p.bounds.forwarded.AllowMany(x.User.String(), policy.RegistrableDomain(x.Actor.ID.Host()), min(inboxes, maxForwardCost), 0)
	return ok
}

// isRetraction reports whether the activity only takes back what was said.
func (p *applier) isRetraction(x *applying) bool { return p.Handlers.Lookup(x.Activity).TakesBack }

// isOwedToFollowers reports whether the user owes the activity to its followers: it names their
// collection and is linked to something of the user's (ActivityPub §7.1.2): something that
// everybody may see, or, of a follower's, the user or anything that the follower may see.
// Strangers who merely mention the user reach no followers by that. An activity that names hidden
// recipients cannot be passed on as it came, and a vote is nobody else's business.
func (p *applier) isOwedToFollowers(ctx context.Context, x *applying) (bool, error) {
	a := x.Activity
	followers := p.Local.Followers(x.User)
	if !audience.NamesOpenly(a.Addressing, followers) || a.Doc.Hides() || isVote(x) {
		return false, nil
	}
	follower, err := handler.IsFollower(ctx, x.tx, x.Actor.ID)
	if err != nil {
		return false, err
	}
	s := search{x: x, local: p.Local, follower: follower, left: maxAsked}
	return s.findLink(ctx, a.Doc, maxLinks)
}

// search looks for something of the user's among what is linked.
type search struct {
	x        *applying
	local    *actor.Local
	follower bool // the sender follows the user
	left     int  // how many more things are looked at
}

// findLink follows the links of a document, which lead on through what they embed and what the
// user holds.
func (s *search) findLink(ctx context.Context, d vocab.Doc, links int) (bool, error) {
	for _, name := range []string{"object", "inReplyTo", "target", "tag"} {
		refs, err := d.Refs(name)
		if err != nil {
			continue // it names nothing
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

// isLink reports whether one link leads to something of the user's.
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

// findHeld returns the object or activity of that id as it was fetched or as the user holds it,
// nil when there is none.
func (s *search) findHeld(ctx context.Context, id vocab.ID) (vocab.Doc, error) {
	if id == "" {
		return nil, nil
	}
	if o := s.x.Fetched[id]; o != nil {
		return o.Doc, nil
	}
	var raw []byte
	o, err := s.x.tx.Object(ctx, id)
	if err != nil {
		return nil, err
	}
	if o != nil && o.DeletedAt == nil {
		raw = o.Raw
	} else {
		a, err := s.x.tx.Activity(ctx, id)
		if err != nil || a == nil {
			return nil, err
		}
		raw = a.Raw
	}
	return vocab.ParseDoc(raw)
}

// forwardToFollowers owes the activity, in the bytes it came in, to the followers that the sender
// could not reach. Its signature is the user's; what proves its author stays in the bytes.
func (p *applier) forwardToFollowers(ctx context.Context, x *applying) error {
	a := x.Activity
	all, err := x.tx.FollowerDestinations(ctx)
	if err != nil {
		return err
	}
	followers := slices.DeleteFunc(slices.Clone(all), func(d db.Destination) bool {
		return audience.Names(a.Addressing, d.Actor) || d.Actor.SameOrigin(a.Actor) && !p.Local.IsLocal(a.Actor)
	})
	inboxes := delivery.Destinations(followers, nil, p.Local.InboxOwner)
	if !p.mayForwardTo(x, len(inboxes)) {
		p.logNotForwarded(ctx, x)
		return nil
	}
	delivery.AddFollowersDigests(inboxes, all)
	return x.tx.Enqueue(ctx, db.Job{ID: uuid.Must(uuid.NewV7()), Activity: a.ID, Actor: a.Actor, Object: p.Handlers.OrderOf(a), Type: a.Type, Body: a.Raw, Forwarded: true}, inboxes, x.Applied)
}

func (p *applier) logNotForwarded(ctx context.Context, x *applying) {
	p.Log.InfoContext(ctx, "activity not passed on", "user", x.User, "activity", x.Activity.ID, "actor", x.Actor.ID, "err", "its sender had too much passed on lately")
}
