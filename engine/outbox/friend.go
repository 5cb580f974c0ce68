package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sendFriendRequest asks an actor to become a friend of the user.
type sendFriendRequest struct {
	ActorURI         string `json:"actorUri" schema:"actor"`
	RelationshipType string `json:"relationshipType" schema:"friendship"`

	asked vocab.Friendship
}

func (p *sendFriendRequest) checkParams() (err error) {
	if err := checkPresent("actorUri", p.ActorURI); err != nil {
		return err
	}
	p.asked.Type, err = parseFriendship(p.RelationshipType)
	return err
}

// parseFriendship reads the parameter relationshipType.
func parseFriendship(value string) (string, error) {
	if value == "" {
		return "", badParam("relationshipType", "relationshipType is missing")
	}
	kind, ok := vocab.ParseFriendship(value)
	if !ok {
		return "", badParam("relationshipType", "relationshipType names no type of relationship")
	}
	return kind, nil
}

func (p *sendFriendRequest) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if x.counterpart, err = f.findActor(ctx, x, "actorUri", p.ActorURI); err != nil {
		return err
	}
	if x.counterpart.ID.Same(x.actor.ID) {
		return badParam("actorUri", "nobody is friends with themselves")
	}
	p.asked.Subject, p.asked.Object = x.actor.ID, x.counterpart.ID
	x.to = []vocab.ID{x.counterpart.ID}
	x.addNamed(x.counterpart)
	return nil
}

func (p *sendFriendRequest) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Offer, p.asked.Doc()
}

func (p *sendFriendRequest) lockName() string { return friendLock(p.asked.Object) }

// findEarlier returns the user's Offer that is pending or was accepted.
func (p *sendFriendRequest) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	if err := checkNotBlocked(ctx, tx, p.asked.Object); err != nil {
		return "", err
	}
	rel, err := tx.Relationships.Find(ctx, p.asked.Type, p.asked.Object)
	switch {
	case err != nil || rel == nil:
		return "", err
	case rel.Direction == user.Outbound:
		return rel.Activity, nil
	case rel.Status == user.Accepted:
		return "", fault.New(fault.Conflict, "the two are friends already").WithCode("already_friends").At("/params/actorUri")
	}
	return "", fault.New(fault.Conflict, "the actor has asked first: accept its request").WithCode("request_waits").At("/params/actorUri")
}

func friendLock(actor vocab.ID) string { return "friend " + string(actor) }

// answerOffer is the common part of AcceptFriendRequest and RejectFriendRequest. Its parameters
// name the Offer that is answered, either by its id or by its sender.
type answerOffer struct {
	OfferID  string `json:"offerId" schema:"activity,either"`
	ActorURI string `json:"actorUri" schema:"actor,either"`

	rel *user.Relationship
}

// acceptFriendRequest makes an actor a friend of the user. rejectFriendRequest refuses the
// request of the actor.
type (
	acceptFriendRequest struct{ answerOffer }
	rejectFriendRequest struct{ answerOffer }
)

func (p *answerOffer) checkParams() error {
	return checkEither("offerId", p.OfferID, "actorUri", p.ActorURI)
}

// findOffer finds the Offer that is answered.
func (p *answerOffer) findOffer(ctx context.Context, f *finder, x *exchange) error {
	name := "offerId"
	id, err := vocab.IDOf(p.OfferID), error(nil)
	if p.ActorURI != "" {
		name = "actorUri"
		id, err = f.actorID(ctx, x, p.ActorURI)
	} else {
		_, err = parseIdentifier(name, p.OfferID)
	}
	if err != nil {
		return err
	}
	return f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) error {
		list := tx.Relationships.FindOffersBy
		if p.ActorURI != "" {
			list = tx.Relationships.FindOffersOf
		}
		found, err := list(ctx, id.Canonical())
		if err != nil {
			return err
		}
		if p.rel, err = chooseOffer(found, name); err != nil {
			return err
		}
		written, err := handler.Written(ctx, tx, user.Owned{ID: p.rel.Activity, Actor: p.rel.Actor})
		x.spelling = x.spelling.Add(p.rel.Activity, written)
		return err
	})
}

// chooseOffer returns the pending Offer. If none is pending, it returns the accepted Offer. It
// refuses to choose between several Offers of the same status.
func chooseOffer(found []user.Relationship, name string) (*user.Relationship, error) {
	var chosen *user.Relationship
	for _, status := range []string{user.Pending, user.Accepted} {
		for n := range found {
			if found[n].Status != status {
				continue
			}
			if chosen != nil {
				return nil, fault.New(fault.Conflict, "several requests are meant").WithCode("ambiguous_id").At("/params/" + name)
			}
			chosen = &found[n]
		}
		if chosen != nil {
			return chosen, nil
		}
	}
	return nil, refuseNoOffer()
}

