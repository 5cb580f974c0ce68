package handler

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newMove returns the handler of Move: an account that the user follows has moved to another id
// (FEP-7628). If both accounts confirm the Move, the user follows the new account in place of the
// old one. If a follower of the user moves, nothing is done, because the new account sends a
// Follow of its own.
func newMove(local *actor.Local) Handler {
	return Handler{
		Concern: audience.Concern{Holders: true, FollowersOnly: true}, // only a follow is moved
		Final:   true,
		Lasting: true,
		Check: func(a *vocab.Activity) error {
			if !MovesItself(a) {
				if a.Object.ID.SameOrigin(a.Actor) {
					return nil // ignored, because NodeBB so tells that a topic is in another category
				}
				return fault.New(fault.Invalid, "an actor can only move itself").WithCode("foreign_object").At("/object")
			}
			if t := a.Target.ID; t == "" || t == vocab.Public || t.Same(a.Actor) {
				return fault.New(fault.Invalid, "a Move needs another actor as its target").At("/target")
			}
			return nil
		},
		Received: func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
			if r.Target == nil || r.Target.ID.Same(r.Me) {
				return Effects{}, ErrIgnored
			}
			old, err := tx.Relationships.Find(ctx, user.Following, r.Actor.ID)
			if err != nil || old == nil || old.Status == user.Rejected {
				return Effects{}, ignoredUnless(err)
			}
			if blocked, err := tx.Blocks.Find(ctx, user.Outbound, r.Target.ID); err != nil || blocked != nil {
				return Effects{}, ignoredUnless(err)
			}
			if first, err := tx.Actors.AddMove(ctx, r.Actor.ID, r.Target.ID, r.Now); err != nil || !first {
				return Effects{}, ignoredUnless(err)
			}
			e := Effects{Changed: true, Unfollowed: true}
			return e, replaceFollow(ctx, r.newSender(tx, local), old, r.Actor, r.Target)
		},
	}
}

// MovesItself reports whether an activity is a Move by which an actor moves itself.
func MovesItself(a *vocab.Activity) bool { return a.Type == vocab.Move && a.Object.ID.Same(a.Actor) }

// Moved reports whether both actors confirm the move. The actor old must name the actor now as
// its new account. The actor now must name the actor old as an alias, and must not have moved
// on. The caller must have fetched both actors from their own servers just before the call.
func Moved(old, now *vocab.Actor) bool {
	return old.MovedTo.Same(now.ID) && now.MovedTo == "" && slices.ContainsFunc(now.AlsoKnownAs, old.ID.Same)
}

// replaceFollow makes the user follow the new account in place of the old account, and replaces
// the old account in groups. The server of the old account gets an Undo, as Mastodon sends one,
// because otherwise that server would go on delivering. If the user has a follow of the new
// account already, even a refused one, no Follow is sent.
func replaceFollow(ctx context.Context, out sender, rel *user.Relationship, old, now *vocab.Actor) error {
	if err := endFollowing(ctx, out, rel, old); err != nil {
		return err
	}
	if err := out.tx.Actors.Save(ctx, now, out.now); err != nil {
		return err
	}
	if err := out.tx.Groups.MoveMember(ctx, old.ID, now.ID); err != nil {
		return err
	}
	there, err := out.tx.Relationships.Find(ctx, user.Following, now.ID)
	if err != nil || there != nil {
		return err
	}
	id, err := out.sendFollow(ctx, now)
	if err != nil {
		return err
	}
	return out.tx.Relationships.Set(ctx, user.Relationship{Actor: now.ID, Type: user.Following, Status: user.Pending, Activity: id}, out.now)
}
