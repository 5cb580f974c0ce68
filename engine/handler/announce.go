package handler

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// announce: an actor passes an object on to those who follow it. What it embeds is never believed:
// the object is taken from its own origin.
func announce() Handler {
	return Handler{
		Concern:     audience.Concern{Owner: true, Circle: true},
		Notifies:    NoticeOfOwn,
		Ordered:     true,
		InFeed:      true,
		ShowsObject: true,
		About:       object,
		Check:       checkObject,
		Undone: func(ctx context.Context, tx Tx, r *Received, d doing) (bool, error) {
			return unreact(ctx, tx, r, d, db.Announce, "")
		},
		SentUndone: unsendReaction,
		Needs: func(a *vocab.Activity) []vocab.ID {
			if a.Object.Doc["actor"] != nil { // an activity, which is no post
				return nil
			}
			return []vocab.ID{a.Object.ID}
		},
		Received: func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
			o := r.Fetched[r.Activity.Object.ID]
			if o == nil || !passable(o, r.Actor.ID) || !r.reached() && !r.Mine(o.ID) {
				return Effects{}, ErrIgnored
			}
			if again, err := repeats(ctx, tx, r, o); err != nil || again {
				return Effects{}, ignoredUnless(err)
			}
			if kept, err := keep(ctx, tx, o, true, r.Now); err != nil || !kept {
				return Effects{}, ignoredUnless(err)
			}
			err := tx.SetReaction(ctx, db.Reaction{Object: o.ID, Actor: r.Actor.ID, Kind: db.Announce, Type: r.Activity.Type, Activity: r.Activity.ID}, r.Now)
			if err != nil {
				return Effects{}, err
			}
			return Effects{}, appear(ctx, tx, r)
		},
		Sent: func(ctx context.Context, tx Tx, s *Sent) error {
			err := tx.SetReaction(ctx, db.Reaction{Object: s.Activity.Object.ID, Actor: s.Actor.ID, Kind: db.Announce, Type: s.Activity.Type, Activity: s.Activity.ID}, s.Now)
			if err != nil {
				return err
			}
			return enterFeed(ctx, tx, s.Activity, s.Actor.ID, s.Now)
		},
	}
}

// passable tells whether o is a post that this actor may pass on: a public one, or its own.
func passable(o *vocab.Object, actor vocab.ID) bool {
	_, acts := o.Doc["actor"] // an activity of whatever type
	return readable(o) && !acts && (audience.IsPublic(o.Addressing) || o.AttributedTo.Same(actor))
}

// repeats reports whether a Group announces a post that it has announced: some do it twice, once
// with the Create of the post (FEP-1b12) and once for servers that do not know this.
func repeats(ctx context.Context, tx Tx, r *Received, o *vocab.Object) (bool, error) {
	if !IsGroup(r.Actor) {
		return false, nil
	}
	before, err := tx.Reaction(ctx, db.Reaction{Object: o.ID, Actor: r.Actor.ID, Kind: db.Announce})
	return before != nil, err
}
