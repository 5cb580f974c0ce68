package handler

import (
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newUpdate returns the handler of Update: an author replaced an object (ActivityPub §7.3), or an
// actor changed itself. An older version never replaces a newer one. If an Update of a poll does
// not give the time of a change, only the counts of votes are taken from it. An Update without any
// time that another actor passes on replaces the object only if the object was fetched (see
// isUndated). Friendica and Mobilizon send every Update of an object under the same id, so the
// time of the change tells their Updates apart.
func newUpdate() Handler {
	return Handler{
		Concern:     audience.Concern{Holders: true, Edit: true},
		Final:       true,
		Words:       true,
		Authored:    true,
		ShowsObject: true,
		About: func(a *vocab.Activity) vocab.ID {
			if isOfActor(a) {
				return ""
			}
			return objectID(a)
		},
		Version: func(a *vocab.Activity) time.Time { return a.Object.Doc.Time("updated") },
		Check: func(a *vocab.Activity) error {
			if isOfActor(a) {
				return nil
			}
			return checkAuthored(a)
		},
		Needs: func(a *vocab.Activity) []vocab.ID {
			if isOfActor(a) {
				return []vocab.ID{a.Actor}
			}
			return needsUnlessEmbedded(a)
		},
		Received: func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
			if isOfActor(r.Activity) {
				return updateActor(ctx, tx, r)
			}
			return Effects{}, updateObject(ctx, tx, r)
		},
		Sent: func(ctx context.Context, tx *user.Tx, s *Sent) error {
			if isOfActor(s.Activity) {
				return nil // the user's profile is in the registry
			}
			o, err := s.Activity.Embedded()
			if err != nil {
				return err
			}
			if err := checkSentWords(ctx, tx, s); err != nil {
				return err
			}
			doc, readable := o.WithStamp().WrittenHere().Stored() // the user's own objects have only stamps that were verified
			changed, err := tx.Objects.Replace(ctx, s.Object.URI, doc, readable, s.Now)
			if err == nil && !changed {
				return fault.New(fault.Conflict, "the object was changed or deleted meanwhile")
			}
			return err
		},
	}
}

// UpdatesItself reports whether an activity is an Update by which an actor changes itself.
func UpdatesItself(a *vocab.Activity) bool { return a.Type == vocab.Update && isOfActor(a) }

// isOfActor reports whether an actor updates itself.
func isOfActor(a *vocab.Activity) bool {
	return a.Object.ID.Same(a.Actor) && (a.Object.Doc == nil || vocab.IsActorType(a.Object.Type()))
}

func updateObject(ctx context.Context, tx *user.Tx, r *Received) error {
	o, err := authoredObject(r)
	if err != nil {
		return err
	}
	stored, err := tx.Objects.Find(ctx, o.ID)
	if err != nil {
		return err
	}
	counts := o.Type == question && o.Updated.IsZero()
	if stored == nil && !counts {
		return storeEarly(ctx, tx, r, o)
	}
	if stored == nil {
		return ErrIgnored
	}
	before, err := stored.Parse()
	if err != nil || !before.AttributedTo.Same(r.Actor.ID) || isUndated(r, o) {
		return ignoredUnless(err)
	}
	if !mayKeep(r, before, o) {
		return hideNarrowed(ctx, tx, r, stored, before, o)
	}
	if counts {
		return refreshPoll(ctx, tx, stored, o)
	}
	if !embedsAll(r.Activity) && isOlderCopy(o, before) {
		return ErrIgnored
	}
	at := changedAt(r, o)
	if o, err = approveEdit(ctx, tx, r, o, before); err != nil {
		return err
	}
	return replaceObject(ctx, tx, r, o, before, at)
}

// replaceObject replaces the stored version of an object, before, by a version o that was changed
// at the time at, unless the stored version is newer. It never replaces the user's own object,
// which is changed only by what the user sends. A version of it that others pass on lacks the text
// that the user wrote, and claims no stamp.
func replaceObject(ctx context.Context, tx *user.Tx, r *Received, o, before *vocab.Object, at time.Time) error {
	if r.Mine(o.ID) {
		return ErrIgnored
	}
	doc, readable, err := updatedForm(ctx, tx, r, o, before)
	if err != nil {
		return err
	}
	changed, err := tx.Objects.Replace(ctx, o.ID, doc, readable, NotAfter(at, r.Now))
	if err != nil || !changed {
		return ignoredUnless(err)
	}
	return nil
}

