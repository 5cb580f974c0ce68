package handler

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// block: an actor wants nothing to do with another one (ActivityPub §6.9). Whoever blocks, the follows between the two
// end, and an Undo does not bring them back. What a blocked actor does later never gets past persist.
func block(local *actor.Local) Handler {
	return Handler{
		Concern:    audience.Concern{Holders: true, Owner: true},
		TakesAway:  true,
		Ends:       true,
		Ordered:    true,
		ChangesWho: true,
		Check:      checkObject,
		Undone:     unblock,
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
			for _, kind := range []string{db.Follower, db.Following} {
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
			if err := part(ctx, tx, local, s); err != nil {
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

// part ends the follows between the user and an actor, and tells the actor, which need not be shown a Block.
func part(ctx context.Context, tx Tx, local *actor.Local, s *Sent) error {
	out := sender{tx: tx, local: local, user: s.User, now: s.Now}
	following, err := tx.Relationship(ctx, db.Following, s.Target.ID)
	if err != nil {
		return err
	}
	if following != nil {
		if err := unfollow(ctx, out, following, s.Target); err != nil {
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
	return out.spelled(follower.Activity, written).send(ctx, vocab.Reject, followDoc(follower.Activity, s.Target.ID, s.Actor.ID), s.Target)
}

// unfollow ends that the user follows an actor, and takes the Follow back.
func unfollow(ctx context.Context, out sender, rel *db.Relationship, from *vocab.Actor) error {
	if _, err := out.tx.EndRelationship(ctx, db.Following, rel.Actor); err != nil {
		return err
	}
	return out.send(ctx, vocab.Undo, followDoc(rel.Activity, out.local.ID(out.user), rel.Actor), from)
}

// unblock forgets that the actor blocks the user, if that is the block which is taken back.
func unblock(ctx context.Context, tx Tx, r *Received, d doing) (bool, error) {
	b, err := tx.Block(ctx, db.Inbound, r.Actor.ID)
	if err != nil || b == nil || !b.Activity.Same(d.id) && (d.stored || !d.about.Same(r.Me)) {
		return false, err
	}
	return tx.RemoveBlock(ctx, db.Inbound, r.Actor.ID)
}
