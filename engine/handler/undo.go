package handler

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// undo: an actor takes back what it did (ActivityPub §7.12). Only its own doings; one that has not arrived yet never will
// take effect.
func undo() Handler {
	return Handler{Check: checkUndo, Received: undone, Sent: unsent}
}

func checkUndo(a *vocab.Activity) error {
	o := a.Object
	if o.IsZero() {
		return fault.New(fault.Invalid, "the activity needs an object").At("/object")
	}
	if o.ID != "" && !o.ID.SameOrigin(a.Actor) {
		return fault.New(fault.Invalid, "an actor can only undo what it did").WithCode("foreign_object").At("/object/id")
	}
	by, err := o.Doc.Ref("actor")
	if err != nil {
		return err
	}
	if by.ID != "" && !by.ID.Same(a.Actor) {
		return fault.New(fault.Invalid, "an actor can only undo what it did").WithCode("foreign_object").At("/object/actor")
	}
	for _, name := range []string{"object", "target"} {
		if _, err := o.Doc.Ref(name); err != nil && !slices.Contains(lasting, o.Type()) {
			return fault.Wrap(fault.Invalid, "several things cannot be undone at once", err).At("/object/" + name)
		}
	}
	return nil
}

// doing is what is taken back.
type doing struct {
	id     vocab.ID // empty when the Undo leaves it out
	kind   string   // empty when nothing but the id is known
	about  vocab.ID
	target vocab.ID
	stored bool // kind, about and target are as it once arrived, not as the Undo says
	others bool // the id is that of another actor's activity; nothing else is known
}

// undone takes back what there is to take back. When there is nothing, only the id is remembered, and of a stranger not even
// that: an Undo goes to everybody who knows the actor, and is nobody's business but of those who have what it undoes.
func undone(ctx context.Context, tx Tx, r *Received) (Effects, error) {
	d, err := findDoing(ctx, tx, r)
	switch {
	case err != nil:
		return Effects{}, err
	case d.others:
		return Effects{TakenAway: d.id}, ErrIgnored
	case slices.Contains(lasting, d.kind):
		return Effects{}, ErrIgnored
	}
	var did bool
	switch d.kind {
	case "Follow":
		did, err = endFollow(ctx, tx, r, db.Follower, func(rel *db.Relationship) bool {
			return rel.Activity.Same(d.id) || !d.stored && (d.about.Same(r.Me) || d.about == "" && r.Named)
		})
	case "Accept":
		did, err = endFollow(ctx, tx, r, db.Following, func(rel *db.Relationship) bool {
			return rel.Activity.Same(d.about) || d.about == "" && (d.stored || r.Named)
		})
	case "Like", "Dislike", "Announce":
		did, err = unreact(ctx, tx, r.Actor.ID, d)
	case "Block":
		did, err = unblock(ctx, tx, r, d)
	case "Add":
		did, err = unpin(ctx, tx, r, d)
	case "Remove":
		did, err = repin(ctx, tx, r, d)
	}
	if err != nil {
		return Effects{}, err
	}
	e, err := r.disable(ctx, tx, d.id, did || d.stored)
	if err != nil {
		return Effects{}, err
	}
	e.Changed = did && (d.kind == "Follow" || d.kind == "Accept")
	if d.stored {
		return e, tx.RemoveActivity(ctx, r.own(d.id))
	}
	if !did {
		return e, ErrIgnored
	}
	return e, nil
}

// disable lets an activity of the sender's take no effect any more, if the user has to do with it or with the sender.
func (r *Received) disable(ctx context.Context, tx Tx, id vocab.ID, concerned bool) (Effects, error) {
	if id == "" {
		return Effects{}, nil
	}
	if !concerned {
		var err error
		if concerned, err = r.remembers(ctx, tx); err != nil {
			return Effects{}, err
		}
	}
	if !concerned {
		return Effects{TakenAway: id}, nil
	}
	_, err := tx.Claim(ctx, []db.Owned{r.own(id)})
	return Effects{Disabled: id, Remembered: true}, err
}

