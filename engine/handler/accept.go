package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newAccept returns the handler of Accept: an actor lets the user follow or quote it, or agrees to
// be friends. An Accept counts only as the answer to a Follow, Offer or QuoteRequest that the user
// sent to that very actor (ActivityPub §7.6). An Accept that comes after a Reject of the same
// request has no effect.
func newAccept(local *actor.Local) Handler {
	return Handler{
		Concern:    audience.Concern{Owner: true},
		Notifies:   NoticeAlways,
		ChangesWho: true,
		Relates:    true,
		Answers:    true,
		Check:      checkAnswer,
		Needs:      needsStamp,
		Received:   receiveAnswer(local, user.Accepted),
		Undone: func(ctx context.Context, tx *user.Tx, r *Received, d doing) (bool, error) {
			again, err := isAcceptedAgain(ctx, tx, r, d)
			if err != nil {
				return false, err
			}
			ended, err := endFollow(ctx, tx, r, user.Following, func(rel *user.Relationship) bool {
				return again || rel.Activity.Same(d.about) || d.about == "" && (d.stored || r.Named)
			})
			if err != nil || ended {
				return ended, err
			}
			return endAnswered(ctx, tx, r, d.about)
		},
		Sent: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			if s.Request != "" {
				return acceptLetters(ctx, tx, s)
			}
			rel, err := findAnswered(ctx, tx, s)
			if err != nil {
				return err
			}
			if rel == nil {
				return fault.New(fault.Conflict, "the actor does not ask any more")
			}
			rel.Status = user.Accepted
			return tx.Relationships.Set(ctx, *rel, s.Now)
		},
	}
}

// isAcceptedAgain reports whether the stored Accept d came again, under the same id, for the user's
// present Follow of the sender. No second row says so, but the id of that version is claimed.
func isAcceptedAgain(ctx context.Context, tx *user.Tx, r *Received, d doing) (bool, error) {
	rel, err := tx.Relationships.Find(ctx, user.Following, r.Actor.ID)
	if err != nil || rel == nil || !d.stored || rel.Activity.Same(d.about) {
		return false, err
	}
	version := []user.Owned{r.own(answerVersion(d.id, vocab.Accept, rel.Activity))}
	free, err := tx.Activities.Claim(ctx, version)
	if err != nil || len(free) == 0 {
		return err == nil, err
	}
	return false, tx.Activities.Unclaim(ctx, version)
}

func checkAnswer(a *vocab.Activity) error {
	if a.Object.IsZero() {
		return fault.New(fault.Invalid, "the activity needs an object").At("/object")
	}
	return nil
}

func receiveAnswer(local *actor.Local, status string) func(context.Context, *user.Tx, *Received) (Effects, error) {
	return func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
		offer, err := findFriendship(ctx, tx, r.Actor.ID, user.Outbound, r.Activity.Object.ID)
		if err != nil {
			return Effects{}, err
		}
		if offer != nil {
			return receiveOfferAnswer(ctx, tx, r, *offer, status)
		}
		rel, err := tx.Relationships.Find(ctx, user.Following, r.Actor.ID)
		if err == nil && (rel == nil || !isAnswerTo(r, rel, status)) {
			return receiveQuoteAnswer(ctx, tx, local, r, status)
		}
		if err != nil || !mayAnswer(rel, status) {
			return Effects{}, ignoredUnless(err)
		}
		accepted := status == user.Accepted
		e := Effects{Changed: rel.Status != status, Followed: accepted, Unfollowed: !accepted}
		rel.Status = status
		if err := tx.Actors.Save(ctx, r.Actor, r.Now); err != nil {
			return e, err
		}
		return e, tx.Relationships.Set(ctx, *rel, r.Now)
	}
}

// mayAnswer reports whether an answer with this status still counts. A Reject is final for its
// Follow: servers retry deliveries in any order, so an Accept that arrives after the Reject may
// be the older one.
func mayAnswer(rel *user.Relationship, status string) bool {
	return rel.Status != user.Rejected || status == user.Rejected
}

// isAnswerTo reports whether the answer's object is the Follow that made the relationship rel. It
// compares the ids, except in three cases in which it compares the actor and object of the Follow.
// In the first case, the answer leaves out the id of the Follow. In the second case, a Reject
// embeds a Follow whose id is not on the user's server, because Misskey removes a follower by such
// a Reject. In the third case, an Accept embeds such a Follow while the user's Follow of the sender
// is pending. Mastodon reads such an Accept in the same way, so some servers rely on it.
func isAnswerTo(r *Received, rel *user.Relationship, status string) bool {
	o := r.Activity.Object
	mayBeRenamed := status == user.Rejected || rel.Status == user.Pending
	isRenamed := mayBeRenamed && o.Doc != nil && !o.ID.SameOrigin(r.Me)
	if o.ID != "" && !isRenamed {
		return o.ID.Same(rel.Activity)
	}
	actor, err := o.Doc.Ref("actor")
	if err != nil {
		return false
	}
	object, err := o.Doc.Ref("object")
	return err == nil && o.Type() == vocab.Follow && actor.ID.Same(r.Me) && object.ID.Same(r.Actor.ID)
}

// findAnswered returns the relationship that the user accepts. If the Accept names an Offer, the
// relationship is that of the actor's Offer. Otherwise it is that of the actor's Follow.
func findAnswered(ctx context.Context, tx *user.Tx, s *Sent) (*user.Relationship, error) {
	if s.Activity.Object.Type() == vocab.Offer {
		return findFriendship(ctx, tx, s.Target.ID, user.Inbound, s.Activity.Object.ID)
	}
	return tx.Relationships.Find(ctx, user.Follower, s.Target.ID)
}

// receiveOfferAnswer turns the user's Offer into a friendship, or removes the relationship if the
// answer is a Reject. So an Accept that arrives after a Reject finds no relationship.
func receiveOfferAnswer(ctx context.Context, tx *user.Tx, r *Received, offer user.Relationship, status string) (Effects, error) {
	if offer.Status == status {
		return Effects{}, ErrIgnored
	}
	e := Effects{Changed: true}
	if status == user.Rejected {
		_, err := tx.Relationships.End(ctx, offer.Type, offer.Actor, r.Now)
		return e, err
	}
	if err := tx.Actors.Save(ctx, r.Actor, r.Now); err != nil {
		return e, err
	}
	offer.Status = status
	return e, tx.Relationships.Set(ctx, offer, r.Now)
}

// endAnswered ends the friendship that an actor made by accepting the user's Offer. It reports
// whether there was one.
func endAnswered(ctx context.Context, tx *user.Tx, r *Received, offer vocab.ID) (bool, error) {
	rel, err := findFriendship(ctx, tx, r.Actor.ID, user.Outbound, offer)
	if err != nil || rel == nil || rel.Status != user.Accepted {
		return false, err
	}
	return tx.Relationships.End(ctx, rel.Type, rel.Actor, r.Now)
}
