package handler

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// add: an actor puts an object into a collection of its own (ActivityPub §7.8). What it puts into its featured collection
// is pinned; nothing is known of others. The user's own are its groups.
func add() Handler {
	return Handler{
		Concern:    audience.Concern{Holders: true},
		ChangesWho: true,
		Authored:   true,
		About:      target,
		Check:      checkCollected,
		Needs:      needsPinned,
		Received:   collected(pin),
		Undone:     unpin,
		Sent:       addMember,
	}
}

// takeOut: an actor removes an object from a collection of its own (ActivityPub §7.9).
func takeOut() Handler {
	return Handler{
		Concern:    audience.Concern{Holders: true},
		Ends:       true,
		ChangesWho: true,
		About:      target,
		Check:      checkCollected,
		Received: collected(func(ctx context.Context, tx Tx, r *Received) error {
			did, err := tx.RemovePin(ctx, r.Actor.ID, r.Activity.Object.ID)
			if err != nil || !did {
				return ignoredUnless(err)
			}
			return nil
		}),
		Undone: repin,
		Sent:   removeMember,
	}
}

// checkCollected requires an object and a target (ActivityPub §7).
func checkCollected(a *vocab.Activity) error {
	if err := checkObject(a); err != nil {
		return err
	}
	if a.Target.ID == "" || a.Target.ID == vocab.Public {
		return fault.New(fault.Invalid, "the activity needs a target with an id").At("/target")
	}
	return nil
}

// needsPinned names the object if it may be the actor's own. Hashtags, which can be featured too, are no objects.
func needsPinned(a *vocab.Activity) []vocab.ID {
	if !ownTarget(a) || !a.Object.ID.SameOrigin(a.Actor) || a.Object.Type() == "Hashtag" {
		return nil
	}
	return []vocab.ID{a.Object.ID}
}

// ownTarget tells whether the collection may be the actor's. Somebody else's is nobody's to change.
func ownTarget(a *vocab.Activity) bool { return a.Target.ID.SameOrigin(a.Actor) }

func isFeatured(r *Received, target vocab.ID) bool {
	return r.Actor.Featured != "" && target.Same(r.Actor.Featured)
}

// collected does what a change of the featured collection does. Changes of other collections are kept by the users that they reach.
func collected(featured func(context.Context, Tx, *Received) error) func(context.Context, Tx, *Received) (Effects, error) {
	return func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
		switch {
		case !ownTarget(r.Activity):
			return Effects{}, ErrIgnored
		case isFeatured(r, r.Activity.Target.ID):
			return Effects{}, featured(ctx, tx, r)
		case r.Named || r.Follows && open(r):
			return Effects{}, nil
		}
		return Effects{}, ErrIgnored
	}
}

// open tells whether an activity is meant for all who follow its actor. Many servers address a change of a collection to
// nobody.
func open(r *Received) bool {
	to := audience.OfActivity(r.Activity, r.Actor.Followers)
	return to.IsUnaddressed() || !to.IsPrivate()
}

// pin keeps that an actor pinned what it wrote, for a user who follows the actor or holds the object.
func pin(ctx context.Context, tx Tx, r *Received) error {
	id := r.Activity.Object.ID
	o := r.Fetched[id]
	if o != nil {
		id = o.ID
	}
	there, err := tx.Object(ctx, id)
	if err != nil {
		return err
	}
	if there != nil {
		if own, err := wrote(r.Actor.ID, there); err != nil || !own {
			return ignoredUnless(err)
		}
	} else {
		follows := r.Follows && (r.Named || open(r))
		if !follows || o == nil || !readable(o) || !audience.IsPublic(o.Addressing) || !o.AttributedTo.Same(r.Actor.ID) {
			return ErrIgnored
		}
		if kept, err := keep(ctx, tx, o, true, r.Now); err != nil || !kept {
			return ignoredUnless(err)
		}
	}
	return tx.SetPin(ctx, db.Pin{Actor: r.Actor.ID, Object: id, Activity: r.Activity.ID}, r.Now)
}

// unpin takes back an Add: by its id, or, when that never arrived, by what it is about.
func unpin(ctx context.Context, tx Tx, r *Received, d doing) (bool, error) {
	if d.stored {
		return tx.RemovePinBy(ctx, d.id, r.Actor.ID)
	}
	if !isFeatured(r, d.target) {
		return false, nil
	}
	return tx.RemovePin(ctx, r.Actor.ID, d.about)
}

// repin takes back a Remove that took effect, if the object is still here.
func repin(ctx context.Context, tx Tx, r *Received, d doing) (bool, error) {
	if !d.stored || !isFeatured(r, d.target) {
		return false, nil
	}
	there, err := tx.Object(ctx, d.about)
	if err != nil || there == nil {
		return false, err
	}
	if own, err := wrote(r.Actor.ID, there); err != nil || !own {
		return false, err
	}
	return true, tx.SetPin(ctx, db.Pin{Actor: r.Actor.ID, Object: there.URI, Activity: r.Activity.ID}, r.Now)
}
