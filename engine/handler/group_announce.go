package handler

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A Group actor announces activities that others do in the group (FEP-1b12). For users who
// follow the group these activities take effect as if their actors had sent them. The group's
// signature proves only that the group announced them. So a post is fetched from its own server
// or needs a proof of its author, and a deletion is confirmed by the server of the post. The
// group is trusted for votes about posts in the group, and for the place of its own Announce in
// the feed. An activity that is announced by an actor that is not a Group has no effect.

// registerGroup registers a handler of Announce for each type of activity that a Group may
// announce. For types without an effect nothing is fetched.
func registerGroup(r *Registry, local *actor.Local) {
	with := map[string]Handler{
		vocab.Create:     {Needs: needsAnnounced, Received: ofGroup(showPost)},
		vocab.Update:     {Needs: needsAnnounced, Received: ofGroup(changePost)},
		vocab.Delete:     {Needs: needsAnnounced, Received: ofGroup(withdrawPost)},
		vocab.Like:       {Received: ofGroup(countGroupVote(local)), Votes: true},
		vocab.Dislike:    {Received: ofGroup(countGroupVote(local)), Votes: true},
		vocab.EmojiReact: {Received: ofGroup(countGroupVote(local)), Votes: true},
		vocab.Undo:       {Needs: needsRestored, Received: ofGroup(undoOfGroup(local))},
	}
	announce := r.OfType(vocab.Announce)
	for _, kind := range r.Types(func(Handler) bool { return true }) {
		h := with[kind]
		if h.Received == nil {
			h.Received = func(context.Context, *user.Tx, *Received) (Effects, error) { return Effects{}, ErrIgnored }
		}
		h.Concern, h.Notifies, h.Ordered, h.InFeed, h.ShowsObject = announce.Concern, announce.Notifies, announce.Ordered, announce.InFeed, announce.ShowsObject
		h.Check, h.Subject, h.Group = checkObject, announcedObject, true
		r.Register(Key{vocab.Announce, kind}, h)
	}
}

// announced is the activity in a Group's Announce.
type announced struct {
	id, by vocab.ID // the ids of the activity and of its actor
	kind   string
	doc    vocab.Doc
	object vocab.Ref
}

// announcedBy returns the activity that an Announce embeds. It returns false if the activity has
// no actor or no object, or its id is not on the server of its actor.
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

// Announced returns the actor and the object of the activity that a Group announces. The object is
// empty if it is missing. Both are empty if the actor is missing, or if the id of the activity is
// not on the actor's server.
func Announced(a *vocab.Activity) (by, object vocab.ID) {
	in, _ := announcedBy(a)
	return in.by, in.object.ID
}

// Voter returns the actor of the vote that a Group announces, or "" if the activity announces
// none. The vote is stored as that actor's, although nothing is fetched of the actor.
func (r *Registry) Voter(a *vocab.Activity) vocab.ID {
	if !r.Lookup(a).Votes {
		return ""
	}
	by, _ := Announced(a)
	return by
}

// announcedObject returns the object of the activity that a Group announces, or the id of that
// activity if Announced returns no object.
func announcedObject(a *vocab.Activity) vocab.ID {
	if _, object := Announced(a); object != "" {
		return object
	}
	return a.Object.ID
}

// IsGroup reports whether an actor is a Group, which may announce activities.
func IsGroup(a *vocab.Actor) bool { return a.Type == actor.GroupType }

// needsAnnounced names the object of the announced activity. A Create or Update has no effect if
// its actor and its object are on different servers, so no object is fetched for it. A Delete may
// name an object elsewhere, because moderators delete the objects of others.
func needsAnnounced(a *vocab.Activity) []vocab.ID {
	in, ok := announcedBy(a)
	if !ok || in.object.ID == "" || in.kind != vocab.Delete && !in.object.ID.SameOrigin(in.by) {
		return nil
	}
	return []vocab.ID{in.object.ID}
}

