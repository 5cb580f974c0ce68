package handler

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Pixelfed, Wafrn, Takahē and PeerTube send every Follow of one account by another under the same
// id, and Pixelfed and Wafrn every Undo of it. Such an activity takes effect again if it cannot be
// an old one that merely arrives once more: its actor has signed the request itself, and later
// than the relationship has changed.

// acceptedAgainAfter is the time after which a follower that sends its Follow again gets another
// Accept, because it may not have got the earlier one.
const acceptedAgainAfter = time.Hour

// ComesAgain reports whether a received activity takes effect although its id is in use.
func (r *Registry) ComesAgain(ctx context.Context, tx *user.Tx, x *Received) (bool, error) {
	again := r.Lookup(x.Activity).Again
	if again == nil || x.Signed.IsZero() || len(x.Forwarders) > 0 {
		return false, nil
	}
	return again(ctx, tx, x)
}

// isSignedAfter reports whether the request was signed after a time. Signatures have whole
// seconds.
func (r *Received) isSignedAfter(at time.Time) bool { return r.Signed.After(at.Truncate(time.Second)) }

// isFollowAgain reports whether a Follow takes effect again: as a new one if there is no
// relationship, and to send another Accept if the actor follows the user by this very Follow.
func isFollowAgain(ctx context.Context, tx *user.Tx, r *Received) (bool, error) {
	if !r.Activity.Object.ID.Same(r.Me) {
		return false, nil
	}
	rel, err := tx.Relationships.Find(ctx, user.Follower, r.Actor.ID)
	switch {
	case err != nil:
		return false, err
	case rel == nil:
		return hasFollowEnded(ctx, tx, r)
	case rel.Status != user.Accepted || !rel.Activity.Same(r.Activity.ID):
		return false, nil
	}
	sent, err := tx.Activities.Latest(ctx, vocab.Accept, r.Me, r.Activity.ID)
	return err == nil && (sent == nil || r.Applied.Sub(sent.Published) >= acceptedAgainAfter), err
}

// hasFollowEnded reports whether the Follow had an effect that ended before the request was
// signed. A Follow whose id was merely claimed by its Undo never had an effect. Its end is the
// Undo, the user's Reject or the actor's Block.
func hasFollowEnded(ctx context.Context, tx *user.Tx, r *Received) (bool, error) {
	follow := r.Activity.ID
	stored, err := tx.Activities.FindBy(ctx, r.own(follow))
	if err != nil {
		return false, err
	}
	had := stored != nil
	for _, end := range []user.Activity{
		{Type: vocab.Undo, Actor: r.Actor.ID, Object: follow},
		{Type: vocab.Reject, Actor: r.Me, Object: follow},
		{Type: vocab.Block, Actor: r.Actor.ID, Object: r.Me},
	} {
		ended, err := tx.Activities.Latest(ctx, end.Type, end.Actor, end.Object)
		if err != nil || ended != nil && !r.isSignedAfter(ended.Published) {
			return false, err
		}
		had = had || ended != nil && end.Type == vocab.Undo
	}
	return had, nil
}

// isUndoAgain reports whether an Undo takes effect again, because the actor follows the user by
// the Follow that it names.
func isUndoAgain(ctx context.Context, tx *user.Tx, r *Received) (bool, error) {
	rel, err := tx.Relationships.Find(ctx, user.Follower, r.Actor.ID)
	if err != nil || rel == nil || r.Activity.Object.ID == "" {
		return false, err
	}
	return rel.Activity.Same(r.Activity.Object.ID) && r.isSignedAfter(rel.CreatedAt), nil
}
