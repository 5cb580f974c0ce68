package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newBlock returns the handler of Block: an actor wants nothing to do with another one
// (ActivityPub §6.9). A Block ends all relationships between the two, and an Undo does not restore
// them. The step persist drops later activities of an actor that the user blocks, except those
// with TakesAway or Apart (see Handler). If an actor that blocks the user sends another Block, the
// id of the new Block replaces that of the earlier one. But the new Block is stored as an activity
// only if it ends a relationship, so that no actor fills the database with Blocks.
func newBlock(local *actor.Local) Handler {
	return Handler{
		Concern:    audience.Concern{Holders: true, Owner: true},
		TakesAway:  true,
		Ends:       true,
		Ordered:    true,
		ChangesWho: true,
		Check:      checkObject,
		Undone:     undoBlock,
		SentUndone: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			if _, err := tx.Blocks.Remove(ctx, user.Outbound, s.Target.ID); err != nil {
				return err
			}
			return tx.Activities.Remove(ctx, user.Owned{ID: s.Activity.Object.ID, Actor: s.Actor.ID})
		},
		Received: func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
			if !r.Activity.Object.ID.Same(r.Me) || isBan(r.Activity.Target.ID, r.Me) {
				return Effects{}, ErrIgnored
			}
			ended, err := tx.Relationships.EndAll(ctx, r.Actor.ID, r.endTime())
			if err != nil {
				return Effects{}, err
			}
			e := Effects{Unfollowed: true, Changed: ended}
			before, err := tx.Blocks.Find(ctx, user.Inbound, r.Actor.ID)
			if err != nil {
				return e, err
			}
			err = tx.Blocks.Add(ctx, user.Block{Actor: r.Actor.ID, Direction: user.Inbound, Activity: r.Activity.ID}, r.Now)
			if before != nil && !e.Changed {
				return e, ignoredUnless(err)
			}
			return e, err
		},
		Sent: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			if err := tx.Blocks.Add(ctx, user.Block{Actor: s.Target.ID, Direction: user.Outbound, Activity: s.Activity.ID}, s.Now); err != nil {
				return err
			}
			if len(s.Target.Raw) > 0 { // the list of blocks shows the actor
				if err := tx.Actors.Save(ctx, s.Target, s.Now); err != nil {
					return err
				}
			}
			if err := tx.Deliveries.Withdraw(ctx, s.Target.ID, nil, nil, s.Now); err != nil {
				return err
			}
			if err := endFollows(ctx, tx, local, s); err != nil {
				return err
			}
			if err := endFriendships(ctx, sender{tx: tx, local: local, user: s.User, now: s.Now}, s.Target); err != nil {
				return err
			}
			objects, err := tx.Objects.ListBy(ctx, s.Target.ID)
			if err != nil {
				return err
			}
			return tx.Blocks.LeaveFeed(ctx, s.Target.ID, objects)
		},
	}
}

// endFollows ends the follows between the user and an actor in both directions. It sends the actor
// an Undo of the user's follow and a Reject of the actor's follow, as far as these exist. So the
// actor's server learns that they ended, even if the Block is not sent to it.
func endFollows(ctx context.Context, tx *user.Tx, local *actor.Local, s *Sent) error {
	out := sender{tx: tx, local: local, user: s.User, now: s.Now}
	following, err := tx.Relationships.Find(ctx, user.Following, s.Target.ID)
	if err != nil {
		return err
	}
	if following != nil {
		if err := endFollowing(ctx, out, following, s.Target); err != nil {
			return err
		}
	}
	follower, err := tx.Relationships.Find(ctx, user.Follower, s.Target.ID)
	if err != nil || follower == nil {
		return err
	}
	if _, err := tx.Relationships.End(ctx, user.Follower, s.Target.ID, s.Now); err != nil {
		return err
	}
	written, err := Written(ctx, tx, user.Owned{ID: follower.Activity, Actor: follower.Actor})
	if err != nil {
		return err
	}
	return out.withSpelling(follower.Activity, written).sendAboutActivity(ctx, vocab.Reject, followDoc(follower.Activity, s.Target.ID, s.Actor.ID), s.Target)
}

// endFollowing ends the user's follow of an actor, and sends the Undo of it.
func endFollowing(ctx context.Context, out sender, rel *user.Relationship, from *vocab.Actor) error {
	if _, err := out.tx.Relationships.End(ctx, user.Following, rel.Actor, out.now); err != nil {
		return err
	}
	return out.sendAboutActivity(ctx, vocab.Undo, followDoc(rel.Activity, out.local.ID(out.user), rel.Actor), from)
}

// isBan reports whether a Block with this target bans the user from a community or server. A
// moderator of Lemmy sends such a Block, which names the community or the server as target. The
// moderator itself does not block the user by it.
func isBan(target, me vocab.ID) bool { return target != "" && !target.Same(me) }

// undoBlock removes the actor's block of the user, if the Undo takes back that Block.
func undoBlock(ctx context.Context, tx *user.Tx, r *Received, d doing) (bool, error) {
	b, err := tx.Blocks.Find(ctx, user.Inbound, r.Actor.ID)
	if err != nil || b == nil || !b.Activity.Same(d.id) && (d.stored || !d.about.Same(r.Me) || isBan(d.target, r.Me)) {
		return false, err
	}
	return tx.Blocks.Remove(ctx, user.Inbound, r.Actor.ID)
}
