package handler

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newAccept returns the handler of Accept: an actor lets the user follow or quote it, or is friends
// with the user. It counts only as the answer to a Follow, Offer or QuoteRequest that the user sent
// to that very actor (ActivityPub §7.6). After a Reject only another one makes a new request.
func newAccept(local *actor.Local) Handler {
	return Handler{
		Concern:  audience.Concern{Owner: true},
		Notifies: NoticeAlways,
		Relates:  true,
		Answers:  true,
		Check:    checkAnswer,
		Needs:    needsStamp,
		Received: receiveAnswer(local, db.Accepted),
		Undone: func(ctx context.Context, tx Tx, r *Received, d doing) (bool, error) {
			ended, err := endFollow(ctx, tx, r, db.Following, func(rel *db.Relationship) bool {
				return rel.Activity.Same(d.about) || d.about == "" && (d.stored || r.Named)
			})
			if err != nil || ended {
				return ended, err
			}
			return endAnswered(ctx, tx, r, d.about)
		},
		Sent: func(ctx context.Context, tx Tx, s *Sent) error {
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
			rel.Status = db.Accepted
			return tx.SetRelationship(ctx, *rel, s.Now)
		},
	}
}

// newReject returns the handler of Reject: an actor does not, or no longer, let the user follow or
// quote it, or is no friend of the user's (ActivityPub §7.7).
func newReject(local *actor.Local) Handler {
	return Handler{
		Concern:    audience.Concern{Owner: true},
		Final:      true,
		Ends:       true,
		ChangesWho: true,
		Relates:    true,
		Answers:    true,
		Check:      checkAnswer,
		Received:   receiveAnswer(local, db.Rejected),
		Sent: func(ctx context.Context, tx Tx, s *Sent) error {
			if s.Request != "" {
				return tx.RemoveRequests(ctx, s.Request)
			}
			if s.Activity.Object.Type() == vocab.Offer {
				return rejectOffer(ctx, tx, s)
			}
			if _, err := tx.EndRelationship(ctx, db.Follower, s.Target.ID); err != nil {
				return err
			}
			groups, err := tx.GroupsOf(ctx, s.Target.ID)
			if err != nil {
				return err
			}
			return tx.Withdraw(ctx, s.Target.ID, []vocab.ID{s.Actor.Followers}, groups, s.Now)
		},
	}
}

func checkAnswer(a *vocab.Activity) error {
	if a.Object.IsZero() {
		return fault.New(fault.Invalid, "the activity needs an object").At("/object")
	}
	return nil
}

func receiveAnswer(local *actor.Local, status string) func(context.Context, Tx, *Received) (Effects, error) {
	return func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
		offer, err := findFriendship(ctx, tx, r.Actor.ID, db.Outbound, r.Activity.Object.ID)
		if err != nil {
			return Effects{}, err
		}
		if offer != nil {
			return receiveOfferAnswer(ctx, tx, r, *offer, status)
		}
		rel, err := tx.Relationship(ctx, db.Following, r.Actor.ID)
		if err == nil && (rel == nil || !isAnswerTo(r, rel)) {
			return receiveQuoteAnswer(ctx, tx, local, r, status)
		}
		if err != nil || !mayAnswer(rel, status) {
			return Effects{}, ignoredUnless(err)
		}
		accepted := status == db.Accepted
		e := Effects{Changed: rel.Status != status, Followed: accepted, Unfollowed: !accepted}
		rel.Status = status
		if err := tx.SaveActor(ctx, r.Actor, r.Now); err != nil {
			return e, err
		}
		return e, tx.SetRelationship(ctx, *rel, r.Now)
	}
}

// mayAnswer reports whether an answer with this status still counts. A Reject is final for its
// Follow: servers send again in no order, so an Accept that comes after it may be the older one.
func mayAnswer(rel *db.Relationship, status string) bool {
	return rel.Status != db.Rejected || status == db.Rejected
}

// isAnswerTo reports whether the object is the Follow that made rel. Servers that leave out its id
// name its actor and object.
func isAnswerTo(r *Received, rel *db.Relationship) bool {
	o := r.Activity.Object
	if o.ID != "" {
		return o.ID.Same(rel.Activity)
	}
	actor, err := o.Doc.Ref("actor")
	if err != nil {
		return false
	}
	object, err := o.Doc.Ref("object")
	return err == nil && o.Type() == vocab.Follow && actor.ID.Same(r.Me) && object.ID.Same(r.Actor.ID)
}

// findAnswered returns the relationship that the user accepts: the actor's Offer, if the Accept
// names one, else its Follow.
func findAnswered(ctx context.Context, tx Tx, s *Sent) (*db.Relationship, error) {
	if s.Activity.Object.Type() == vocab.Offer {
		return findFriendship(ctx, tx, s.Target.ID, db.Inbound, s.Activity.Object.ID)
	}
	return tx.Relationship(ctx, db.Follower, s.Target.ID)
}

// rejectOffer ends the friendship that an actor's Offer made or asks for.
func rejectOffer(ctx context.Context, tx Tx, s *Sent) error {
	_, err := endFriendship(ctx, tx, s.Target.ID, db.Inbound, s.Activity.Object.ID)
	return err
}

// receiveOfferAnswer makes the user's Offer a friendship, or ends it: after a Reject there is
// nothing that an Accept could answer.
func receiveOfferAnswer(ctx context.Context, tx Tx, r *Received, offer db.Relationship, status string) (Effects, error) {
	if offer.Status == status {
		return Effects{}, ErrIgnored
	}
	e := Effects{Changed: true}
	if status == db.Rejected {
		_, err := tx.EndRelationship(ctx, offer.Type, offer.Actor)
		return e, err
	}
	if err := tx.SaveActor(ctx, r.Actor, r.Now); err != nil {
		return e, err
	}
	offer.Status = status
	return e, tx.SetRelationship(ctx, offer, r.Now)
}

// endAnswered ends the friendship that began when an actor accepted the user's Offer.
func endAnswered(ctx context.Context, tx Tx, r *Received, offer vocab.ID) (bool, error) {
	rel, err := findFriendship(ctx, tx, r.Actor.ID, db.Outbound, offer)
	if err != nil || rel == nil || rel.Status != db.Accepted {
		return false, err
	}
	return tx.EndRelationship(ctx, rel.Type, rel.Actor)
}
