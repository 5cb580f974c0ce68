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

// newLike returns the handler of Like: an actor likes an object. One review per actor and object;
// a new one takes the place of the old. With an emoji it is a reaction, as Misskey sends it, and
// no review.
func newLike(local *actor.Local) Handler {
	return newReview(local, vocab.Like)
}

// newDislike returns the handler of Dislike: an actor dislikes an object of a type that can be
// disliked.
func newDislike(local *actor.Local) Handler {
	return newReview(local, vocab.Dislike)
}

// newReview returns the handler of a reaction to an object that the user holds, that the actor may
// see and that takes this reaction. Other reactions are ignored, so that an actor cannot find out
// which objects exist.
func newReview(local *actor.Local, kind string) Handler {
	return Handler{
		Concern:     audience.Concern{Owner: true},
		Notifies:    NoticeOfOwn,
		Ordered:     true,
		ShowsObject: true,
		Emoji:       true,
		About:       objectID,
		Check:       checkObject,
		Undone:      undoReview,
		SentUndone:  unsendReaction,
		Received: func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
			o, err := findShown(ctx, tx, local, r, r.Activity.Object.ID)
			if err != nil || o == nil || !conversation.ManifestOf(o.Type).Takes(kind) {
				return Effects{}, ignoredUnless(err)
			}
			return Effects{}, tx.SetReaction(ctx, reactionOf(r.Activity, o.ID, r.Actor.ID), r.Now)
		},
		Sent: func(ctx context.Context, tx Tx, s *Sent) error {
			return tx.SetReaction(ctx, reactionOf(s.Activity, s.Activity.Object.ID, s.Actor.ID), s.Now)
		},
	}
}

// findShown returns the object that the user holds under an id, nil when there is none that the
// sender may see.
func findShown(ctx context.Context, tx Tx, local *actor.Local, r *Received, id vocab.ID) (*vocab.Object, error) {
	stored, err := tx.Object(ctx, id)
	if err != nil || stored == nil || stored.DeletedAt != nil {
		return nil, err
	}
	o, err := stored.Parse()
	if err != nil || o.Type == vocab.QuoteAuthorization { // nobody answers a stamp
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

// ByGroup reports whether an actor received an object of the user's as a member of a group.
func ByGroup(ctx context.Context, tx Tx, object, actor vocab.ID) (bool, error) {
	all, err := tx.Unnamed(ctx, object)
	return slices.ContainsFunc(all, func(r db.Unnamed) bool { return r.Actor.Same(actor) }), err
}

// Sees reports whether the addressing of an object of the user's lets the sender see it. Members
// of a group who received it are not meant: their answers are not for the user's followers.
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

// IsFollower reports whether an actor follows the user, who agreed.
func IsFollower(ctx context.Context, tx Tx, actor vocab.ID) (bool, error) {
	follower, err := tx.Relationship(ctx, db.Follower, actor)
	return follower != nil && follower.Status == db.Accepted, err
}

// undoReaction removes a reaction: by the id of its activity, or, when that never arrived, by its
// object.
func undoReaction(ctx context.Context, tx Tx, r *Received, d doing, kind, emoji string) (bool, error) {
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