// ofGroup returns a function that applies an announced activity by the function effect, if the
// user follows the group.
func ofGroup(effect func(ctx context.Context, tx *user.Tx, r *Received, in announced) (Effects, error)) func(context.Context, *user.Tx, *Received) (Effects, error) {
	return func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
		in, ok := announcedBy(r.Activity)
		if !ok || !IsGroup(r.Actor) || !r.Follows {
			return Effects{}, ErrIgnored
		}
		return effect(ctx, tx, r, in)
	}
}

// publicPost returns the object of the announced activity: the one that was fetched from its
// server, or the embedded one if its author's proof replaces the fetch (see Received.Proven). It
// returns nil if the object is not a public post of the activity's actor.
func (in announced) publicPost(r *Received) *vocab.Object {
	o := r.Fetched[in.object.ID]
	if o == nil || !isPassable(o, r.Actor.ID) || !audience.IsPublic(o.Addressing) || !o.AttributedTo.Same(in.by) {
		return nil
	}
	return o
}

// showPost stores a post, and adds the Announce to the feed unless the group has announced the
// post before. A proof shows who wrote the post, but not that the post's id is the author's.
// Another actor of that server may have the id, and only the server can tell.
func showPost(ctx context.Context, tx *user.Tx, r *Received, in announced) (Effects, error) {
	o := in.publicPost(r)
	if o == nil {
		return Effects{}, ErrIgnored
	}
	o, err := approve(ctx, tx, r, o)
	if err != nil {
		return Effects{}, err
	}
	if kept, err := keepPassed(ctx, tx, r, o, !r.Proven); err != nil || !kept {
		return Effects{}, ignoredUnless(err)
	}
	if again, err := isRepeat(ctx, tx, r, o); err != nil || again {
		return Effects{}, ignoredUnless(err)
	}
	if err := tx.Reactions.Set(ctx, boostOf(r.Activity, o.ID, r.Actor.ID), r.Now); err != nil {
		return Effects{}, err
	}
	return Effects{}, enterFeed(ctx, tx, r.Activity, r.Actor.ID, r.Now)
}

// changePost replaces a stored post with the version that its server shows or its author's proof
// covers (see publicPost), unless the stored version is newer.
func changePost(ctx context.Context, tx *user.Tx, r *Received, in announced) (Effects, error) {
	o := in.publicPost(r)
	if o == nil {
		return Effects{}, ErrIgnored
	}
	before, err := tx.Objects.FindLiving(ctx, o.ID)
	if err != nil || before == nil || !before.AttributedTo.Same(o.AttributedTo) || isOlderCopy(o, before) {
		return Effects{}, ignoredUnless(err)
	}
	if o, err = approveEdit(ctx, tx, r, o, before); err != nil {
		return Effects{}, err
	}
	if err := replaceObject(ctx, tx, r, o, before, o.Updated); err != nil {
		return Effects{}, err
	}
	return r.dropActivity(ctx, tx)
}

// withdrawPost marks a post as deleted if its server shows it as deleted. Otherwise it removes
// only the group's boost of the post from the feed, because moderators can remove a post only from
// their own group.
func withdrawPost(ctx context.Context, tx *user.Tx, r *Received, in announced) (Effects, error) {
	before, err := tx.Objects.FindLiving(ctx, in.object.ID)
	if err != nil || before == nil {
		return Effects{}, ignoredUnless(err)
	}
	if o := r.Fetched[in.object.ID]; o != nil && o.Type == "Tombstone" {
		if _, err := tx.Objects.Bury(ctx, newGrave(before.ID, before.AttributedTo, before.Type, r.Now), r.Now); err != nil {
			return Effects{}, err
		}
		return r.dropActivity(ctx, tx)
	}
	boost, err := tx.Reactions.Find(ctx, boostOf(r.Activity, before.ID, r.Actor.ID))
	if err != nil || boost == nil {
		return Effects{}, ignoredUnless(err)
	}
	if err := removeReaction(ctx, tx, r.own(boost.Activity)); err != nil {
		return Effects{}, err
	}
	return r.dropActivity(ctx, tx)
}

// hasBrought reports whether the sender, a group, has brought a reaction, that is, whether the id
// of the reaction is on the group's server. A group may replace or take back only such reactions,
// and not those that actors of other servers have sent themselves.
func (r *Received) hasBrought(vote *user.Reaction) bool {
	return vote.Activity.SameOrigin(r.Actor.ID)
}

