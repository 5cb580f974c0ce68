package handler

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newBlock returns the handler of Block: an actor wants nothing to do with another one
// (ActivityPub §6.9). Everything between the two ends, and an Undo does not bring it back. The
// step persist ends all later activities of a blocked actor.
func newBlock(local *actor.Local) Handler {
	return Handler{
		Concern:    audience.Concern{Holders: true, Owner: true},
		TakesAway:  true,
		Ends:       true,
		Ordered:    true,
		ChangesWho: true,
		Check:      checkObject,
		Undone:     undoBlock,
		SentUndone: func(ctx context.Context, tx Tx, s *Sent) error {
			if _, err := tx.RemoveBlock(ctx, db.Outbound, s.Target.ID); err != nil {
				return err
			}
			return tx.RemoveActivity(ctx, db.Owned{ID: s.Activity.Object.ID, Actor: s.Actor.ID})
		},
		Received: func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
			if !r.Activity.Object.ID.Same(r.Me) {
				return Effects{}, ErrIgnored
			}
			e := Effects{Unfollowed: true}
			for _, kind := range db.RelationshipTypes {
				ended, err := tx.EndRelationship(ctx, kind, r.Actor.ID)
				if err != nil {
					return e, err
				}
				e.Changed = e.Changed || ended
			}
			return e, tx.AddBlock(ctx, db.Block{Actor: r.Actor.ID, Direction: db.Inbound, Activity: r.Activity.ID}, r.Now)
		},
		Sent: func(ctx context.Context, tx Tx, s *Sent) error {
			if err := tx.AddBlock(ctx, db.Block{Actor: s.Target.ID, Direction: db.Outbound, Activity: s.Activity.ID}, s.Now); err != nil {
				return err
			}
			if err := tx.Withdraw(ctx, s.Target.ID, nil, nil, s.Now); err != nil {
				return err
			}
			if err := endFollows(ctx, tx, local, s); err != nil {
				return err
			}
			if err := endFriendships(ctx, sender{tx: tx, local: local, user: s.User, now: s.Now}, s.Target); err != nil {
				return err
			}
			objects, err := tx.ObjectsBy(ctx, s.Target.ID)
			if err != nil {
				return err
			}
			return tx.LeaveFeed(ctx, s.Target.ID, objects)
		},
	}
}

// endFollows ends the follows between the user and an actor, and tells the actor so. It need not
// be sent the Block.
func endFollows(ctx context.Context, tx Tx, local *actor.Local, s *Sent) error {
	out := sender{tx: tx, local: local, user: s.User, now: s.Now}
	following, err := tx.Relationship(ctx, db.Following, s.Target.ID)
	if err != nil {
		return err
	}
	if following != nil {
		if err := endFollowing(ctx, out, following, s.Target); err != nil {
			return err
		}
	}
	follower, err := tx.Relationship(ctx, db.Follower, s.Target.ID)
	if err != nil || follower == nil {
		return err
	}
	if _, err := tx.EndRelationship(ctx, db.Follower, s.Target.ID); err != nil {
		return err
	}
	written, err := Written(ctx, tx, db.Owned{ID: follower.Activity, Actor: follower.Actor})
	if err != nil {
		return err
	}
	return out.withSpelling(follower.Activity, written).sendAboutActivity(ctx, vocab.Reject, followDoc(follower.Activity, s.Target.ID, s.Actor.ID), s.Target)
}

// endFollowing ends the user's follow of an actor, and sends the Undo of it.
func endFollowing(ctx context.Context, out sender, rel *db.Relationship, from *vocab.Actor) error {
	if _, err := out.tx.EndRelationship(ctx, db.Following, rel.Actor); err != nil {
		return err
	}
	return out.sendAboutActivity(ctx, vocab.Undo, followDoc(rel.Activity, out.local.ID(out.user), rel.Actor), from)
}

// undoBlock forgets that the actor blocks the user, if the Undo is of that Block.
func undoBlock(ctx context.Context, tx Tx, r *Received, d doing) (bool, error) {
	b, err := tx.Block(ctx, db.Inbound, r.Actor.ID)
	if err != nil || b == nil || !b.Activity.Same(d.id) && (d.stored || !d.about.Same(r.Me)) {
		return false, err
	}
	return tx.RemoveBlock(ctx, db.Inbound, r.Actor.ID)
}
