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

// newMove returns the handler of Move: an account that the user follows moved to another id, and
// the follow moves with it (FEP-7628), once both accounts have confirmed it. A follower of the
// user who moves sends a Follow of its own.
func newMove(local *actor.Local) Handler {
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
			return e, replaceFollow(ctx, sender{tx: tx, local: local, user: r.User, now: r.Applied}, old, r.Actor, r.Target)
		},
	}
}

// Moved reports whether both accounts say that the old one has become the new one, and the new one
// has not moved on. Only their own servers can say so, and only now.
func Moved(old, now *vocab.Actor) bool {
	return old.MovedTo.Same(now.ID) && now.MovedTo == "" && slices.ContainsFunc(now.AlsoKnownAs, old.ID.Same)
}

// replaceFollow lets the user follow the new account in place of the old one, in groups too. The
// server of the old one gets an Undo, as from Mastodon: otherwise it would go on delivering. If
// the user has asked to follow the new account before, no Follow is sent again, whatever the
// answer was.
func replaceFollow(ctx context.Context, out sender, rel *db.Relationship, old, now *vocab.Actor) error {
	if err := endFollowing(ctx, out, rel, old); err != nil {
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
	id, err := out.sendFollow(ctx, now)
	if err != nil {
		return err
	}
	return out.tx.SetRelationship(ctx, db.Relationship{Actor: now.ID, Type: db.Following, Status: db.Pending, Activity: id}, out.now)
}
