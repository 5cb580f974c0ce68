package handler

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newOffer returns the handler of Offer: an actor proposes something. One that does not ask to be
// friends is stored and shown, and has no effect.
func newOffer() Handler {
	return Handler{
		Notifies:   NoticeOfNamed,
		Relates:    true,
		Ordered:    true,
		Undone:     undoOffer,
		SentUndone: undoOwnOffer,
	}
}

// newFriendRequest returns the handler of the Offer of a Relationship: an actor asks the user to be
// friends (ActivityStreams vocabulary §5.1). Of two Offers that cross, one to the other's sender,
// that with the lower id counts, and is accepted at once: both databases name the same Offer.
func newFriendRequest(local *actor.Local) Handler {
	h := newOffer()
	h.Concern = audience.Concern{Owner: true}
	h.ChangesWho = true
	h.Aliases = []Alias{{"friendrequest.received", isFriendRequest}}
	h.Check = checkFriendRequest
	h.Received = func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
		if !isFriendRequest(r) {
			return Effects{}, nil
		}
		return receiveFriendRequest(ctx, tx, local, r)
	}
	h.Sent = func(ctx context.Context, tx Tx, s *Sent) error {
		if err := tx.SaveActor(ctx, s.Target, s.Now); err != nil {
			return err
		}
		f, _, err := vocab.FriendshipOf(s.Activity.Object.Doc)
		if err != nil {
			return err
		}
		return tx.SetRelationship(ctx, db.Relationship{Actor: s.Target.ID, Type: f.Type, Status: db.Pending, Activity: s.Activity.ID, Direction: db.Outbound}, s.Now)
	}
	return h
}

// isFriendRequest reports whether the Offer asks the user for a type of friendship that this engine
// knows.
func isFriendRequest(r *Received) bool {
	f, ok, err := vocab.FriendshipOf(r.Activity.Object.Doc)
	return err == nil && ok && f.Object.Same(r.Me)
}

// checkFriendRequest refuses a friendship that somebody else than its subject asks for.
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

// Bounds of the Offers that wait for a user.
const (
	offersOfHost = 200
	maxOffers    = 2000
)

// receiveFriendRequest lets the Offer wait for the user, or accepts it at once when the user wants
// the same. An actor that offers again has lost what the user's database says.
func receiveFriendRequest(ctx context.Context, tx Tx, local *actor.Local, r *Received) (Effects, error) {
	f, _, err := vocab.FriendshipOf(r.Activity.Object.Doc)
	if err != nil {
		return Effects{}, err
	}
	before, err := tx.Relationship(ctx, f.Type, r.Actor.ID)
	if err != nil {
		return Effects{}, err
	}
	rel := db.Relationship{Actor: r.Actor.ID, Type: f.Type, Status: db.Pending, Activity: r.Activity.ID, Direction: db.Inbound, Host: policy.RegistrableDomain(r.Actor.ID.Host())}
	switch {
	case before == nil:
		if full, err := isFullOfOffers(ctx, tx, rel.Host); err != nil || full {
			return Effects{}, ignoredUnless(err)
		}
	case before.Direction == db.Outbound:
		if stale, err := isOvertaken(ctx, tx, r, before); err != nil || stale {
			return Effects{}, ignoredUnless(err)
		}
		rel.Status = db.Accepted
	default:
		rel.Status = before.Status
	}
	e := Effects{Changed: before == nil || before.Status != rel.Status}
	if err := tx.SaveActor(ctx, r.Actor, r.Now); err != nil {
		return e, err
	}
	if err := tx.SetRelationship(ctx, rel, r.Now); err != nil || rel.Status == db.Pending {
		return e, err
	}
	a := r.Activity
	out := sender{tx: tx, local: local, user: r.User, now: r.Applied}.withSpelling(a.ID, a.Written)
	return e, out.sendAboutActivity(ctx, vocab.Accept, offerDoc(a.ID, f), r.Actor)
}

// isFullOfOffers reports whether no more Offers of a domain may wait for the user.
func isFullOfOffers(ctx context.Context, tx Tx, host string) (bool, error) {
	n, err := tx.CountOffers(ctx, host)
	return n.OfHost >= offersOfHost || n.All >= maxOffers, err
}

