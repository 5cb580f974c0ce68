package handler

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newFollow returns the handler of Follow: an actor wants to receive the user's posts (ActivityPub
// §7.5). A Follow that comes again is answered again.
func newFollow(local *actor.Local, profiles Profiles) Handler {
	return Handler{
		Concern:  audience.Concern{Owner: true},
		Notifies: NoticeOfOwn,
		Ordered:  true,
		Relates:  true,
		Check:    checkObject,
		Undone: func(ctx context.Context, tx Tx, r *Received, d doing) (bool, error) {
			return endFollow(ctx, tx, r, db.Follower, func(rel *db.Relationship) bool {
				return rel.Activity.Same(d.id) || !d.stored && (d.about.Same(r.Me) || d.about == "" && r.Named)
			})
		},
		SentUndone: func(ctx context.Context, tx Tx, s *Sent) error {
			_, err := tx.EndRelationship(ctx, db.Following, s.Target.ID)
			return err
		},
		Received: func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
			if !r.Activity.Object.ID.Same(r.Me) {
				return Effects{}, ErrIgnored
			}
			before, err := tx.Relationship(ctx, db.Follower, r.Actor.ID)
			if err != nil {
				return Effects{}, err
			}
			rel := db.Relationship{Actor: r.Actor.ID, Type: db.Follower, Status: db.Accepted, Activity: r.Activity.ID}
			known := before != nil && before.Status == db.Accepted
			if profiles.User(r.User).FollowPolicy == registry.ApprovalRequired && !known {
				rel.Status = db.Pending
			}
			if err := tx.SaveActor(ctx, r.Actor, r.Now); err != nil { // it is where posts for the follower go
				return Effects{}, err
			}
			if err := tx.SetRelationship(ctx, rel, r.Now); err != nil {
				return Effects{}, err
			}
			e := Effects{Changed: before == nil || before.Status != rel.Status}
			if rel.Status == db.Pending {
				return e, nil
			}
			return e, sendAccept(ctx, tx, local, r)
		},
		Sent: func(ctx context.Context, tx Tx, s *Sent) error {
			if err := tx.SaveActor(ctx, s.Target, s.Now); err != nil {
				return err
			}
			before, err := tx.Relationship(ctx, db.Following, s.Target.ID)
			if err != nil {
				return err
			}
			rel := db.Relationship{Actor: s.Target.ID, Type: db.Following, Status: db.Pending, Activity: s.Activity.ID}
			if before != nil && before.Status == db.Accepted {
				rel.Status = db.Accepted // asking again takes nothing away until the answer is no
			}
			return tx.SetRelationship(ctx, rel, s.Now)
		},
	}
}

// sendAccept answers a Follow in the transaction that stores it, so that no accepted follower is
// left without answer.
func sendAccept(ctx context.Context, tx Tx, local *actor.Local, r *Received) error {
	f := r.Activity
	return sender{tx: tx, local: local, user: r.User, now: r.Applied}.withSpelling(f.ID, f.Written).sendAboutActivity(ctx, vocab.Accept, followDoc(f.ID, f.Actor, f.Object.ID), r.Actor)
}

// followDoc returns a Follow as its Accept, Reject or Undo carries it: with the members that
// identify it alone.
func followDoc(id, actor, object vocab.ID) vocab.Doc {
	return vocab.Doc{"id": string(id), "type": vocab.Follow, "actor": string(actor), "object": string(object)}
}

// endFollow ends a follow if is says that the Undo is of that one: a late Undo must not end a
// newer follow.
func endFollow(ctx context.Context, tx Tx, r *Received, kind string, is func(*db.Relationship) bool) (bool, error) {
	rel, err := tx.Relationship(ctx, kind, r.Actor.ID)
	if err != nil || rel == nil || !is(rel) {
		return false, err
	}
	return tx.EndRelationship(ctx, kind, r.Actor.ID)
}