// isUndated reports whether an Update that another actor passes on has no time by which an old
// version can be told from a new one. The author may have made such an Update long ago, and its
// proof still holds. A poll must have the time of its change, because its counts have no other
// time. The result is false if the object was fetched, because its server shows only the current
// version.
func isUndated(r *Received, o *vocab.Object) bool {
	hasTime := !o.Updated.IsZero() || o.Type != question && !r.Activity.Published.IsZero()
	return len(r.Forwarders) > 0 && !hasTime && !r.isShown(o)
}

// isOlderCopy reports whether a fetched copy of a post does not give the time of a change, although
// the stored version does. The copy may be from a cache of its server.
func isOlderCopy(o, stored *vocab.Object) bool { return o.Updated.IsZero() && !stored.Updated.IsZero() }

// mayKeep reports whether the new version of an object may replace the old one in the user's
// database: its audience has to include the user.
func mayKeep(r *Received, before, o *vocab.Object) bool {
	after := audience.OfObject(o, r.Actor.Followers).With(r.Activity.Addressing)
	return audience.MayReplace(audience.OfObject(before, r.Actor.Followers), after, r.asViewer())
}

// asViewer returns the user as a viewer of the sender's objects.
func (r *Received) asViewer() audience.Viewer {
	v := audience.Viewer{ID: r.Me, Sent: r.Named}
	if r.Follows {
		v.Circles = []vocab.ID{r.Actor.Followers}
	}
	return v
}

// storeEarly stores a post from an Update that arrives before its Create. A server that retries
// failed deliveries may send the Update first. The Create later finds the post, and adds it to the
// feed. The post must be one that its Create would bring to the user: by an actor that the user
// follows, or addressed to the user by name. An Update whose audience does not include the user is
// ignored, because the Update came here for other users, who have the post.
func storeEarly(ctx context.Context, tx *user.Tx, r *Received, o *vocab.Object) error {
	if !r.Follows && !audience.Names(r.addressed(), r.Me) || !audience.OfObject(o, r.Actor.Followers).MaySee(r.asViewer()) {
		return ErrIgnored
	}
	o, err := approve(ctx, tx, r, o)
	if err != nil {
		return err
	}
	row := Stored(o, r.Now)
	if row.Raw, row.Readable, err = updatedForm(ctx, tx, r, o, nil); err != nil {
		return err
	}
	added, err := tx.Objects.Add(ctx, row)
	if err != nil || !added {
		return ignoredUnless(err)
	}
	return nil
}

// updateActor renews the stored copy of an actor to which the user has a relationship or that is
// in one of the user's groups, because deliveries use the inbox in the stored copy. The new copy
// is the document that was fetched from the actor's own server, not the one in the Update. If all
// relationships are ones that only the actor has asked for, and no group has the actor, the actor
// is a stranger, and no event tells of its Update.
func updateActor(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
	ties, err := tx.Relationships.FindAll(ctx, r.Actor.ID)
	if err != nil {
		return Effects{}, err
	}
	isStranger := !slices.ContainsFunc(ties, isWanted)
	if isStranger {
		groups, err := tx.Groups.ListOf(ctx, r.Actor.ID)
		if err != nil || len(groups)+len(ties) == 0 {
			return Effects{}, ignoredUnless(err)
		}
		isStranger = len(groups) == 0
	}
	changed, err := tx.Actors.Replace(ctx, r.Actor, r.Now)
	return Effects{Silent: isStranger, Unchanged: !changed}, err
}

// isWanted reports whether the user has asked for a relationship or accepted it.
func isWanted(r user.Relationship) bool {
	return r.Status == user.Accepted || r.Type != user.Follower && r.Direction != user.Inbound
}
