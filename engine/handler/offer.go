package handler

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newOffer returns the handler of Offer: an actor proposes something. An Offer that is not a
// friend request is stored and shown, and has no other effect.
func newOffer() Handler {
	return Handler{
		Notifies:   NoticeOfNamed,
		Relates:    true,
		Ordered:    true,
		ChangesWho: true,
		Undone:     undoOffer,
		SentUndone: undoOwnOffer,
	}
}

// newFriendRequest returns the handler of the Offer of a Relationship: an actor asks the user
// to be friends (ActivityStreams vocabulary §5.1). If both actors send each other an Offer at
// the same time, the Offer with the lower id counts, and is accepted immediately. So both
// databases name the same Offer.
func newFriendRequest(local *actor.Local) Handler {
	h := newOffer()
	h.Concern = audience.Concern{Owner: true}
	h.Aliases = []Alias{{"friendrequest.received", isFriendRequest}}
	h.Check = checkFriendRequest
	h.Received = func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
		if !isFriendRequest(r) {
			return Effects{}, nil
		}
		return receiveFriendRequest(ctx, tx, local, r)
	}
	h.Sent = func(ctx context.Context, tx *user.Tx, s *Sent) error {
		if err := tx.Actors.Save(ctx, s.Target, s.Now); err != nil {
			return err
		}
		f, _, err := vocab.FriendshipOf(s.Activity.Object.Doc)
		if err != nil {
			return err
		}
		return tx.Relationships.Set(ctx, user.Relationship{Actor: s.Target.ID, Type: f.Type, Status: user.Pending, Activity: s.Activity.ID, Direction: user.Outbound}, s.Now)
	}
	return h
}

// isFriendRequest reports whether the Offer asks the user for a type of friendship that this
// engine supports.
func isFriendRequest(r *Received) bool {
	f, ok, err := vocab.FriendshipOf(r.Activity.Object.Doc)
	return err == nil && ok && f.Object.Same(r.Me)
}

// checkFriendRequest refuses an Offer of a friendship whose subject is not the sender, or whose
// object is not another actor.
func checkFriendRequest(a *vocab.Activity) error {
	f, ok, err := vocab.FriendshipOf(a.Object.Doc)
	switch {
	case err != nil:
		return err
	case !ok:
		return nil // another Relationship, which has no effect
	case !f.Subject.Same(a.Actor):
		return fault.New(fault.Invalid, "an actor can only ask in its own name").WithCode("foreign_object").At("/object/subject")
	case f.Object == "" || f.Object.Same(a.Actor):
		return fault.New(fault.Invalid, "the Relationship needs another actor as its object").At("/object/object")
	}
	return nil
}

// Limits on the Offers that wait for a user: offersOfHost for those from one domain, and
// maxOffers for all.
const (
	offersOfHost = 200
	maxOffers    = 2000
)

// receiveFriendRequest stores the Offer. If the user has offered the same friendship, the Offer is
// accepted immediately; otherwise it waits for the user. If the actor has sent an Offer before,
// the actor may have lost its record of the friendship. In that case the status stays, and an
// accepted friendship is accepted again. A new Offer beyond the limits (see isFullOfOffers), and
// one that the user's own Offer overtakes (see isOvertaken), are ignored.
func receiveFriendRequest(ctx context.Context, tx *user.Tx, local *actor.Local, r *Received) (Effects, error) {
	f, _, err := vocab.FriendshipOf(r.Activity.Object.Doc)
	if err != nil {
		return Effects{}, err
	}
	before, err := tx.Relationships.Find(ctx, f.Type, r.Actor.ID)
	if err != nil {
		return Effects{}, err
	}
	rel := user.Relationship{Actor: r.Actor.ID, Type: f.Type, Status: user.Pending, Activity: r.Activity.ID, Direction: user.Inbound, Host: policy.RegistrableDomain(r.Actor.ID.Host())}
	switch {
	case before == nil:
		if full, err := isFullOfOffers(ctx, tx, rel.Host); err != nil || full {
			return Effects{}, ignoredUnless(err)
		}
	case before.Direction == user.Outbound:
		if stale, err := isOvertaken(ctx, tx, r, before); err != nil || stale {
			return Effects{}, ignoredUnless(err)
		}
		rel.Status = user.Accepted
	default:
		rel.Status = before.Status
	}
	e := Effects{Changed: before == nil || before.Status != rel.Status}
	if err := tx.Actors.Save(ctx, r.Actor, r.Now); err != nil {
		return e, err
	}
	if err := tx.Relationships.Set(ctx, rel, r.Now); err != nil || rel.Status == user.Pending {
		return e, err
	}
	a := r.Activity
	out := r.newSender(tx, local).withSpelling(a.ID, a.Written)
	return e, out.sendAboutActivity(ctx, vocab.Accept, offerDoc(a.ID, f), r.Actor)
}

