package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newAnnounce returns the handler of Announce: an actor boosts an object to its followers. An
// embedded copy of the object is not trusted; the object is fetched from its own origin.
func newAnnounce() Handler {
	return Handler{
		Concern:     audience.Concern{Owner: true, Circle: true},
		Notifies:    NoticeOfOwn,
		Ordered:     true,
		InFeed:      true,
		ShowsObject: true,
		About:       objectID,
		Check:       checkObject,
		Again:       readmitReaction,
		Undone: func(ctx context.Context, tx *user.Tx, r *Received, d doing) (bool, error) {
			return undoReaction(ctx, tx, r, d, user.Announce, "")
		},
		SentUndone: unsendReaction,
		Needs: func(a *vocab.Activity) []vocab.ID {
			if a.Object.Doc.IsActivity() { // an activity is no post, so nothing is fetched
				return nil
			}
			return []vocab.ID{a.Object.ID}
		},
		Received: func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
			o := r.Fetched[r.Activity.Object.ID]
			if o == nil || !isPassable(o, r.Actor.ID) || !r.isReached() && !r.Mine(o.ID) {
				return Effects{}, ErrIgnored
			}
			if again, err := isRepeat(ctx, tx, r, o); err != nil || again {
				return Effects{}, ignoredUnless(err)
			}
			o, err := approve(ctx, tx, r, o)
			if err != nil {
				return Effects{}, err
			}
			if kept, err := keepPassed(ctx, tx, r, o, true); err != nil || !kept {
				return Effects{}, ignoredUnless(err)
			}
			if err := tx.Reactions.Set(ctx, boostOf(r.Activity, o.ID, r.Actor.ID), r.Now); err != nil {
				return Effects{}, err
			}
			return Effects{}, placeInFeed(ctx, tx, r)
		},
		Sent: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			if err := tx.Reactions.Set(ctx, boostOf(s.Activity, s.Activity.Object.ID, s.Actor.ID), s.Now); err != nil {
				return err
			}
			return enterFeed(ctx, tx, s.Activity, s.Actor.ID, s.Now)
		},
	}
}

// keepPassed is keepObject for a post that another activity than its Create brings. It returns
// false for a post that waits among the requests, whose words are not for the feed, unless the
// activity waits there, too.
func keepPassed(ctx context.Context, tx *user.Tx, r *Received, o *vocab.Object, shown bool) (bool, error) {
	kept, err := keepObject(ctx, tx, o, shown, r.Now)
	if err != nil || !kept || r.Request {
		return kept, err
	}
	waits, err := tx.Requests.IsAbout(ctx, o.ID)
	return !waits, err
}

// boostOf returns the reaction to an object that an Announce makes.
func boostOf(a *vocab.Activity, object, actor vocab.ID) user.Reaction {
	return user.Reaction{Object: object, Actor: actor, Kind: user.Announce, Type: a.Type, Activity: a.ID}
}

// isPassable reports whether an actor may boost o. The object o has to be a public post, or a post
// of the actor's own.
func isPassable(o *vocab.Object, actor vocab.ID) bool {
	return isReadable(o) && !o.Doc.IsActivity() && (audience.IsPublic(o.Addressing) || o.AttributedTo.Same(actor))
}

// isRepeat reports whether the sender is a Group that has announced the post o before. Some Groups
// announce a post twice: once as its Create (FEP-1b12), and once as the post itself for servers
// that do not know that FEP.
func isRepeat(ctx context.Context, tx *user.Tx, r *Received, o *vocab.Object) (bool, error) {
	if !IsGroup(r.Actor) {
		return false, nil
	}
	before, err := tx.Reactions.Find(ctx, boostOf(r.Activity, o.ID, r.Actor.ID))
	return before != nil, err
}
