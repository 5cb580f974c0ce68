package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newReject returns the handler of Reject: an actor refuses the user's request to follow or
// quote it or to be friends, or withdraws an earlier consent (ActivityPub §7.7).
func newReject(local *actor.Local) Handler {
	return Handler{
		Concern:    audience.Concern{Owner: true},
		Final:      true,
		Ends:       true,
		ChangesWho: true,
		Relates:    true,
		Answers:    true,
		Check:      checkAnswer,
		Received:   receiveAnswer(local, user.Rejected),
		Sent: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			if s.Request != "" {
				return tx.Requests.Remove(ctx, s.Request)
			}
			if s.Activity.Object.Type() == vocab.Offer {
				return rejectOffer(ctx, tx, s)
			}
			if _, err := tx.Relationships.End(ctx, user.Follower, s.Target.ID, s.Now); err != nil {
				return err
			}
			groups, err := tx.Groups.ListOf(ctx, s.Target.ID)
			if err != nil {
				return err
			}
			return tx.Deliveries.Withdraw(ctx, s.Target.ID, []vocab.ID{s.Actor.Followers}, groups, s.Now)
		},
	}
}

// rejectOffer ends the friendship that an actor's Offer made or asks for.
func rejectOffer(ctx context.Context, tx *user.Tx, s *Sent) error {
	_, err := endFriendship(ctx, tx, s.Target.ID, user.Inbound, s.Activity.Object.ID, s.Now)
	return err
}
