package handler

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newDelete returns the handler of Delete: an author deleted an object, or an actor itself
// (ActivityPub §7.4). If the user has to do with the author, the id of the object is remembered
// even when the object never came: it cannot come back as that author's.
func newDelete(local *actor.Local) Handler {
	return Handler{
		Concern:   audience.Concern{Holders: true},
		Final:     true,
		TakesAway: true,
		TakesBack: true,
		Ends:      true,
		Lasting:   true,
		Authored:  true,
		About:     objectID,
		Check:     checkDeletable,
		Received: func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
			id := r.Activity.Object.ID
			if id.Same(r.Actor.ID) {
				return forgetActor(ctx, tx, r)
			}
			if other, err := tx.Actor(ctx, id); err != nil || other != nil {
				return Effects{}, ignoredUnless(err) // nobody deletes another actor
			}
			stored, err := tx.Object(ctx, id)
			if err != nil {
				return Effects{}, err
			}
			former := ""
			if stored != nil {
				o, err := stored.Parse()
				if err != nil || !o.AttributedTo.Same(r.Actor.ID) {
					return Effects{}, ignoredUnless(err)
				}
				former = o.Type
				if err := withdrawApproval(ctx, tx, local, r, o); err != nil {
					return Effects{}, err
				}
			}
			if stored == nil {
				known, err := r.mayRemember(ctx, tx)
				if err != nil {
					return Effects{}, err
				}
				if !known {
					return Effects{TakenAway: id}, ErrIgnored
				}
			}
			e := Effects{Remembered: true}
			if _, err := tx.BuryObject(ctx, newGrave(id, r.Actor.ID, former, r.Now), r.Now); err != nil || stored == nil {
				return e, ignoredUnless(err)
			}
			return e, nil
		},
		Sent: func(ctx context.Context, tx Tx, s *Sent) error {
			switch {
			case s.Group != nil:
				return tx.RemoveGroup(ctx, s.Group.ID)
			case s.Object == nil: // the user itself: the database goes as a whole
				return nil
			}
			_, err := tx.BuryObject(ctx, db.Grave{URI: s.Object.URI, Author: s.Actor.ID, Tombstone: s.Activity.Object.Doc.JSON()}, s.Now)
			return err
		},
	}
}

// checkDeletable refuses the deletion of an actor by another actor.
func checkDeletable(a *vocab.Activity) error {
	if vocab.IsActorType(a.Object.Type()) && !a.Object.ID.Same(a.Actor) {
		return fault.New(fault.Invalid, "an actor can only delete itself").WithCode("foreign_object").At("/object")
	}
	return checkOwnObject(a)
}

// forgetActor removes everything that a deleted actor left with the user, in a few statements
// however much it wrote. Its activities go first, so that they need not be emptied of its objects.
func forgetActor(ctx context.Context, tx Tx, r *Received) (e Effects, err error) {
	for _, kind := range db.RelationshipTypes {
		rel, err := tx.Relationship(ctx, kind, r.Actor.ID)
		if err != nil {
			return e, err
		}
		e.Changed = e.Changed || rel != nil
	}
	knew, err := tx.ForgetActor(ctx, r.Actor.ID)
	if err != nil {
		return e, err
	}
	closed, err := tx.CloseHostedBy(ctx, r.Actor.ID, r.Now)
	if err != nil {
		return e, err
	}
	if err := tellClosed(ctx, tx, closed, r.Me, r.Actor.ID, false, r.Now); err != nil {
		return e, err
	}
	if err := takeBackVotes(ctx, tx, r.Actor.ID); err != nil {
		return e, err
	}
	objects, err := tx.ObjectsBy(ctx, r.Actor.ID)
	if err != nil {
		return e, err
	}
	graves := make([]db.Grave, len(objects))
	for n, id := range objects {
		graves[n] = newGrave(id, r.Actor.ID, "", r.Now)
	}
	if _, err := tx.BuryObjects(ctx, graves, r.Now); err != nil {
		return e, err
	}
	if !knew && len(objects) == 0 {
		return e, ErrIgnored
	}
	return e, nil
}

func newGrave(id, author vocab.ID, formerType string, now time.Time) db.Grave {
	return db.Grave{URI: id, Author: author, Tombstone: Tombstone(id, formerType, now)}
}

// Tombstone returns the document that takes the place of a deleted object (ActivityPub §6.4).
// formerType may be empty.
func Tombstone(id vocab.ID, formerType string, now time.Time) []byte {
	d := vocab.Doc{"id": string(id), "type": "Tombstone", "deleted": now.UTC().Format(time.RFC3339)}
	if formerType != "" {
		d["formerType"] = formerType
	}
	return d.JSON()
}
