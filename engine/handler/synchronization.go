package handler

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Unlisted ends the user's follow of an actor whose server does not list the user among the
// followers (FEP-8fcf), if that follow was accepted and is still the same one.
func Unlisted(ctx context.Context, tx Tx, l Listing, follow vocab.ID) error {
	rel, err := tx.Relationship(ctx, db.Following, l.By.ID)
	if err != nil || rel == nil || rel.Status != db.Accepted || rel.Activity != follow {
		return err
	}
	if _, err := tx.EndRelationship(ctx, db.Following, l.By.ID); err != nil {
		return err
	}
	p := Payload{Activity: follow, Type: vocab.Follow, Actor: l.By.ID, Object: l.By.ID, Trust: TrustStranger}
	return tx.AddEvent(ctx, NewEvent("relationship.changed", p, l.Now))
}

// underWay is how long what takes a Follow back may take to arrive at a server that is heard of.
const underWay = 12 * time.Hour

// Listed sends an Undo of a Follow when the actor's server lists a user who does not follow the
// actor (FEP-8fcf). It does so once, however often the user is listed, and neither while the
// user's own Undo may be on its way nor while a Follow waits for its answer. It reports whether a
// delivery is due.
func Listed(ctx context.Context, tx Tx, l Listing) (queued bool, err error) {
	me := l.Local.ID(l.User)
	rel, err := tx.Relationship(ctx, db.Following, l.By.ID)
	if err != nil || rel != nil && rel.Status != db.Rejected {
		return false, err
	}
	follow := derivedID(me, "follow", l.By.ID) // nothing is known of it but that it is none
	if rel != nil {
		follow = rel.Activity
	} else if sent, err := tx.LatestActivity(ctx, vocab.Follow, me, l.By.ID); err != nil {
		return false, err
	} else if sent != nil {
		follow = sent.URI
	}
	own, err := tx.LatestActivity(ctx, vocab.Undo, me, follow)
	if err != nil || own != nil && l.Now.Sub(own.Published) < underWay {
		return false, err
	}
	undo := derivedID(me, "undo", follow)
	if sent, err := tx.Activity(ctx, undo); err != nil || sent != nil {
		return false, err
	}
	out := sender{tx: tx, local: l.Local, user: l.User, now: l.Now}
	return true, out.storeActivity(ctx, vocab.Doc{"id": string(undo), "type": vocab.Undo, "object": followDoc(follow, me, l.By.ID)}, follow, follow, l.By)
}

// Listing is the statement of an actor's server about a user.
type Listing struct {
	Local *actor.Local
	User  vocab.Username
	By    *vocab.Actor
	Now   time.Time
}

// derivedID returns the id of the one activity of the user's that does this to a thing: a repeat
// has the same id.
func derivedID(me vocab.ID, does string, thing vocab.ID) vocab.ID {
	return me + "/activities/" + vocab.ID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(does+" "+string(thing.Canonical()))).String())
}
