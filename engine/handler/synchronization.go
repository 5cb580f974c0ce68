package handler

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Unlisted ends the user's follow of an actor, because the actor's server does not list the user
// among the followers (FEP-8fcf). It does so only if the follow was accepted and the id of its
// Follow is still the one in the parameter follow.
func Unlisted(ctx context.Context, tx *user.Tx, l Listing, follow vocab.ID) error {
	rel, err := tx.Relationships.Find(ctx, user.Following, l.By.ID)
	if err != nil || rel == nil || rel.Status != user.Accepted || rel.Activity != follow {
		return err
	}
	if _, err := tx.Relationships.End(ctx, user.Following, l.By.ID, l.Now); err != nil {
		return err
	}
	p := Payload{Activity: follow, Type: vocab.Follow, Actor: l.By.ID, Object: l.By.ID, Trust: user.TrustStranger}
	return tx.Events.Add(ctx, NewEvent("relationship.changed", p, l.Now))
}

// underWay is the longest time for which the user's Undo of a Follow may be on its way to a server
// that is online.
const underWay = 12 * time.Hour

// Listed sends an Undo of a Follow because the actor's server lists a user who does not follow
// the actor (FEP-8fcf). It does so only once for a Follow, even if the user is listed again. It
// sends none while the user's own Undo may be on its way, or while a Follow waits for its answer.
// It reports whether it has queued a delivery.
func Listed(ctx context.Context, tx *user.Tx, l Listing) (queued bool, err error) {
	me := l.Local.ID(l.User)
	rel, err := tx.Relationships.Find(ctx, user.Following, l.By.ID)
	if err != nil || rel != nil && rel.Status != user.Rejected {
		return false, err
	}
	follow := derivedID(me, "follow", l.By.ID) // if no Follow is stored, any id will do
	if rel != nil {
		follow = rel.Activity
	} else if sent, err := tx.Activities.Latest(ctx, vocab.Follow, me, l.By.ID); err != nil {
		return false, err
	} else if sent != nil {
		follow = sent.URI
	}
	own, err := tx.Activities.Latest(ctx, vocab.Undo, me, follow)
	if err != nil || own != nil && l.Now.Sub(own.Published) < underWay {
		return false, err
	}
	undo := derivedID(me, "undo", follow)
	if sent, err := tx.Activities.Find(ctx, undo); err != nil || sent != nil {
		return false, err
	}
	out := sender{tx: tx, local: l.Local, user: l.User, now: l.Now}
	return true, out.storeActivity(ctx, vocab.Doc{"id": string(undo), "type": vocab.Undo, "object": followDoc(follow, me, l.By.ID)}, follow, follow, l.By)
}

// Listing is a statement by the server of the actor By: it says whether the server lists a user
// among the actor's followers.
type Listing struct {
	Local *actor.Local
	User  vocab.Username
	By    *vocab.Actor
	Now   time.Time
}

// derivedID returns an id for an activity of the user that is derived from its effect and the
// thing it is about. A repeat of the same activity has the same id.
func derivedID(me vocab.ID, does string, thing vocab.ID) vocab.ID {
	return me + "/activities/" + vocab.ID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(does+" "+string(thing.Canonical()))).String())
}
