package handler

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// move: an account that the user follows goes on under another id, and the follow goes with it (FEP-7628), once both
// accounts have confirmed it. Who follows the user and moves, follows anew by itself.
func move(local *actor.Local) Handler {
	return Handler{
		Concern: audience.Concern{Holders: true, FollowersOnly: true}, // a follow is all that moves
		Final:   true,
		Lasting: true,
		Check: func(a *vocab.Activity) error {
			if !a.Object.ID.Same(a.Actor) {
				return fault.New(fault.Invalid, "an actor can only move itself").WithCode("foreign_object").At("/object")
			}
			if t := a.Target.ID; t == "" || t == vocab.Public || t.Same(a.Actor) {
				return fault.New(fault.Invalid, "a Move needs another actor as its target").At("/target")
			}
			return nil
		},
		Received: func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
			if r.Target == nil || r.Target.ID.Same(r.Me) {
				return Effects{}, ErrIgnored
			}
			old, err := tx.Relationship(ctx, db.Following, r.Actor.ID)
			if err != nil || old == nil || old.Status == db.Rejected {
				return Effects{}, ignoredUnless(err)
			}
			if blocked, err := tx.Block(ctx, db.Outbound, r.Target.ID); err != nil || blocked != nil {
				return Effects{}, ignoredUnless(err)
			}
			if first, err := tx.AddMove(ctx, r.Actor.ID, r.Target.ID, r.Now); err != nil || !first {
				return Effects{}, ignoredUnless(err)
			}
			e := Effects{Changed: true, Unfollowed: true}
			return e, swap(ctx, sender{tx: tx, local: local, user: r.User, now: r.Applied}, old, r.Actor, r.Target)
		},
	}
}

// Moved tells whether both accounts say that the old one has become the new one, which has not moved on itself. Only
// their own servers can say so, and only now.
func Moved(old, now *vocab.Actor) bool {
	return old.MovedTo.Same(now.ID) && now.MovedTo == "" && slices.ContainsFunc(now.AlsoKnownAs, old.ID.Same)
}

// swap lets the user follow the new account in place of the old one, which it replaces in groups too. The old one's server
// gets an Undo, as Mastodon sends it: it would go on delivering to a follower who is none. An actor that the user has asked to
// follow before is not asked again, whatever was answered.
func swap(ctx context.Context, out sender, rel *db.Relationship, old, now *vocab.Actor) error {
	if err := unfollow(ctx, out, rel, old); err != nil {
		return err
	}
	if err := out.tx.SaveActor(ctx, now, out.now); err != nil {
		return err
	}
	if err := out.tx.MoveMember(ctx, old.ID, now.ID); err != nil {
		return err
	}
	there, err := out.tx.Relationship(ctx, db.Following, now.ID)
	if err != nil || there != nil {
		return err
	}
	id, err := out.follow(ctx, now)
	if err != nil {
		return err
	}
	return out.tx.SetRelationship(ctx, db.Relationship{Actor: now.ID, Type: db.Following, Status: db.Pending, Activity: id}, out.now)
}
