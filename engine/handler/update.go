package handler

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// update: an author changed what it wrote; the whole object is replaced (ActivityPub §7.3). An older change never
// replaces a newer one. A poll without the time of a change only counts its votes. Or an actor changed itself.
func update() Handler {
	return Handler{
		Concern:     audience.Concern{Holders: true, Edit: true},
		Final:       true,
		Words:       true,
		Authored:    true,
		ShowsObject: true,
		About:       object,
		Check: func(a *vocab.Activity) error {
			if ofActor(a) {
				return nil
			}
			return checkAuthored(a)
		},
		Needs: func(a *vocab.Activity) []vocab.ID {
			if ofActor(a) {
				return []vocab.ID{a.Actor}
			}
			return needsUnlessEmbedded(a)
		},
		Received: func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
			if ofActor(r.Activity) {
				return Effects{}, updateActor(ctx, tx, r)
			}
			return Effects{}, updateObject(ctx, tx, r)
		},
		Sent: func(ctx context.Context, tx Tx, s *Sent) error {
			if ofActor(s.Activity) {
				return nil // the registry holds the user's profile
			}
			o, err := s.Activity.Embedded()
			if err != nil {
				return err
			}
			doc, readable := o.Stored()
			changed, err := tx.ReplaceObject(ctx, s.Object.URI, doc, readable, s.Now)
			if err == nil && !changed {
				return fault.New(fault.Conflict, "the object was changed or deleted meanwhile")
			}
			return err
		},
	}
}

// UpdatesItself tells whether an activity says that its actor changed.
func UpdatesItself(a *vocab.Activity) bool { return a.Type == vocab.Update && ofActor(a) }

// ofActor tells whether an actor updates itself.
func ofActor(a *vocab.Activity) bool {
	return a.Object.ID.Same(a.Actor) && (a.Object.Doc == nil || vocab.IsActorType(a.Object.Type()))
}

func updateObject(ctx context.Context, tx Tx, r *Received) error {
	o, err := authored(r)
	if err != nil {
		return err
	}
	stored, err := tx.Object(ctx, o.ID)
	if err != nil {
		return err
	}
	counts := o.Type == question && o.Updated.IsZero()
	if stored == nil && !counts {
		return foresee(ctx, tx, r, o)
	}
	if stored == nil {
		return ErrIgnored
	}
	before, err := stored.Parse()
	if err != nil || !before.AttributedTo.Same(r.Actor.ID) || !remainsFor(r, before, o) {
		return ignoredUnless(err)
	}
	if counts {
		return refreshPoll(ctx, tx, stored, o)
	}
	at := o.Updated
	if at.IsZero() {
		at = r.Activity.Published
	}
	doc, readable := o.Stored()
	changed, err := tx.ReplaceObject(ctx, o.ID, doc, readable, NotAfter(at, r.Now))
	if err != nil || !changed {
		return ignoredUnless(err)
	}
	return nil
}

// remainsFor tells whether the user, who holds an object, may have it as its author changes it.
func remainsFor(r *Received, before, o *vocab.Object) bool {
	after := audience.OfObject(o, r.Actor.Followers).With(r.Activity.Addressing)
	return audience.MayReplace(audience.OfObject(before, r.Actor.Followers), after, r.viewer())
}

// viewer returns how the user stands to the sender.
func (r *Received) viewer() audience.Viewer {
	v := audience.Viewer{ID: r.Me, Sent: r.Named}
	if r.Follows {
		v.Circles = []vocab.ID{r.Actor.Followers}
	}
	return v
}

// foresee stores a post of an actor that the user follows although its Create has not come: a server that delivers again
// what it could not may send the change first. The Create will find it here, and give it its place in the feed. What is
// for others alone came because others here have it.
func foresee(ctx context.Context, tx Tx, r *Received, o *vocab.Object) error {
	if !r.Follows || !audience.OfObject(o, r.Actor.Followers).MaySee(r.viewer()) {
		return ErrIgnored
	}
	added, err := tx.AddObject(ctx, Stored(o, r.Now))
	if err != nil || !added {
		return ignoredUnless(err)
	}
	return nil
}

// updateActor renews the user's copy of an actor that it follows or is followed by, or that is in a group: the copy says
// where posts go. What counts is not what the activity says but what the actor's own server serves, which Receive has
// asked for.
func updateActor(ctx context.Context, tx Tx, r *Received) error {
	for _, kind := range []string{db.Follower, db.Following} {
		rel, err := tx.Relationship(ctx, kind, r.Actor.ID)
		if err != nil {
			return err
		}
		if rel != nil {
			return tx.SaveActor(ctx, r.Actor, r.Now)
		}
	}
	if groups, err := tx.GroupsOf(ctx, r.Actor.ID); err != nil || len(groups) == 0 {
		return ignoredUnless(err)
	}
	return tx.SaveActor(ctx, r.Actor, r.Now)
}
