package handler

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A Group actor announces the activities of others in it (FEP-1b12). For users who follow the
// group these activities take effect as their actors'. The group's signature proves only that the
// group announced them: a post needs its own server or a proof of its author, and a deletion the
// server of the post. The group's word is enough for votes about its own posts, and for its own
// place in the feed. Activities that other actors announce have no effect.

// groupType is the type of the actors that announce activities.
const groupType = "Group"

// registerGroup registers a handler for each type of activity that a Group announces. Types
// without an effect are not fetched.
func registerGroup(r *Registry, local *actor.Local) {
	with := map[string]Handler{
		vocab.Create:     {Needs: needsAnnounced, Received: ofGroup(showPost)},
		vocab.Update:     {Needs: needsAnnounced, Received: ofGroup(changePost)},
		vocab.Delete:     {Needs: needsAnnounced, Received: ofGroup(withdrawPost)},
		vocab.Like:       {Received: ofGroup(countGroupVote(local))},
		vocab.Dislike:    {Received: ofGroup(countGroupVote(local))},
		vocab.EmojiReact: {Received: ofGroup(countGroupVote(local))},
		vocab.Undo:       {Received: ofGroup(uncountGroupVote)},
	}
	like := r.OfType(vocab.Announce)
	for _, kind := range r.Types(func(Handler) bool { return true }) {
		h := with[kind]
		if h.Received == nil {
			h.Received = func(context.Context, Tx, *Received) (Effects, error) { return Effects{}, ErrIgnored }
		}
		h.Concern, h.Notifies, h.Ordered, h.InFeed, h.ShowsObject = like.Concern, like.Notifies, like.Ordered, like.InFeed, like.ShowsObject
		h.Check, h.Subject, h.Group = checkObject, announcedObject, true
		r.Register(Key{vocab.Announce, kind}, h)
	}
}

// announced is an activity that a group announces.
type announced struct {
	id, by vocab.ID // the activity, and who did it
	kind   string
	doc    vocab.Doc
	object vocab.Ref
}

// announcedBy returns the activity that an Announce embeds. It reports false unless the actor's
// server may have issued it.
func announcedBy(a *vocab.Activity) (announced, bool) {
	in := announced{id: a.Object.ID, kind: a.Object.Type(), doc: a.Object.Doc}
	by, err := in.doc.Ref("actor")
	if err != nil || by.ID == "" || !in.id.SameOrigin(by.ID) {
		return in, false
	}
	in.by = by.ID
	in.object, err = in.doc.Ref("object")
	return in, err == nil && !in.object.IsZero()
}

// Announced returns the actor and the object of the activity that a Group announces; both are
// empty when they are missing.
func Announced(a *vocab.Activity) (by, object vocab.ID) {
	in, _ := announcedBy(a)
	return in.by, in.object.ID
}

// announcedObject returns the object of the activity that a Group announces, or that activity when
// it has none.
func announcedObject(a *vocab.Activity) vocab.ID {
	if _, object := Announced(a); object != "" {
		return object
	}
	return a.Object.ID
}

// IsGroup reports whether an actor is a Group, which may announce activities.
func IsGroup(a *vocab.Actor) bool { return a.Type == groupType }

// needsAnnounced names the object of the announced activity. A Create or Update of an object on
// another server than its actor's has no effect, and nothing is fetched for it; moderators delete
// the objects of others.
func needsAnnounced(a *vocab.Activity) []vocab.ID {
	in, ok := announcedBy(a)
	if !ok || in.object.ID == "" || in.kind != vocab.Delete && !in.object.ID.SameOrigin(in.by) {
		return nil
	}
	return []vocab.ID{in.object.ID}
}

// ofGroup applies an announced activity for a user who follows the group.
func ofGroup(effect func(ctx context.Context, tx Tx, r *Received, in announced) (Effects, error)) func(context.Context, Tx, *Received) (Effects, error) {
	return func(ctx context.Context, tx Tx, r *Received) (Effects, error) {
		in, ok := announcedBy(r.Activity)
		if !ok || !IsGroup(r.Actor) || !r.Follows {
			return Effects{}, ErrIgnored
		}
		return effect(ctx, tx, r, in)
	}
}

// publicPost returns the object of the announced activity, as its server shows it; nil unless it
// is a public post of the activity's actor.
func (in announced) publicPost(r *Received) *vocab.Object {
	o := r.Fetched[in.object.ID]
	if o == nil || !isPassable(o, r.Actor.ID) || !audience.IsPublic(o.Addressing) || !o.AttributedTo.Same(in.by) {
		return nil
	}
	return o
}

// showPost stores a post, and gives the Announce its place in the feed, once for each group.
func showPost(ctx context.Context, tx Tx, r *Received, in announced) (Effects, error) {
	o := in.publicPost(r)
	if o == nil {
		return Effects{}, ErrIgnored
	}
	if kept, err := keepObject(ctx, tx, o, true, r.Now); err != nil || !kept {
		return Effects{}, ignoredUnless(err)
	}
	if again, err := isRepeat(ctx, tx, r, o); err != nil || again {
		return Effects{}, ignoredUnless(err)
	}
	boost := db.Reaction{Object: o.ID, Actor: r.Actor.ID, Kind: db.Announce, Type: vocab.Announce, Activity: r.Activity.ID}
	if err := tx.SetReaction(ctx, boost, r.Now); err != nil {
		return Effects{}, err
	}
	return Effects{}, enterFeed(ctx, tx, r.Activity, r.Actor.ID, r.Now)
}