func refuseNoOffer() error {
	return fault.New(fault.NotFound, "there is no such friend request").WithCode("no_friend_request").At("/params")
}

func (p *answerOffer) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if err := p.findOffer(ctx, f, x); err != nil {
		return err
	}
	return f.addressCounterpart(ctx, x, p.rel.Actor)
}

func (p *answerOffer) lockName() string { return friendLock(p.rel.Actor) }

func (p *acceptFriendRequest) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Accept, handler.DescribeOffer(p.rel, x.actor.ID)
}
func (p *rejectFriendRequest) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Reject, handler.DescribeOffer(p.rel, x.actor.ID)
}

// findEarlier returns the Accept that made the user and the actor friends.
func (p *acceptFriendRequest) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	if err := checkNotBlocked(ctx, tx, p.rel.Actor); err != nil {
		return "", err
	}
	rel, err := readUnchanged(ctx, tx, p.rel)
	if err != nil || rel.Status != user.Accepted {
		return "", err
	}
	before, err := tx.Activities.Latest(ctx, vocab.Accept, x.actor.ID, rel.Activity)
	if err != nil || before == nil {
		return "", err
	}
	return before.URI, nil
}

func (p *rejectFriendRequest) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	rel, err := readUnchanged(ctx, tx, p.rel)
	if err == nil && rel.Status == user.Accepted {
		err = fault.New(fault.Conflict, "the two are friends: RemoveRelationship ends that").WithCode("already_friends").At("/params")
	}
	return "", err
}

// readUnchanged reads the relationship again. It refuses the action if the Offer that made the
// relationship is gone or was replaced.
func readUnchanged(ctx context.Context, tx *user.Tx, before *user.Relationship) (*user.Relationship, error) {
	rel, err := tx.Relationships.Find(ctx, before.Type, before.Actor)
	if err == nil && (rel == nil || rel.Activity != before.Activity) {
		err = refuseNoOffer()
	}
	return rel, err
}

// removeRelationship ends the user's follow of an actor, or a friendship with it. It does not
// matter which of the two asked for the friendship.
type removeRelationship struct {
	ActorURI         string `json:"actorUri" schema:"actor"`
	RelationshipType string `json:"relationshipType" schema:"relationship"`

	intent // unfollow or endFriendship, by the relationship type
}

// followingType is the relationship type of a follow.
const followingType = "following"

func (p *removeRelationship) checkParams() error {
	if err := checkPresent("actorUri", p.ActorURI); err != nil {
		return err
	}
	if p.RelationshipType == followingType {
		p.intent = &unfollow{ActorURI: p.ActorURI}
		return nil
	}
	kind, err := parseFriendship(p.RelationshipType)
	if err != nil {
		return err
	}
	p.intent = &endFriendship{actorURI: p.ActorURI, kind: kind}
	return nil
}

// endFriendship ends a friendship, or a request for one.
type endFriendship struct {
	actorURI, kind string

	rel *user.Relationship
}

func (p *endFriendship) checkParams() error { return nil }

func (p *endFriendship) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	id, err := f.actorID(ctx, x, p.actorURI)
	if err != nil {
		return err
	}
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		if p.rel, err = tx.Relationships.Find(ctx, p.kind, id.Canonical()); err != nil {
			return err
		}
		if p.rel == nil {
			return refuseNotRelated()
		}
		written, err := handler.Written(ctx, tx, user.Owned{ID: p.rel.Activity, Actor: p.rel.Actor})
		x.spelling = x.spelling.Add(p.rel.Activity, written)
		return err
	})
	if err != nil {
		return err
	}
	return f.addressCounterpart(ctx, x, p.rel.Actor)
}

func refuseNotRelated() error {
	return fault.New(fault.NotFound, "there is no such relationship").WithCode("not_related").At("/params/actorUri")
}

// constructObject undoes the Offer if the user sent it, and rejects it if the actor did.
func (p *endFriendship) constructObject(_ *actor.Local, x *exchange) (string, any) {
	offer := handler.DescribeOffer(p.rel, x.actor.ID)
	if p.rel.Direction == user.Inbound {
		return vocab.Reject, offer
	}
	return vocab.Undo, offer
}

func (p *endFriendship) lockName() string { return friendLock(p.rel.Actor) }

func (p *endFriendship) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	rel, err := tx.Relationships.Find(ctx, p.rel.Type, p.rel.Actor)
	if err == nil && (rel == nil || rel.Activity != p.rel.Activity) {
		err = refuseNotRelated()
	}
	return "", err
}
