package handler

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Pixelfed, Wafrn, Takahē and PeerTube send every Follow of one account by another under the same
// id, and Pixelfed and Wafrn every Undo of it. NodeBB and Wafrn do so with every Like of an object,
// NodeBB with every Dislike and boost, and both with some Undos. Such an activity takes effect
// again if it cannot be an old one that merely arrives once more: its actor has signed the request
// itself, and later than the relationship or reaction has changed.

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

// endTime returns the end of a follow or reaction that the activity ends: when it arrived, or when
// it was signed if that is later, since a server's clock may be fast.
func (r *Received) endTime() time.Time {
	if r.Signed.After(r.Now) {
		return r.Signed
	}
	return r.Now
}

// readmitFollow lets a Follow that arrives again take effect again, and reports whether it does.
// If the actor no longer follows the user, the Follow makes a new follow. Then the request must
// be signed after the end of the follow that the same Follow made earlier. If only an Undo of the
// Follow came earlier, there is no such end, and the Follow takes no effect. If the actor follows
// the user by this same Follow, another Accept is sent, unless one was sent within
// acceptedAgainAfter.
func readmitFollow(ctx context.Context, tx *user.Tx, r *Received) (bool, error) {
	if !r.Activity.Object.ID.Same(r.Me) {
		return false, nil
	}
	rel, err := tx.Relationships.Find(ctx, user.Follower, r.Actor.ID)
	switch {
	case err != nil:
		return false, err
	case rel == nil:
		return r.readmitEnded(ctx, tx)
	case rel.Status != user.Accepted || !rel.Activity.Same(r.Activity.ID):
		return false, nil
	}
	sent, err := tx.Activities.Latest(ctx, vocab.Accept, r.Me, r.Activity.ID)
	return err == nil && (sent == nil || r.Applied.Sub(sent.Published) >= acceptedAgainAfter), err
}

// readmitReaction lets a reaction that arrives again take effect again, because the one that it
// made earlier has ended.
func readmitReaction(ctx context.Context, tx *user.Tx, r *Received) (bool, error) {
	began, err := tx.Reactions.Began(ctx, r.own(r.Activity.ID))
	if err != nil || !began.IsZero() {
		return false, err
	}
	return r.readmitEnded(ctx, tx)
}

// readmitUndo lets an Undo take effect again if there is something to undo: the actor follows the
// user by the Follow that the Undo names, or the reaction that it names stands. The request must
// have been signed after that Follow or reaction began, and after its earlier end.
func readmitUndo(ctx context.Context, tx *user.Tx, r *Received) (bool, error) {
	id := r.Activity.Object.ID
	if id == "" {
		return false, nil
	}
	rel, err := tx.Relationships.Find(ctx, user.Follower, r.Actor.ID)
	if err != nil {
		return false, err
	}
	var began time.Time
	if rel != nil && rel.Activity.Same(id) {
		began = rel.CreatedAt
	} else if began, err = tx.Reactions.Began(ctx, r.own(id)); err != nil {
		return false, err
	}
	if began.IsZero() || !r.isSignedAfter(began) {
		return false, nil
	}
	ended, err := tx.Activities.FindEnd(ctx, r.own(id))
	if err != nil {
		return false, err
	}
	return r.readmitAfter(ctx, tx, ended)
}

// readmitEnded lets the activity take effect again if its request was signed after the end of what
// the activity did before. If that never ended, the activity takes no effect.
func (r *Received) readmitEnded(ctx context.Context, tx *user.Tx) (bool, error) {
	ended, err := tx.Activities.FindEnd(ctx, r.own(r.Activity.ID))
	if err != nil || ended.IsZero() {
		return false, err
	}
	return r.readmitAfter(ctx, tx, ended)
}

// readmitAfter lets the activity take effect again if its request was signed after a time. Then it
// removes the row of the earlier activity with this id, so that this one is stored as it came.
func (r *Received) readmitAfter(ctx context.Context, tx *user.Tx, at time.Time) (bool, error) {
	if !r.isSignedAfter(at) {
		return false, nil
	}
	return true, tx.Activities.Remove(ctx, r.own(r.Activity.ID))
}
