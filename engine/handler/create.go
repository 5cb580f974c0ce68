package handler

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newCreate returns the handler of Create: an actor wrote an object (ActivityPub §7.2). It appears
// in the feeds of the users it reached, unless it is a vote.
func newCreate(local *actor.Local) Handler {
	return Handler{
		Concern:     audience.Concern{Owner: true, PublicOnly: true, Post: true},
		Notifies:    NoticeOfNamed,
		Aliases:     []Alias{{"dm.received", isLetter}, {"mention.received", isMention}},
		Final:       true,
		InFeed:      true,
		Words:       true,
		Authored:    true,
		ShowsObject: true,
		About:       objectID,
		Check:       checkAuthored,
		Needs:       needsUnlessEmbedded,
		Received: func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
			o, err := authoredObject(r)
			if err != nil {
				return Effects{}, err
			}
			if Votes(o) {
				return Effects{Silent: true}, receiveVote(ctx, tx, local, r, o)
			}
			quotes, err := isFirstToQuote(ctx, tx, local, r, o)
			if err != nil {
				return Effects{}, err
			}
			if !r.isReached() && !quotes { // it only answers something of the user's
				if parent, err := findShown(ctx, tx, local, r, o.InReplyTo); err != nil || parent == nil {
					return Effects{}, ignoredUnless(err)
				}
			}
			if o, err = approve(ctx, tx, r, o); err != nil {
				return Effects{}, err
			}
			added, err := putObject(ctx, tx, o, r.isShown(o), r.Now)
			if err != nil {
				return Effects{}, err
			}
			if !added {
				if news, err := isNews(ctx, tx, r, o); err != nil || !news {
					return Effects{}, ignoredUnless(err)
				}
			}
			if err := keepReceivedNote(ctx, tx, r, o); err != nil {
				return Effects{}, err
			}
			return Effects{Quotes: quotes}, placeInFeed(ctx, tx, r)
		},
		Sent: func(ctx context.Context, tx Tx, s *Sent) error {
			if s.Group != nil {
				return addGroup(ctx, tx, s)
			}
			o, err := s.Activity.Embedded()
			if err != nil {
				return err
			}
			if _, err := keepObject(ctx, tx, o, false, s.Now); err != nil {
				return err
			}
			if err := sendQuoteRequest(ctx, tx, local, s, o); err != nil {
				return err
			}
			if err := keepSentNote(ctx, tx, s, o); err != nil {
				return err
			}
			return enterFeed(ctx, tx, s.Activity, s.Actor.ID, s.Now)
		},
	}
}

func needsUnlessEmbedded(a *vocab.Activity) []vocab.ID {
	if a.Object.Doc != nil {
		return nil
	}
	return []vocab.ID{a.Object.ID}
}

// authoredObject returns the object that the sender wrote: the embedded one, or the one that its
// origin serves.
func authoredObject(r *Received) (*vocab.Object, error) {
	if r.Activity.Object.Doc == nil {
		o := r.Fetched[r.Activity.Object.ID]
		if o == nil || !isReadable(o) || !o.AttributedTo.Same(r.Actor.ID) {
			return nil, ErrIgnored
		}
		return o, nil
	}
	o, err := r.Activity.Embedded()
	if err != nil {
		return nil, err
	}
	if o.AttributedTo == "" { // the activity says who wrote it, and checkAuthored that nobody else is named
		o.AttributedTo = r.Actor.ID
		o.Doc = maps.Clone(o.Doc) // the activity's, which others read
		o.Doc["attributedTo"] = string(r.Actor.ID)
	}
	return o, nil
}

// isNews reports whether the user holds a living post of this author only because of a boost, and
// never received its Create. Relays bring a Create under another id, before or after the author's
// own.
func isNews(ctx context.Context, tx Tx, r *Received, o *vocab.Object) (bool, error) {
	if theirs, err := isLiving(ctx, tx, o); err != nil || !theirs {
		return false, err
	}
	created, err := tx.CreatedBefore(ctx, r.Activity.ID, r.Actor.ID, o.ID)
	return !created, err
}

// keepObject stores an object and reports whether it is stored, not deleted, and by this author.
// An object that its author deleted before it came is not.
func keepObject(ctx context.Context, tx Tx, o *vocab.Object, shown bool, now time.Time) (bool, error) {
	added, err := putObject(ctx, tx, o, shown, now)
	if added || err != nil {
		return added, err
	}
	return isLiving(ctx, tx, o)
}