// countGroupVote counts a reaction to a post in the group, unless the reaction's actor is a local
// user or has sent a reaction itself. If the post is the user's, the reaction is also stored as an
// activity, for the notifications.
func countGroupVote(local *actor.Local) func(context.Context, *user.Tx, *Received, announced) (Effects, error) {
	return func(ctx context.Context, tx *user.Tx, r *Received, in announced) (Effects, error) {
		a, err := vocab.ActivityOf(in.doc, in.doc.JSON())
		if err != nil || local.IsLocal(in.by) {
			return Effects{}, ErrIgnored
		}
		o, err := r.postOfGroup(ctx, tx, in.object.ID)
		if err != nil || o == nil {
			return Effects{}, ignoredUnless(err)
		}
		a.ID = r.Activity.ID // the Announce's id, since the vote's id is not proven
		vote := reactionOf(a, o.ID, in.by)
		before, err := tx.Reactions.Find(ctx, vote)
		if err != nil || before != nil && !r.hasBrought(before) {
			return Effects{}, ignoredUnless(err)
		}
		if err := tx.Reactions.Set(ctx, vote, r.Now); err != nil {
			return Effects{}, err
		}
		if r.Mine(o.ID) {
			err := tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: a.ID, Direction: user.Inbound, Type: in.kind,
				Actor: in.by, Object: o.ID, Published: NotAfter(a.Published, r.Now), Raw: in.voteDoc(vote).JSON()})
			if err != nil {
				return Effects{}, err
			}
		}
		return r.dropActivity(ctx, tx)
	}
}

// voteDoc returns the activity of a vote as it is stored. It says only who voted, how and for
// what, because nothing proves that the rest of the group's document is the voter's.
func (in announced) voteDoc(vote user.Reaction) vocab.Doc {
	d := vocab.Doc{"id": string(vote.Activity), "type": vote.Type, "actor": string(vote.Actor), "object": string(vote.Object)}
	if vote.Emoji == "" {
		return d
	}
	d["content"] = vote.Emoji
	if from := emojiTag(in.doc, vote.Emoji); from != nil {
		tag := vocab.Doc{"type": "Emoji", "name": vote.Emoji}
		if picture, err := vocab.ParseID(from.Sub("icon").Text("url")); err == nil {
			tag["icon"] = vocab.Doc{"type": "Image", "url": string(picture)}
		}
		d["tag"] = []any{tag}
	}
	return d
}

// uncountGroupVote takes back a reaction to a post in the group that the group has brought. It
// does not take back a reaction of a local user.
func uncountGroupVote(local *actor.Local) func(context.Context, *user.Tx, *Received, announced) (Effects, error) {
	return func(ctx context.Context, tx *user.Tx, r *Received, in announced) (Effects, error) {
		object, err := in.object.Doc.Ref("object")
		if err != nil || local.IsLocal(in.by) {
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
		there, err := tx.Reactions.Find(ctx, reactionOf(vote, o.ID, in.by))
		if err != nil || there == nil || !mayTakeBack(vote.Type, there) || !r.hasBrought(there) {
			return Effects{}, ignoredUnless(err)
		}
		if err := removeReaction(ctx, tx, user.Owned{ID: there.Activity, Actor: in.by}); err != nil {
			return Effects{}, err
		}
		return r.dropActivity(ctx, tx)
	}
}

// postOfGroup returns the stored post with the given id if it is public and addressed to the
// sender, which is a group. Otherwise it returns nil.
func (r *Received) postOfGroup(ctx context.Context, tx *user.Tx, id vocab.ID) (*vocab.Object, error) {
	o, err := tx.Objects.FindLiving(ctx, id)
	if err != nil || o == nil || !audience.Names(o.Addressing, r.Actor.ID) || !audience.IsPublic(o.Addressing) {
		return nil, err
	}
	return o, nil
}

// dropActivity removes the stored Announce once it has taken effect. The activity emits no
// event.
func (r *Received) dropActivity(ctx context.Context, tx *user.Tx) (Effects, error) {
	return Effects{Silent: true}, tx.Activities.Remove(ctx, r.own(r.Activity.ID))
}
