package handler

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newAdd returns the handler of Add: an actor puts an object into a collection of its own
// (ActivityPub §7.8). An object in the featured collection is pinned; an Add to another
// collection of the actor has no effect. When the user sends an Add, the collection may also be
// a group or a stream.
func newAdd() Handler {
	return Handler{
		Concern:    audience.Concern{Holders: true},
		ChangesWho: true,
		Authored:   true,
		Unnamed:    true,
		About:      collectedID,
		Check:      checkCollected,
		Needs:      needsPinned,
		Received:   receiveCollected(pinObject),
		Undone:     undoPin,
		Sent:       sendAdd,
	}
}

// newRemove returns the handler of Remove: an actor removes an object from a collection of its
// own (ActivityPub §7.9).
func newRemove() Handler {
	return Handler{
		Concern:    audience.Concern{Holders: true},
		Ends:       true,
		ChangesWho: true,
		Unnamed:    true,
		About:      collectedID,
		Check:      checkCollected,
		Received: receiveCollected(func(ctx context.Context, tx *user.Tx, r *Received) error {
			did, err := tx.Pins.Remove(ctx, r.Actor.ID, r.Activity.Object.ID)
			if err != nil || !did {
				return ignoredUnless(err)
			}
			return nil
		}),
		Undone: restorePin,
		Sent:   sendRemove,
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

// needsPinned names the object if the object and the target are both on the actor's server, so
// that both may be the actor's own. Hashtags, which can be featured too, and collections are not
// fetched.
func needsPinned(a *vocab.Activity) []vocab.ID {
	if !hasOwnTarget(a) || !a.Object.ID.SameOrigin(a.Actor) || slices.Contains(notPinned, a.Object.Type()) {
		return nil
	}
	return []vocab.ID{a.Object.ID}
}

var notPinned = []string{"Hashtag", vocab.OrderedCollection}

// hasOwnTarget reports whether the target is on the actor's server, so that it may be the
// actor's own collection. An actor cannot change the collections of others.
func hasOwnTarget(a *vocab.Activity) bool { return a.Target.ID.SameOrigin(a.Actor) }

func isFeatured(r *Received, target vocab.ID) bool {
	return r.Actor.Featured != "" && target.Same(r.Actor.Featured)
}

// receiveCollected applies a change of the featured collection. A change of another collection
// is only stored, for users who are addressed or follow the actor.
func receiveCollected(featured func(context.Context, *user.Tx, *Received) error) func(context.Context, *user.Tx, *Received) (Effects, error) {
	return func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
		switch {
		case !hasOwnTarget(r.Activity):
			return Effects{}, ErrIgnored
		case isFeatured(r, r.Activity.Target.ID):
			return Effects{}, featured(ctx, tx, r)
		case r.Named || r.Follows && isOpenToFollowers(r):
			return Effects{}, nil
		}
		return Effects{}, ErrIgnored
	}
}

// isOpenToFollowers reports whether an activity is for all followers of its actor. It returns true
// for an activity without addressing, because many servers address a change of a collection to
// nobody.
func isOpenToFollowers(r *Received) bool {
	to := audience.OfActivity(r.Activity, r.Actor.Followers)
	return to.IsUnaddressed() || !to.IsPrivate()
}

// pinObject pins an object of the sender's own. If the user has not stored the object, pinObject
// stores it on three conditions: it is a public post that was fetched, the user follows the
// sender, and the Add is for the user or for all followers. Otherwise the Add is ignored.
func pinObject(ctx context.Context, tx *user.Tx, r *Received) error {
	id := r.Activity.Object.ID
	o := r.Fetched[id]
	if o != nil {
		id = o.ID
	}
	there, err := tx.Objects.Find(ctx, id)
	if err != nil {
		return err
	}
	if there != nil {
		if own, err := isAuthor(r.Actor.ID, there); err != nil || !own {
			return ignoredUnless(err)
		}
	} else {
		follows := r.Follows && (r.Named || isOpenToFollowers(r))
		if !follows || o == nil || !isReadable(o) || !audience.IsPublic(o.Addressing) || !o.AttributedTo.Same(r.Actor.ID) {
			return ErrIgnored
		}
		if o, err = approve(ctx, tx, r, o); err != nil {
			return err
		}
		if kept, err := keepObject(ctx, tx, o, true, r.Now); err != nil || !kept {
			return ignoredUnless(err)
		}
	}
	return tx.Pins.Set(ctx, user.Pin{Actor: r.Actor.ID, Object: id, Activity: r.Activity.ID}, r.Now)
}

// undoPin takes back an Add. It finds the pin by the Add's id, or by its object if the Add never
// arrived.
func undoPin(ctx context.Context, tx *user.Tx, r *Received, d doing) (bool, error) {
	if d.stored {
		return tx.Pins.RemoveBy(ctx, d.id, r.Actor.ID)
	}
	if !isFeatured(r, d.target) {
		return false, nil
	}
	return tx.Pins.Remove(ctx, r.Actor.ID, d.about)
}

// restorePin takes back a Remove that took effect: it pins the object again if it is still
// stored.
func restorePin(ctx context.Context, tx *user.Tx, r *Received, d doing) (bool, error) {
	if !d.stored || !isFeatured(r, d.target) {
		return false, nil
	}
	there, err := tx.Objects.Find(ctx, d.about)
	if err != nil || there == nil {
		return false, err
	}
	if own, err := isAuthor(r.Actor.ID, there); err != nil || !own {
		return false, err
	}
	return true, tx.Pins.Set(ctx, user.Pin{Actor: r.Actor.ID, Object: there.URI, Activity: r.Activity.ID}, r.Now)
}
