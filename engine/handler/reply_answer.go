package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// receiveReplyAnswer handles an Accept or Reject of an answer that the user wrote. GoToSocial
// sends it when the author of the answered post approves of the answer or refuses it. The first of
// each has no effect, but it is stored, so that clients see it.
func receiveReplyAnswer(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
	note, err := tx.Objects.FindLiving(ctx, r.Activity.Object.ID)
	if err != nil || note == nil || !r.Mine(note.ID) || !audience.Names(note.Addressing, r.Actor.ID) {
		return Effects{}, ignoredUnless(err)
	}
	if mayAnswer, err := wroteAnswered(ctx, tx, note.InReplyTo, r.Actor.ID); err != nil || !mayAnswer {
		return Effects{}, ignoredUnless(err)
	}
	if isRepeat, err := tx.Activities.HasOther(ctx, r.Activity.Type, r.Activity.ID, r.Actor.ID, note.ID); err != nil || isRepeat {
		return Effects{}, ignoredUnless(err)
	}
	return Effects{}, nil
}

// wroteAnswered reports whether an actor may be the author of a post that the user answered. If the
// post is not stored, any actor of its server may be.
func wroteAnswered(ctx context.Context, tx *user.Tx, post, by vocab.ID) (bool, error) {
	answered, err := tx.Objects.FindLiving(ctx, post)
	if err != nil || answered == nil {
		return post.SameOrigin(by), err
	}
	return answered.AttributedTo.Same(by), nil
}
