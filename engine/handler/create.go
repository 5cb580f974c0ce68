package handler

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newCreate returns the handler of Create: an actor wrote an object (ActivityPub §7.2). The
// object appears in the feeds of the users that it was sent to, unless it is a vote, is muted or
// waits among the requests.
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
		Received: func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
			o, err := authoredObject(r)
			if err != nil {
				return Effects{}, err
			}
			if Votes(o) {
				return Effects{Silent: true}, receiveVote(ctx, tx, local, r, o)
			}
			quotes, err := isFirstToQuote(ctx, tx, local.Addresses, r, o)
			if err != nil {
				return Effects{}, err
			}
			if !r.isReached() && !quotes { // the post may still answer a post of the user
				if parent, err := findShown(ctx, tx, local.Addresses, r, o.InReplyTo); err != nil || parent == nil {
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
		Sent: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			if s.Group != nil {
				return addGroup(ctx, tx, s)
			}
			o, err := s.Activity.Embedded()
			if err != nil {
				return err
			}
			if _, err := keepObject(ctx, tx, o.WrittenHere(), false, s.Now); err != nil {
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
	if embedsAll(a) {
		return nil
	}
	return []vocab.ID{a.Object.ID}
}

// embedsAll reports whether an activity embeds its object as the object's server shows it. It
// returns false for an Update of BookWyrm about a book, because BookWyrm puts the book and the
// quoted text of the embedded object into separate members, and not into the content.
func embedsAll(a *vocab.Activity) bool {
	_, isOfBook := a.Object.Doc["inReplyToBook"]
	return a.Object.Doc != nil && !(isOfBook && a.Type == vocab.Update)
}

// ObjectOf returns the object of an activity in the form in which a recipient would store it.
// That is the object that was fetched from its origin, or else the embedded one. But if a Create
// or Update embeds all of its object, that copy is stored, even if another one was fetched. The
// copy in an Announce is never stored. ObjectOf returns nil if there is no object.
//
// All rules that judge the object call ObjectOf. Otherwise a sender could show one object to the
// rules and have another one stored.
func ObjectOf(a *vocab.Activity, fetched map[vocab.ID]*vocab.Object) *vocab.Object {
	isCopy := (a.Type == vocab.Create || a.Type == vocab.Update) && embedsAll(a)
	if o := fetched[a.Object.ID]; o != nil && !isCopy {
		return o
	}
	if a.Object.Doc == nil || a.Type == vocab.Announce {
		return nil
	}
	o, _ := a.Embedded() // no error for an activity with words, because its handler's Check has parsed it
	return o
}

// authoredObject returns the object that the sender wrote; see ObjectOf. BookWyrm shows other
// servers no private post, so an edit of a private post is taken in the form that BookWyrm embeds.
func authoredObject(r *Received) (*vocab.Object, error) {
	o := ObjectOf(r.Activity, r.Fetched)
	if o == nil || !isReadable(o) || o.AttributedTo != "" && !o.AttributedTo.Same(r.Actor.ID) {
		return nil, ErrIgnored
	}
	if isPart := !embedsAll(r.Activity) && r.Fetched[r.Activity.Object.ID] == nil; isPart && audience.IsPublic(o.Addressing) {
		return nil, ErrIgnored
	}
	if o.AttributedTo == "" { // checkAuthored has seen that no other author is named
		o.AttributedTo = r.Actor.ID
		o.Doc = maps.Clone(o.Doc) // because other recipients read the activity's doc, too
		o.Doc["attributedTo"] = string(r.Actor.ID)
	}
	return o, nil
}

// isNews reports whether the author's post is stored, but the user has received no other Create of
// the post. Then a boost or an early Update has brought the post. The user may have received
// another Create, because relays send a Create of the same post under another id, before or after
// the author's own.
func isNews(ctx context.Context, tx *user.Tx, r *Received, o *vocab.Object) (bool, error) {
	if theirs, err := isLiving(ctx, tx, o); err != nil || !theirs {
		return false, err
	}
	created, err := tx.Activities.HasOther(ctx, vocab.Create, r.Activity.ID, r.Actor.ID, o.ID)
	return !created, err
}

// keepObject stores an object unless it is stored already. It reports whether the stored object is
// by the author of o and not deleted. The author may have deleted the object before it arrived.
func keepObject(ctx context.Context, tx *user.Tx, o *vocab.Object, shown bool, now time.Time) (bool, error) {
	added, err := putObject(ctx, tx, o, shown, now)
	if added || err != nil {
		return added, err
	}
	return isLiving(ctx, tx, o)
}

// isLiving reports whether an object with the id of o is stored, is not deleted, and has the same
// author as o.
func isLiving(ctx context.Context, tx *user.Tx, o *vocab.Object) (bool, error) {
	there, err := tx.Objects.Find(ctx, o.ID)
	if err != nil || there == nil || there.DeletedAt != nil {
		return false, err
	}
	return isAuthor(o.AttributedTo, there)
}

// putObject stores o if its id is free, and reports whether it did. If an object of another author
// has the id, the parameter shown decides. It is true if the server of o shows o as an object of
// this author; then o replaces the other object. If shown is false, the error is ErrContested. If
// the author's own object has the id, putObject returns false. That object then gets the stamp of
// o, if it has the same quote without a stamp.
func putObject(ctx context.Context, tx *user.Tx, o *vocab.Object, shown bool, now time.Time) (bool, error) {
	row := Stored(o, now)
	added, err := tx.Objects.Add(ctx, row)
	if added || err != nil {
		return added, err
	}
	contested, err := isContested(ctx, tx, o)
	switch {
	case err != nil:
		return false, err
	case !contested:
		return false, addStamp(ctx, tx, o)
	case !shown:
		return false, ErrContested
	}
	return true, tx.Objects.Displace(ctx, row)
}

// isContested reports whether the id of o is that of a stored or deleted object of another
// author. It is false if the author of o has deleted the object.
func isContested(ctx context.Context, tx *user.Tx, o *vocab.Object) (bool, error) {
	there, err := tx.Objects.Find(ctx, o.ID)
	if err != nil || there == nil {
		return false, err
	}
	if there.DeletedAt == nil {
		theirs, err := isAuthor(o.AttributedTo, there)
		return !theirs, err
	}
	buried, err := tx.Objects.IsBuried(ctx, user.Owned{ID: o.ID, Actor: o.AttributedTo})
	return !buried, err
}

// isShown reports whether the object was fetched from its server, and whether that server names
// the same author.
func (r *Received) isShown(o *vocab.Object) bool {
	for _, f := range r.Fetched {
		if f.ID == o.ID && f.AttributedTo == o.AttributedTo {
			return true
		}
	}
	return false
}

// Stored returns the row of an object that is stored for the first time, at the time now.
func Stored(o *vocab.Object, now time.Time) user.Object {
	doc, readable := storedForm(o)
	row := user.Object{ID: uuid.Must(uuid.NewV7()), URI: o.ID, Author: o.AttributedTo, Published: NotAfter(o.Published, now), Raw: doc, Readable: readable}
	if !o.Updated.IsZero() {
		at := NotAfter(o.Updated, now)
		row.UpdatedAt = &at
	}
	return row
}

// placeInFeed adds a received activity to the user's feed, or to the requests if it is a
// stranger's private message. It adds no muted activity to the feed, and nothing for an encrypted
// message. If the activity was not sent to the user, but only concerns something of the user's,
// placeInFeed does nothing. The user then sees the activity among the notifications.
func placeInFeed(ctx context.Context, tx *user.Tx, r *Received) error {
	switch {
	case !r.isReached():
		return nil
	case r.Request:
		return tx.Requests.Add(ctx, user.Request{Activity: r.Activity.ID, Actor: r.Actor.ID, Host: policy.RegistrableDomain(r.Actor.ID.Host())}, r.Now)
	}
	if r.Muted || r.IsSealed() {
		return nil
	}
	return enterFeed(ctx, tx, r.Activity, r.Actor.ID, r.Now)
}

func enterFeed(ctx context.Context, tx *user.Tx, a *vocab.Activity, actor vocab.ID, now time.Time) error {
	return tx.Feed.Add(ctx, user.FeedEntry{ID: uuid.Must(uuid.NewV7()), Activity: a.ID, Actor: actor, Published: NotAfter(a.Published, now)})
}

// NotAfter returns t, or now if t is zero or later than now. So a wrong clock of another server
// cannot keep a post at the top.
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

// isLetter reports whether the activity is a private post that is addressed to the user itself.
func isLetter(r *Received) bool {
	return r.Named && audience.Of(r.addressed(), r.Actor.ID, r.Actor.Followers).IsPrivate()
}

// isMention reports whether the activity or its post addresses the user, and the post has a Mention
// tag for the user.
func isMention(r *Received) bool {
	if !audience.Names(r.addressed(), r.Me) {
		return false
	}
	for _, tag := range r.post().Subs("tag") {
		if kind, err := tag.Type(); err == nil && kind == "Mention" && vocab.IDOf(tag.Text("href")) == r.Me {
			return true
		}
	}
	return false
}

// post returns the document of the object that the activity brings; see ObjectOf.
func (r *Received) post() vocab.Doc {
	if o := ObjectOf(r.Activity, r.Fetched); o != nil {
		return o.Doc
	}
	return r.Activity.Object.Doc
}

// addressed returns the recipients that the activity or its post names. Both count, because
// Discourse names the recipients in the post, and in the activity nothing but an inbox.
func (r *Received) addressed() vocab.Addressing {
	to, err := vocab.AddressingOf(r.post())
	if err != nil { // such a post is not stored
		return r.Activity.Addressing
	}
	return to.With(r.Activity.Addressing)
}
