package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
)

// receiveReplyAnswer handles an Accept or Reject of an answer that the user wrote, by which
// GoToSocial tells that the author of the answered post approves of the answer or refuses it. It
// has no effect, but it is stored, so that clients see it.
func receiveReplyAnswer(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
	note, err := findLiving(ctx, tx, r.Activity.Object.ID)
	if err != nil || note == nil || !r.Mine(note.ID) || !note.InReplyTo.SameOrigin(r.Actor.ID) || !audience.Names(note.Addressing, r.Actor.ID) {
		return Effects{}, ignoredUnless(err)
	}
	return Effects{}, nil
}