// isFullOfOffers reports whether the Offers that wait for the user have reached a limit: the limit
// for the domain in the parameter host, or the limit for all domains together.
func isFullOfOffers(ctx context.Context, tx *user.Tx, host string) (bool, error) {
	n, err := tx.Relationships.CountOffers(ctx, host)
	return n.OfHost >= offersOfHost || n.All >= maxOffers, err
}

// isOvertaken reports whether the received Offer has no effect because the user's own Offer
// counts. While the user's Offer waits, the Offer with the lower id counts. After it was
// accepted, a received Offer counts only if it was published after the Accept, or if the Accept is
// not stored any more.
func isOvertaken(ctx context.Context, tx *user.Tx, r *Received, own *user.Relationship) (bool, error) {
	if own.Status == user.Pending {
		return own.Activity.Canonical() < r.Activity.ID.Canonical(), nil
	}
	accept, err := tx.Activities.Latest(ctx, vocab.Accept, r.Actor.ID, own.Activity)
	if err != nil || accept == nil {
		return false, err
	}
	return !r.Activity.Published.After(accept.Published), nil
}

// undoOffer ends the friendship that an Offer made or asked for. It compares the Offer's id,
// because a late Undo must not end a newer friendship.
func undoOffer(ctx context.Context, tx *user.Tx, r *Received, d doing) (bool, error) {
	return endFriendship(ctx, tx, r.Actor.ID, user.Inbound, d.id, r.Now)
}

// undoOwnOffer ends the friendship that the user's Offer made or asked for.
func undoOwnOffer(ctx context.Context, tx *user.Tx, s *Sent) error {
	_, err := endFriendship(ctx, tx, s.Target.ID, user.Outbound, s.Activity.Object.ID, s.Now)
	return err
}

// endFriendship ends the relationship that an Offer made or asks for, and reports whether there
// was one.
func endFriendship(ctx context.Context, tx *user.Tx, with vocab.ID, direction string, offer vocab.ID, at time.Time) (bool, error) {
	rel, err := findFriendship(ctx, tx, with, direction, offer)
	if err != nil || rel == nil {
		return false, err
	}
	return tx.Relationships.End(ctx, rel.Type, with, at)
}

// findFriendship returns the relationship that an Offer made or asks for, or nil if there is
// none.
func findFriendship(ctx context.Context, tx *user.Tx, with vocab.ID, direction string, offer vocab.ID) (*user.Relationship, error) {
	all, err := tx.Relationships.FindAll(ctx, with)
	for _, rel := range all {
		if rel.Direction == direction && rel.Activity.Same(offer) {
			return &rel, nil
		}
	}
	return nil, err
}

// offerDoc returns an Offer in the form in which an Accept, Reject or Undo embeds it: with only
// the members that identify it.
func offerDoc(id vocab.ID, f vocab.Friendship) vocab.Doc {
	return vocab.Doc{"id": string(id), "type": vocab.Offer, "actor": string(f.Subject), "object": f.Doc()}
}

// DescribeOffer returns the Offer that made a relationship of the user, in the form in which an
// Accept, Reject or Undo embeds it.
func DescribeOffer(rel *user.Relationship, me vocab.ID) vocab.Doc {
	f := vocab.Friendship{Type: rel.Type, Subject: me, Object: rel.Actor}
	if rel.Direction == user.Inbound {
		f.Subject, f.Object = f.Object, f.Subject
	}
	return offerDoc(rel.Activity, f)
}

// endFriendships ends the friendships between the user and an actor, and tells the actor: it
// sends an Undo of the user's own Offer, or a Reject of the actor's Offer.
func endFriendships(ctx context.Context, out sender, with *vocab.Actor) error {
	for _, kind := range user.FriendTypes {
		rel, err := out.tx.Relationships.Find(ctx, kind, with.ID)
		if err != nil {
			return err
		}
		if rel == nil {
			continue
		}
		if _, err := out.tx.Relationships.End(ctx, kind, with.ID, out.now); err != nil {
			return err
		}
		if err := sendEndOf(ctx, out, rel, with); err != nil {
			return err
		}
	}
	return nil
}

// sendEndOf tells an actor that a friendship ends.
func sendEndOf(ctx context.Context, out sender, rel *user.Relationship, with *vocab.Actor) error {
	offer := DescribeOffer(rel, out.local.ID(out.user))
	if rel.Direction == user.Outbound {
		return out.sendAboutActivity(ctx, vocab.Undo, offer, with)
	}
	written, err := Written(ctx, out.tx, user.Owned{ID: rel.Activity, Actor: rel.Actor})
	if err != nil {
		return err
	}
	return out.withSpelling(rel.Activity, written).sendAboutActivity(ctx, vocab.Reject, offer, with)
}