// changePost replaces a post that the user holds with the version that its server shows.
func changePost(ctx context.Context, tx Tx, r *Received, in announced) (Effects, error) {
	o := in.publicPost(r)
	if o == nil {
		return Effects{}, ErrIgnored
	}
	stored, err := tx.Object(ctx, o.ID)
	if err != nil || stored == nil || stored.DeletedAt != nil {
		return Effects{}, ignoredUnless(err)
	}
	before, err := stored.Parse()
	if err != nil || !before.AttributedTo.Same(o.AttributedTo) {
		return Effects{}, ignoredUnless(err)
	}
	doc, readable := o.Stored()
	changed, err := tx.ReplaceObject(ctx, o.ID, doc, readable, NotAfter(o.Updated, r.Now))
	if err != nil || !changed {
		return Effects{}, ignoredUnless(err)
	}
	return r.dropActivity(ctx, tx)
}

// withdrawPost buries a post that its server shows as deleted. A post that still stands leaves the
// user's feed as the group's: moderators remove posts from their group, and from nowhere else.
func withdrawPost(ctx context.Context, tx Tx, r *Received, in announced) (Effects, error) {
	stored, err := tx.Object(ctx, in.object.ID)
	if err != nil || stored == nil || stored.DeletedAt != nil {
		return Effects{}, ignoredUnless(err)
	}
	before, err := stored.Parse()
	if err != nil {
		return Effects{}, err
	}
	if o := r.Fetched[in.object.ID]; o != nil && o.Type == "Tombstone" {
		if _, err := tx.BuryObject(ctx, newGrave(before.ID, before.AttributedTo, before.Type, r.Now), r.Now); err != nil {
			return Effects{}, err
		}
		return r.dropActivity(ctx, tx)
	}
	boost, err := tx.Reaction(ctx, db.Reaction{Object: before.ID, Actor: r.Actor.ID, Kind: db.Announce})
	if err != nil || boost == nil {
		return Effects{}, ignoredUnless(err)
	}
	if _, err := tx.RemoveReaction(ctx, boost.Activity, r.Actor.ID); err != nil {
		return Effects{}, err
	}
	if err := tx.RemoveActivity(ctx, r.own(boost.Activity)); err != nil {
		return Effects{}, err
	}
	return r.dropActivity(ctx, tx)
}

// countGroupVote counts a reaction to a post of the group. If the post is the user's, the reaction
// is stored as an activity, too, for the notifications.
func countGroupVote(local *actor.Local) func(context.Context, Tx, *Received, announced) (Effects, error) {
	return func(ctx context.Context, tx Tx, r *Received, in announced) (Effects, error) {
		a, err := vocab.ActivityOf(in.doc, in.doc.JSON())
		if err != nil || local.IsLocal(in.by) {
			return Effects{}, ErrIgnored
		}
		o, err := r.postOfGroup(ctx, tx, in.object.ID)
		if err != nil || o == nil {
			return Effects{}, ignoredUnless(err)
		}
		a.ID = r.Activity.ID // the group's: its word takes no id from anybody
		vote := reactionOf(a, o.ID, in.by)
		if err := tx.SetReaction(ctx, vote, r.Now); err != nil {
			return Effects{}, err
		}
		if r.Mine(o.ID) {
			err := tx.AddActivity(ctx, db.Activity{ID: uuid.Must(uuid.NewV7()), URI: a.ID, Direction: db.Inbound, Type: in.kind,
				Actor: in.by, Object: o.ID, Published: NotAfter(a.Published, r.Now), Raw: a.Raw})
			if err != nil {
				return Effects{}, err
			}
		}
		return r.dropActivity(ctx, tx)
	}
}

// uncountGroupVote takes back a reaction to a post of the group.
func uncountGroupVote(ctx context.Context, tx Tx, r *Received, in announced) (Effects, error) {
	object, err := in.object.Doc.Ref("object")
	if err != nil {
		return Effects{}, ErrIgnored
	}
	o, err := r.postOfGroup(ctx, tx, object.ID)
	if err != nil || o == nil {
		return Effects{}, ignoredUnless(err)
	}
	vote, err := vocab.ActivityOf(in.object.Doc, in.object.Doc.JSON())
	if err != nil || !vote.Actor.Same(in.by) {
		return Effects{}, ErrIgnored
	}
	there, err := tx.Reaction(ctx, reactionOf(vote, o.ID, in.by))
	if err != nil || there == nil || there.Type != vote.Type {
		return Effects{}, ignoredUnless(err)
	}
	if _, err := tx.RemoveReaction(ctx, there.Activity, in.by); err != nil {
		return Effects{}, err
	}
	if err := tx.RemoveActivity(ctx, db.Owned{ID: there.Activity, Actor: in.by}); err != nil {
		return Effects{}, err
	}
	return r.dropActivity(ctx, tx)
}

// postOfGroup returns a public post that the user holds and that names the sender, which is a
// group; else nil.
func (r *Received) postOfGroup(ctx context.Context, tx Tx, id vocab.ID) (*vocab.Object, error) {
	stored, err := tx.Object(ctx, id)
	if err != nil || stored == nil || stored.DeletedAt != nil {
		return nil, err
	}
	o, err := stored.Parse()
	if err != nil || !audience.Names(o.Addressing, r.Actor.ID) || !audience.IsPublic(o.Addressing) {
		return nil, err
	}
	return o, nil
}

// dropActivity removes an activity, of which only the effect is kept, and emits no event.
func (r *Received) dropActivity(ctx context.Context, tx Tx) (Effects, error) {
	return Effects{Silent: true}, tx.RemoveActivity(ctx, r.own(r.Activity.ID))
}
