package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newFollow returns the handler of Follow: an actor wants to receive the user's posts
// (ActivityPub §7.5). If a follower sends a Follow again, it gets an Accept again. For a Follow
// under the same id it gets one at most once an hour (see readmitFollow).
func newFollow(local *actor.Local, profiles Profiles) Handler {
	return Handler{
		Concern:    audience.Concern{Owner: true},
		Notifies:   NoticeOfOwn,
		Ordered:    true,
		ChangesWho: true,
		Relates:    true,
		Check:      checkObject,
		Again:      readmitFollow,
		Undone: func(ctx context.Context, tx *user.Tx, r *Received, d doing) (bool, error) {
			return endFollow(ctx, tx, r, user.Follower, func(rel *user.Relationship) bool {
				return rel.Activity.Same(d.id) || !d.stored && (d.about.Same(r.Me) || d.about == "" && r.Named)
			})
		},
		SentUndone: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			_, err := tx.Relationships.End(ctx, user.Following, s.Target.ID, s.Now)
			return err
		},
		Received: func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
			if !r.Activity.Object.ID.Same(r.Me) {
				return Effects{}, ErrIgnored
			}
			before, err := tx.Relationships.Find(ctx, user.Follower, r.Actor.ID)
			if err != nil {
				return Effects{}, err
			}
			rel := user.Relationship{Actor: r.Actor.ID, Type: user.Follower, Status: user.Accepted, Activity: r.Activity.ID, Host: policy.RegistrableDomain(r.Actor.ID.Host())}
			known := before != nil && before.Status == user.Accepted
			if profiles.User(r.User).FollowPolicy == registry.ApprovalRequired && !known {
				rel.Status = user.Pending
			}
			if rel.Status == user.Pending && before == nil {
				full, err := isFullOfFollows(ctx, tx, rel.Host)
				if full && err == nil {
					err = rejectFollow(ctx, tx, local, r)
				}
				if err != nil || full {
					return Effects{}, ignoredUnless(err)
				}
			}
			// The Accept needs the actor's inbox.
			if err := tx.Actors.Save(ctx, r.Actor, r.Now); err != nil {
				return Effects{}, err
			}
			if err := tx.Relationships.Set(ctx, rel, r.Now); err != nil {
				return Effects{}, err
			}
			e := Effects{Changed: before == nil || before.Status != rel.Status, Silent: known && before.Activity.Same(r.Activity.ID)}
			if rel.Status == user.Pending {
				return e, nil
			}
			return e, sendAccept(ctx, tx, local, r)
		},
		Sent: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			if err := tx.Actors.Save(ctx, s.Target, s.Now); err != nil {
				return err
			}
			before, err := tx.Relationships.Find(ctx, user.Following, s.Target.ID)
			if err != nil {
				return err
			}
			rel := user.Relationship{Actor: s.Target.ID, Type: user.Following, Status: user.Pending, Activity: s.Activity.ID}
			if before != nil && before.Status == user.Accepted {
				rel.Status = user.Accepted // the old consent counts until a Reject
			}
			return tx.Relationships.Set(ctx, rel, s.Now)
		},
	}
}

// Limits on the Follows that wait for a user: followsOfHost for those from one domain, and
// maxFollows for all.
const (
	followsOfHost = 1000
	maxFollows    = 10_000
)

// isFullOfFollows reports whether the Follows that wait for the user have reached a limit: the
// limit for the domain in the parameter host, or the limit for all domains together.
func isFullOfFollows(ctx context.Context, tx *user.Tx, host string) (bool, error) {
	n, err := tx.Relationships.CountFollows(ctx, host)
	return n.OfHost >= followsOfHost || n.All >= maxFollows, err
}

// sendAccept queues the Accept of a Follow in the transaction that stores the follower. So no
// accepted follower is left without an answer.
func sendAccept(ctx context.Context, tx *user.Tx, local *actor.Local, r *Received) error {
	f := r.Activity
	return r.newSender(tx, local).withSpelling(f.ID, f.Written).sendAboutActivity(ctx, vocab.Accept, followDoc(f.ID, f.Actor, f.Object.ID), r.Actor)
}

// rejectFollow queues the Reject of a Follow for which there is no room, so that the follower does
// not wait for ever. A flood of Follows causes no flood elsewhere: the inbox of an actor is on its
// own server, each actor and each domain can cause a limited number of Rejects, and a Reject leaves
// no row except its delivery. Beyond the limits, the Follow is ignored.
func rejectFollow(ctx context.Context, tx *user.Tx, local *actor.Local, r *Received) error {
	if !r.Rejects() {
		return nil
	}
	f := r.Activity
	return r.newSender(tx, local).withSpelling(f.ID, f.Written).queueAboutActivity(ctx, vocab.Reject, followDoc(f.ID, f.Actor, f.Object.ID), r.Actor)
}

// followDoc returns a Follow in the form in which an Accept, Reject or Undo embeds it: with only
// the members that identify it.
func followDoc(id, actor, object vocab.ID) vocab.Doc {
	return vocab.Doc{"id": string(id), "type": vocab.Follow, "actor": string(actor), "object": string(object)}
}

// endFollow ends the follow of a relationship rel if is(rel) returns true, that is, if the Undo
// takes back this very Follow or the Accept of it. A late Undo must not end a newer follow. If the
// parameter kind is user.Follower, the sender follows the user; if it is user.Following, the user
// follows the sender.
func endFollow(ctx context.Context, tx *user.Tx, r *Received, kind string, is func(*user.Relationship) bool) (bool, error) {
	rel, err := tx.Relationships.Find(ctx, kind, r.Actor.ID)
	if err != nil || rel == nil || !is(rel) {
		return false, err
	}
	return tx.Relationships.End(ctx, kind, r.Actor.ID, r.endTime())
}
