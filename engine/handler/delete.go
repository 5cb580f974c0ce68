package handler

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newDelete returns the handler of Delete: an author deleted an object, or an actor deleted
// itself (ActivityPub §7.4). If the object never arrived, its id is stored, provided that the
// user has something to do with the author (see mayRemember). So the author's object cannot be
// stored later. A Delete of an activity that can be undone counts as its Undo: Wafrn takes a boost
// back in this way.
func newDelete(local *actor.Local, types *Registry) Handler {
	u := undoer{types}
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
		Received: func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
			id := r.Activity.Object.ID
			if id.Same(r.Actor.ID) {
				return forgetActor(ctx, tx, r)
			}
			if other, err := tx.Actors.Find(ctx, id); err != nil || other != nil {
				return Effects{}, ignoredUnless(err) // an actor cannot delete another one
			}
			stored, err := tx.Objects.Find(ctx, id)
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
				d, err := findStored(ctx, tx, r.own(id))
				if err != nil {
					return Effects{}, err
				}
				if d.stored && !u.isFinal(d.kind) {
					return u.takeBack(ctx, tx, r, d)
				}
				known, err := r.mayRemember(ctx, tx)
				if err != nil {
					return Effects{}, err
				}
				if !known {
					return Effects{TakenAway: id}, ErrIgnored
				}
			}
			e := Effects{Remembered: true}
			if stored == nil { // it may be an activity that is still on its way
				if _, err := tx.Activities.Claim(ctx, []user.Owned{r.own(id)}); err != nil {
					return Effects{}, err
				}
				e.Disabled = []vocab.ID{id}
			}
			if _, err := tx.Objects.Bury(ctx, newGrave(id, r.Actor.ID, former, r.Now), r.Now); err != nil || stored == nil {
				return e, ignoredUnless(err)
			}
			return e, nil
		},
		Sent: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			switch {
			case s.Group != nil:
				return tx.Groups.Remove(ctx, s.Group.ID)
			case s.Object == nil: // the user is deleted, and the user's database with it
				return nil
			}
			_, err := tx.Objects.Bury(ctx, user.Grave{URI: s.Object.URI, Author: s.Actor.ID, Tombstone: s.Activity.Object.Doc.JSON()}, s.Now)
			return err
		},
	}
}

// checkDeletable refuses the deletion of another actor, and of an object that is not on the
// actor's server.
func checkDeletable(a *vocab.Activity) error {
	if vocab.IsActorType(a.Object.Type()) && !a.Object.ID.Same(a.Actor) {
		return fault.New(fault.Invalid, "an actor can only delete itself").WithCode("foreign_object").At("/object")
	}
	return checkOwnObject(a)
}

// forgetActor removes the data of a deleted actor from the user's database, except blocks,
// conversations and the actor's Deletes. It closes the conversations that the actor hosts, and
// replaces the actor's objects with Tombstones. It needs few statements, even if the actor has
// many objects. The actor's activities are removed first, so that the objects in them need not be
// blanked one by one.
func forgetActor(ctx context.Context, tx *user.Tx, r *Received) (e Effects, err error) {
	closed, err := tx.Conversations.CloseHostedBy(ctx, r.Actor.ID, r.Now, r.Tells) // while it can see the relationships
	if err != nil {
		return e, err
	}
	if e.Changed, err = tx.Relationships.EndAll(ctx, r.Actor.ID, r.endTime()); err != nil {
		return e, err
	}
	knew, err := tx.Actors.Forget(ctx, r.Actor.ID)
	if err != nil {
		return e, err
	}
	if err := takeBackVotes(ctx, tx, r.Actor.ID); err != nil {
		return e, err
	}
	objects, err := tx.Objects.ListBy(ctx, r.Actor.ID)
	if err != nil {
		return e, err
	}
	graves := make([]user.Grave, len(objects))
	for n, id := range objects {
		graves[n] = newGrave(id, r.Actor.ID, "", r.Now)
	}
	if _, err := tx.Objects.BuryAll(ctx, graves, r.Now); err != nil {
		return e, err
	}
	if !knew && !e.Changed && len(objects) == 0 && len(closed) == 0 {
		return e, ErrIgnored
	}
	return e, nil
}

func newGrave(id, author vocab.ID, formerType string, now time.Time) user.Grave {
	return user.Grave{URI: id, Author: author, Tombstone: Tombstone(id, formerType, now)}
}

// Tombstone returns the document that replaces a deleted object (ActivityPub §6.4). formerType
// may be empty.
func Tombstone(id vocab.ID, formerType string, now time.Time) []byte {
	d := vocab.Doc{"id": string(id), "type": "Tombstone", "deleted": now.UTC().Format(time.RFC3339)}
	if formerType != "" {
		d["formerType"] = formerType
	}
	return d.JSON()
}