// remembers tells whether the user is to remember an id of the sender's that means nothing to it yet: one follows the
// other, or the user holds something of the sender's, for which there is room.
func (r *Received) remembers(ctx context.Context, tx Tx) (bool, error) {
	for _, kind := range []string{db.Following, db.Follower} {
		if rel, err := tx.Relationship(ctx, kind, r.Actor.ID); err != nil || rel != nil {
			return err == nil, err
		}
	}
	if !r.Remembers {
		return false, nil
	}
	return tx.HoldsOf(ctx, r.Actor.ID, r.Activity.ID)
}

// lasting are the types whose effect is not undone, but changed, deleted or answered anew.
var lasting = []string{"Create", "Update", "Delete", "Undo", "Reject", "Move", "Flag"}

// findDoing returns what is taken back: as it is stored here, else as the Undo embeds it.
func findDoing(ctx context.Context, tx Tx, r *Received) (doing, error) {
	o := r.Activity.Object
	if o.ID != "" {
		stored, err := tx.ActivityBy(ctx, r.own(o.ID))
		if err != nil {
			return doing{}, err
		}
		if stored != nil {
			d, err := vocab.ParseDoc(stored.Raw)
			if err != nil {
				return doing{}, fault.Wrap(fault.Internal, "a stored document cannot be read", err)
			}
			target, err := d.Ref("target")
			return doing{id: o.ID, kind: stored.Type, about: stored.Object, target: target.ID, stored: true}, err
		}
	}
	if o.ID != "" {
		if other, err := tx.Activity(ctx, o.ID); err != nil || other != nil {
			return doing{id: o.ID, others: other != nil}, err
		}
	}
	if slices.Contains(lasting, o.Type()) {
		return doing{kind: o.Type()}, nil
	}
	about, err := o.Doc.Ref("object")
	if err != nil {
		return doing{}, err
	}
	target, err := o.Doc.Ref("target")
	return doing{id: o.ID, kind: o.Type(), about: about.ID, target: target.ID}, err
}

// endFollow ends a follow if that is the one which is taken back: a late Undo must not end a newer one.
func endFollow(ctx context.Context, tx Tx, r *Received, kind string, is func(*db.Relationship) bool) (bool, error) {
	rel, err := tx.Relationship(ctx, kind, r.Actor.ID)
	if err != nil || rel == nil || !is(rel) {
		return false, err
	}
	return tx.EndRelationship(ctx, kind, r.Actor.ID)
}

// unreact removes a reaction: by the id of its activity, or, when that never arrived, by what it is about.
func unreact(ctx context.Context, tx Tx, actor vocab.ID, d doing) (bool, error) {
	if d.stored {
		return tx.RemoveReaction(ctx, d.id, actor)
	}
	there, err := tx.Reaction(ctx, d.about, reactionKind(d.kind), actor)
	if err != nil || there == nil || there.Type != d.kind {
		return false, err
	}
	if _, err := tx.RemoveReaction(ctx, there.Activity, actor); err != nil {
		return false, err
	}
	return true, tx.RemoveActivity(ctx, db.Owned{ID: there.Activity, Actor: actor})
}

// unblock forgets that the actor blocks the user, if that is the block which is taken back.
func unblock(ctx context.Context, tx Tx, r *Received, d doing) (bool, error) {
	b, err := tx.Block(ctx, db.Inbound, r.Actor.ID)
	if err != nil || b == nil || !b.Activity.Same(d.id) && (d.stored || !d.about.Same(r.Me)) {
		return false, err
	}
	return tx.RemoveBlock(ctx, db.Inbound, r.Actor.ID)
}

func reactionKind(activityType string) string {
	if activityType == "Announce" {
		return db.Announce
	}
	return db.Review
}

// unsent takes back what the user did. The Undo embeds it.
func unsent(ctx context.Context, tx Tx, s *Sent) error {
	id := s.Activity.Object.ID
	switch s.Activity.Object.Type() {
	case "Follow":
		_, err := tx.EndRelationship(ctx, db.Following, s.Target.ID)
		return err
	case "Like", "Dislike", "Announce":
		if _, err := tx.RemoveReaction(ctx, id, s.Actor.ID); err != nil {
			return err
		}
		return tx.RemoveActivity(ctx, db.Owned{ID: id, Actor: s.Actor.ID})
	case "Block":
		if _, err := tx.RemoveBlock(ctx, db.Outbound, s.Target.ID); err != nil {
			return err
		}
		return tx.RemoveActivity(ctx, db.Owned{ID: id, Actor: s.Actor.ID})
	}
	return nil
}