// isOvertaken reports whether the user's own Offer counts and not the received one: while it waits,
// the one with the lower id; once it was accepted, one that the actor sent before it accepted.
func isOvertaken(ctx context.Context, tx Tx, r *Received, own *db.Relationship) (bool, error) {
	if own.Status == db.Pending {
		return own.Activity.Canonical() < r.Activity.ID.Canonical(), nil
	}
	accept, err := tx.LatestActivity(ctx, vocab.Accept, r.Actor.ID, own.Activity)
	if err != nil || accept == nil {
		return false, err
	}
	return !r.Activity.Published.After(accept.Published), nil
}

// undoOffer ends the friendship that an Offer made, or asked for: a late Undo must not end a newer
// one.
func undoOffer(ctx context.Context, tx Tx, r *Received, d doing) (bool, error) {
	return endFriendship(ctx, tx, r.Actor.ID, db.Inbound, d.id)
}

// undoOwnOffer ends the friendship that the user's Offer made, or asked for.
func undoOwnOffer(ctx context.Context, tx Tx, s *Sent) error {
	_, err := endFriendship(ctx, tx, s.Target.ID, db.Outbound, s.Activity.Object.ID)
	return err
}

// endFriendship ends the relationship that an Offer made or asks for, and reports whether there was
// one.
func endFriendship(ctx context.Context, tx Tx, with vocab.ID, direction string, offer vocab.ID) (bool, error) {
	rel, err := findFriendship(ctx, tx, with, direction, offer)
	if err != nil || rel == nil {
		return false, err
	}
	return tx.EndRelationship(ctx, rel.Type, with)
}

// findFriendship returns the relationship that an Offer made or asks for, nil when there is none.
func findFriendship(ctx context.Context, tx Tx, with vocab.ID, direction string, offer vocab.ID) (*db.Relationship, error) {
	for _, kind := range db.FriendTypes {
		rel, err := tx.Relationship(ctx, kind, with)
		if err != nil {
			return nil, err
		}
		if rel != nil && rel.Direction == direction && rel.Activity.Same(offer) {
			return rel, nil
		}
	}
	return nil, nil
}

// offerDoc returns an Offer as its Accept, Reject or Undo carries it: with the members that
// identify it alone.
func offerDoc(id vocab.ID, f vocab.Friendship) vocab.Doc {
	return vocab.Doc{"id": string(id), "type": vocab.Offer, "actor": string(f.Subject), "object": f.Doc()}
}

// DescribeOffer returns the Offer that made a relationship of the user's, as its answers and its
// Undo carry it.
func DescribeOffer(rel *db.Relationship, me vocab.ID) vocab.Doc {
	f := vocab.Friendship{Type: rel.Type, Subject: me, Object: rel.Actor}
	if rel.Direction == db.Inbound {
		f.Subject, f.Object = f.Object, f.Subject
	}
	return offerDoc(rel.Activity, f)
}

// endFriendships ends the friendships between the user and an actor, and tells the actor so: the
// user's own Offer is undone, the actor's rejected.
func endFriendships(ctx context.Context, out sender, with *vocab.Actor) error {
	for _, kind := range db.FriendTypes {
		rel, err := out.tx.Relationship(ctx, kind, with.ID)
		if err != nil {
			return err
		}
		if rel == nil {
			continue
		}
		if _, err := out.tx.EndRelationship(ctx, kind, with.ID); err != nil {
			return err
		}
		if err := sendEndOf(ctx, out, rel, with); err != nil {
			return err
		}
	}
	return nil
}

// sendEndOf tells an actor that a friendship ends.
func sendEndOf(ctx context.Context, out sender, rel *db.Relationship, with *vocab.Actor) error {
	offer := DescribeOffer(rel, out.local.ID(out.user))
	if rel.Direction == db.Outbound {
		return out.sendAboutActivity(ctx, vocab.Undo, offer, with)
	}
	written, err := Written(ctx, out.tx, db.Owned{ID: rel.Activity, Actor: rel.Actor})
	if err != nil {
		return err
	}
	return out.withSpelling(rel.Activity, written).sendAboutActivity(ctx, vocab.Reject, offer, with)
}
