package handler

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newLike returns the handler of Like: an actor likes an object. An actor has one review of an
// object, a Like or a Dislike; a new one replaces the old one. A Like with an emoji, as Misskey
// sends it, is an emoji reaction and not a review.
func newLike(local *actor.Local) Handler {
	return newReview(local, vocab.Like)
}

// newDislike returns the handler of Dislike: an actor dislikes an object of a type that can be
// disliked.
func newDislike(local *actor.Local) Handler {
	return newReview(local, vocab.Dislike)
}

// newReview returns the handler of a reaction. The reaction takes effect if the user has stored
// the object, the actor may see the object, and takesReview permits the reaction. Other
// reactions are ignored, so that an actor cannot find out which objects exist.
func newReview(local *actor.Local, kind string) Handler {
	return Handler{
		Concern:     audience.Concern{Owner: true},
		Notifies:    NoticeOfOwn,
		Ordered:     true,
		ShowsObject: true,
		Emoji:       true,
		About:       objectID,
		Check:       checkObject,
		Again:       readmitReaction,
		Undone:      undoReview,
		SentUndone:  unsendReaction,
		Received: func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
			o, err := findShown(ctx, tx, local.Addresses, r, r.Activity.Object.ID)
			if err != nil || o == nil || !takesReview(o, kind) {
				return Effects{}, ignoredUnless(err)
			}
			reaction := reactionOf(r.Activity, o.ID, r.Actor.ID)
			if err := endReplaced(ctx, tx, r, reaction); err != nil {
				return Effects{}, err
			}
			return Effects{}, tx.Reactions.Set(ctx, reaction, r.Now)
		},
		Sent: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			return tx.Reactions.Set(ctx, reactionOf(s.Activity, s.Activity.Object.ID, s.Actor.ID), s.Now)
		},
	}
}

// takesReview reports whether an object can be reviewed by an activity of this type. The type of
// the object permits it, or the object is in a community (FEP-1b12), whose members like and dislike
// posts of all types. The community's Announce of such a review counts, too.
func takesReview(o *vocab.Object, kind string) bool {
	return conversation.ManifestOf(o.Type).Takes(kind) || kind == vocab.Dislike && len(audience.OfObject(o, "").Communities()) > 0
}

// reactionOf returns the reaction to an object that a Like, Dislike or EmojiReact makes.
func reactionOf(a *vocab.Activity, object, actor vocab.ID) user.Reaction {
	r := user.Reaction{Object: object, Actor: actor, Kind: user.Review, Type: a.Type, Activity: a.ID}
	if emoji := emojiOf(a.Doc); emoji != "" && a.Type != vocab.Dislike {
		r.Kind, r.Emoji = user.Emoji, emoji
	}
	return r
}

// endReplaced ends the earlier review of the sender that a new one replaces. An emoji reaction
// replaces only the same one.
func endReplaced(ctx context.Context, tx *user.Tx, r *Received, by user.Reaction) error {
	if by.Kind != user.Review {
		return nil
	}
	before, err := tx.Reactions.Find(ctx, by)
	if err != nil || before == nil {
		return err
	}
	_, err = tx.Reactions.End(ctx, r.own(before.Activity), r.endTime())
	return err
}

// findShown returns the stored object with the given id. It returns nil if there is no such
// object, if the object is a stamp, or if the sender may not see it.
func findShown(ctx context.Context, tx *user.Tx, local actor.Addresses, r *Received, id vocab.ID) (*vocab.Object, error) {
	o, err := tx.Objects.FindLiving(ctx, id)
	if err != nil || o == nil || o.Type == vocab.QuoteAuthorization { // no activity is about a stamp
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

// ByGroup reports whether an actor received an object of the user as a member of one of the
// user's groups.
func ByGroup(ctx context.Context, tx *user.Tx, object, actor vocab.ID) (bool, error) {
	all, err := tx.Groups.ListUnnamed(ctx, object)
	return slices.ContainsFunc(all, func(r user.Unnamed) bool { return r.Actor.Same(actor) }), err
}

// Sees reports whether the addressing of a stored object lets the sender see the object. It
// returns false for a sender that received the object only as a member of one of the user's groups
// (see ByGroup), because answers of such members are not forwarded to the user's followers.
func Sees(ctx context.Context, tx *user.Tx, local actor.Addresses, r *Received, o *vocab.Object) (bool, error) {
	follows, err := tx.Relationships.IsAccepted(ctx, user.Follower, r.Actor.ID)
	if err != nil {
		return false, err
	}
	viewer := audience.Viewer{ID: r.Actor.ID}
	if follows {
		viewer.Circles = []vocab.ID{local.Followers(r.User)}
	}
	return audience.OfObject(o, local.Followers(r.User)).MaySee(viewer), nil
}

// undoReview takes back a Like, Dislike or EmojiReact. It finds the reaction by the id of the
// activity, or by its object and emoji if the activity never arrived.
func undoReview(ctx context.Context, tx *user.Tx, r *Received, d doing) (bool, error) {
	kind, emoji := user.Review, emojiOf(r.Activity.Object.Doc)
	if emoji != "" && d.kind != vocab.Dislike {
		kind = user.Emoji
	}
	return undoReaction(ctx, tx, r, d, kind, emoji)
}

// undoReaction removes a reaction of the sender. It finds the reaction by the id of its
// activity, or by object, kind and emoji if the activity never arrived.
func undoReaction(ctx context.Context, tx *user.Tx, r *Received, d doing, kind, emoji string) (bool, error) {
	if d.stored {
		return tx.Reactions.End(ctx, r.own(d.id), r.endTime())
	}
	there, err := tx.Reactions.Find(ctx, user.Reaction{Object: d.about, Actor: r.Actor.ID, Kind: kind, Emoji: emoji})
	if err != nil || there == nil || !mayTakeBack(d.kind, there) {
		return false, err
	}
	if _, err := tx.Reactions.End(ctx, r.own(there.Activity), r.endTime()); err != nil {
		return false, err
	}
	return true, tx.Activities.Remove(ctx, user.Owned{ID: there.Activity, Actor: r.Actor.ID})
}

// mayTakeBack reports whether the Undo of a reaction of the type kind takes a stored reaction back.
// Lemmy says Like in the Undo of a Dislike, too, and an actor has one review of an object.
func mayTakeBack(kind string, there *user.Reaction) bool {
	isReview := kind == vocab.Like || kind == vocab.Dislike
	return there.Type == kind || there.Kind == user.Review && isReview
}

// unsendReaction takes back a reaction that the user sent.
func unsendReaction(ctx context.Context, tx *user.Tx, s *Sent) error {
	return removeReaction(ctx, tx, user.Owned{ID: s.Activity.Object.ID, Actor: s.Actor.ID})
}

// removeReaction removes the reaction that an activity made, and the activity.
func removeReaction(ctx context.Context, tx *user.Tx, by user.Owned) error {
	if _, err := tx.Reactions.Remove(ctx, by.ID, by.Actor); err != nil {
		return err
	}
	return tx.Activities.Remove(ctx, by)
}