// isLiving reports whether the stored object with that id is not deleted, and by the same author.
func isLiving(ctx context.Context, tx Tx, o *vocab.Object) (bool, error) {
	there, err := tx.Object(ctx, o.ID)
	if err != nil || there == nil || there.DeletedAt != nil {
		return false, err
	}
	return isAuthor(o.AttributedTo, there)
}

// putObject stores an object and reports whether it did: the id was free, or taken by another
// actor of the same server, which shows the object as this author's. The error is ErrContested
// when that server has not been asked.
func putObject(ctx context.Context, tx Tx, o *vocab.Object, shown bool, now time.Time) (bool, error) {
	row := Stored(o, now)
	added, err := tx.AddObject(ctx, row)
	if added || err != nil {
		return added, err
	}
	contested, err := isContested(ctx, tx, o)
	switch {
	case err != nil || !contested:
		return false, err
	case !shown:
		return false, ErrContested
	}
	return true, tx.DisplaceObject(ctx, row)
}

// isContested reports whether the id of an object belongs, or belonged, to an object of another
// author, and its own author has not deleted it.
func isContested(ctx context.Context, tx Tx, o *vocab.Object) (bool, error) {
	there, err := tx.Object(ctx, o.ID)
	if err != nil || there == nil {
		return false, err
	}
	if there.DeletedAt == nil {
		theirs, err := isAuthor(o.AttributedTo, there)
		return !theirs, err
	}
	buried, err := tx.IsBuried(ctx, db.Owned{ID: o.ID, Actor: o.AttributedTo})
	return !buried, err
}

// isShown reports whether the server of an object shows it as its author's.
func (r *Received) isShown(o *vocab.Object) bool {
	for _, f := range r.Fetched {
		if f.ID == o.ID && f.AttributedTo == o.AttributedTo {
			return true
		}
	}
	return false
}

// Stored returns an object as it is stored now, for the first time.
func Stored(o *vocab.Object, now time.Time) db.Object {
	doc, readable := o.Stored()
	row := db.Object{ID: uuid.Must(uuid.NewV7()), URI: o.ID, Author: o.AttributedTo, Published: NotAfter(o.Published, now), Raw: doc, Readable: readable}
	if !o.Updated.IsZero() {
		at := NotAfter(o.Updated, now)
		row.UpdatedAt = &at
	}
	return row
}

// placeInFeed gives a received activity its place in the feed of a user it reached. Users it
// merely concerns see it among their notifications.
func placeInFeed(ctx context.Context, tx Tx, r *Received) error {
	switch {
	case !r.isReached(), r.IsSealed():
		return nil
	case r.Request:
		return tx.AddRequest(ctx, db.Request{Activity: r.Activity.ID, Actor: r.Actor.ID, Host: policy.RegistrableDomain(r.Actor.ID.Host())}, r.Now)
	}
	if r.Muted {
		return nil
	}
	return enterFeed(ctx, tx, r.Activity, r.Actor.ID, r.Now)
}

func enterFeed(ctx context.Context, tx Tx, a *vocab.Activity, actor vocab.ID, now time.Time) error {
	return tx.AddFeedEntry(ctx, db.FeedEntry{ID: uuid.Must(uuid.NewV7()), Activity: a.ID, Actor: actor, Published: NotAfter(a.Published, now)})
}

// NotAfter returns t, or now when t is unknown or later: no clock of another server pins a post to
// the top.
func NotAfter(t, now time.Time) time.Time {
	if t.IsZero() || t.After(now) {
		return now
	}
	return t
}

func ignoredUnless(err error) error {
	if err != nil {
		return err
	}
	return ErrIgnored
}

// isLetter reports whether it brings a private post that is meant for the user in person.
func isLetter(r *Received) bool {
	return r.Named && audience.OfActivity(r.Activity, r.Actor.Followers).IsPrivate()
}

// isMention reports whether a post names the user in its tags and its addressing alike.
func isMention(r *Received) bool {
	if !audience.Names(r.Activity.Addressing, r.Me) {
		return false
	}
	post := r.Activity.Object.Doc
	if o := r.Fetched[r.Activity.Object.ID]; o != nil {
		post = o.Doc
	}
	for _, tag := range post.Subs("tag") {
		if kind, err := tag.Type(); err == nil && kind == "Mention" && vocab.IDOf(tag.Text("href")) == r.Me {
			return true
		}
	}
	return false
}
