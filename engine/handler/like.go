package handler

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/vocab"
)

// like: an actor likes an object. One review per actor and object; a new one takes the place of
// the old. With an emoji it is a reaction, as Misskey sends it, and no review.
func like(local *actor.Local) Handler {
	return review(local, func(*vocab.Object) bool { return true })
}

// dislike: an actor dislikes an object of a type that can be disliked.
func dislike(local *actor.Local) Handler {
	return review(local, func(o *vocab.Object) bool { return conversation.ManifestOf(o.Type).Reviewable })
}

// review counts a reaction to an object that is here, that the actor may see and that takes this
// reaction. Others are ignored, which tells nobody what exists.
func review(local *actor.Local, takes func(*vocab.Object) bool) Handler {
	return Handler{
		Concern:     audience.Concern{Owner: true},
		Notifies:    NoticeOfOwn,
		Ordered:     true,
		ShowsObject: true,
		Emoji:       true,
		About:       object,
		Check:       checkObject,
		Undone:      unreview,
		SentUndone:  unsendReaction,
		Received: func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
			o, err := shown(ctx, tx, local, r, r.Activity.Object.ID)
			if err != nil || o == nil || !takes(o) {
				return Effects{}, ignoredUnless(err)
			}
			return Effects{}, tx.SetReaction(ctx, reactionOf(r.Activity, o.ID, r.Actor.ID), r.Now)
		},
		Sent: func(ctx context.Context, tx Tx, s *Sent) error {
			return tx.SetReaction(ctx, reactionOf(s.Activity, s.Activity.Object.ID, s.Actor.ID), s.Now)
		},
	}
}

// shown returns what the user holds under an id, nil when there is nothing that the sender may
// see.
func shown(ctx context.Context, tx Tx, local *actor.Local, r *Received, id vocab.ID) (*vocab.Object, error) {
	stored, err := tx.Object(ctx, id)
	if err != nil || stored == nil || stored.DeletedAt != nil {
		return nil, err
	}
	o, err := stored.Parse()
	if err != nil {
		return nil, err
	}
	may, err := Sees(ctx, tx, local, r, o)
	if err == nil && !may {
		may, err = ByGroup(ctx, tx, o.ID, r.Actor.ID)
	}
	if err != nil || !may {
		return nil, err
	}
	return o, nil
}

// ByGroup tells whether an object of the user's was for an actor by a group.
func ByGroup(ctx context.Context, tx Tx, object, actor vocab.ID) (bool, error) {
	all, err := tx.Unnamed(ctx, object)
	return slices.ContainsFunc(all, func(r db.Unnamed) bool { return r.Actor.Same(actor) }), err
}

// Sees tells whether the sender was allowed to see an object of the user's as its addressing says.
// Who got it by a group is not among those: what it answers is not for the user's followers.
func Sees(ctx context.Context, tx Tx, local *actor.Local, r *Received, o *vocab.Object) (bool, error) {
	follows, err := IsFollower(ctx, tx, r.Actor.ID)
	if err != nil {
		return false, err
	}
	viewer := audience.Viewer{ID: r.Actor.ID}
	if follows {
		viewer.Circles = []vocab.ID{local.Followers(r.User)}
	}
	return audience.OfObject(o, local.Followers(r.User)).MaySee(viewer), nil
}

// IsFollower tells whether an actor follows the user, who agreed.
func IsFollower(ctx context.Context, tx Tx, actor vocab.ID) (bool, error) {
	follower, err := tx.Relationship(ctx, db.Follower, actor)
	return follower != nil && follower.Status == db.Accepted, err
}

// unreact removes a reaction: by the id of its activity, or, when that never arrived, by what it
// is about.
func unreact(ctx context.Context, tx Tx, r *Received, d doing, kind, emoji string) (bool, error) {
	if d.stored {
		return tx.RemoveReaction(ctx, d.id, r.Actor.ID)
	}
	there, err := tx.Reaction(ctx, db.Reaction{Object: d.about, Actor: r.Actor.ID, Kind: kind, Emoji: emoji})
	if err != nil || there == nil || there.Type != d.kind {
		return false, err
	}
	if _, err := tx.RemoveReaction(ctx, there.Activity, r.Actor.ID); err != nil {
		return false, err
	}
	return true, tx.RemoveActivity(ctx, db.Owned{ID: there.Activity, Actor: r.Actor.ID})
}

// unsendReaction takes back a reaction of the user's.
func unsendReaction(ctx context.Context, tx Tx, s *Sent) error {
	id := s.Activity.Object.ID
	if _, err := tx.RemoveReaction(ctx, id, s.Actor.ID); err != nil {
		return err
	}
	return tx.RemoveActivity(ctx, db.Owned{ID: id, Actor: s.Actor.ID})
}
