package inbox

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// claimIDs is the first part of persist, for a whole batch. It claims the ids of the activities
// for their actors, so that each activity takes effect only once. It returns the ids that were
// free. It also reads in advance the rows that the steps will need from the user's database,
// and marks the activities of blocked actors.
func (p *applier) claimIDs(ctx context.Context, tx *user.Tx, batch []*applying) (map[user.Owned]bool, error) {
	ids := make([]user.Owned, len(batch))
	var actors []vocab.ID
	var objects []user.Owned
	for n, x := range batch {
		ids[n] = x.ownID()
		if version := p.version(x); version != ids[n] {
			ids = append(ids, version)
		}
		if p.Handlers.Answers(x.Activity) {
			ids = append(ids, x.undoneID())
		}
		actors = append(actors, x.actorsBehind(p.Handlers)...)
		objects = append(objects, user.Owned{ID: x.Activity.Object.ID, Actor: x.Actor.ID})
		for id, o := range x.fetched {
			objects = append(objects, user.Owned{ID: id, Actor: o.AttributedTo})
		}
	}
	claimed, err := tx.Activities.ClaimAhead(ctx, ids, actors, objects)
	if err != nil {
		return nil, err
	}
	return claimed, p.markBlocked(ctx, tx, batch)
}

// persist stores an activity that concerns the user, unless markBlocked has marked it. claimIDs
// has claimed the activity's id. The handler stores the object and the feed entry, and for some
// types the activity, too (see handler.Registry.IsApart). No row is added for another version of a
// stored activity, or when leavesNoRow is true.
func (p *applier) persist(ctx context.Context, x *applying) (err error) {
	isApart := p.Handlers.IsApart(x.Activity)
	if x.Follows, err = x.tx.Relationships.IsAccepted(ctx, user.Following, x.Actor.ID); err != nil {
		return err
	}
	x.Remembers = p.hasRoom(x)
	if x.Blocked = x.blocked && isApart && !p.isRefused(x); x.blocked && !x.Blocked {
		return p.dismissBlocked(ctx, x)
	}
	x.EncryptedChat = audience.Rule(p.Profiles.User(x.User).Permissions.EncryptedChat)
	if !p.isConcerned(x) {
		if continues, err := isContinuation(ctx, x); err != nil || !continues {
			x.reason = IgnoredUnrelated
			return cmp.Or(err, handler.ErrIgnored)
		}
	}
	if x.Fetched, err = p.selectReadable(ctx, x); err != nil {
		return err
	}
	if err := p.checkPermitted(ctx, x); err != nil {
		return hideRefused(ctx, x, err)
	}
	if x.asks, err = isAboutRequest(ctx, x, p.Handlers); err != nil {
		return err
	}
	x.Muted = p.isMuted(x)
	if isApart || x.again || p.leavesNoRow(x) {
		return nil
	}
	x.stored = true
	return x.tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: x.Activity.ID, Direction: user.Inbound, Type: x.Activity.Type,
		Actor: x.Actor.ID, Object: p.objectID(x), Published: handler.NotAfter(x.Activity.Published, x.Now), Raw: x.raw})
}

// objectID returns the id of the thing that the activity is about. If that thing was fetched,
// its id is spelled as its own server spells it.
func (p *applier) objectID(x *applying) vocab.ID {
	id := x.Activity.Object.ID
	if subject := p.Handlers.Lookup(x.Activity).Subject; subject != nil {
		id = subject(x.Activity)
	}
	if o := x.Fetched[id]; o != nil {
		return o.ID
	}
	return id
}

// isConcerned reports whether the activity concerns the user. It does when it names the user,
// when it is for followers or for everybody and the user follows the sender, or when it is about
// something that belongs to the user. If its type concerns all users who have stored something of
// its actor, the result is true as well; the handler then finds out whether the activity concerns
// this user.
func (p *applier) isConcerned(x *applying) bool {
	a, c := x.Activity, p.Handlers.Lookup(x.Activity).Concern
	toFollowers := audience.IsForFollowers(a, c, x.Actor.Followers)
	return x.Named || c.Holders || x.Follows && toFollowers || slices.ContainsFunc(audience.About(a, c), x.Mine)
}

// isContinuation reports whether the activity answers a post that the user has stored. Such an
// answer came because its forwarder passes on the answers to that post, so that threads are
// complete. The result is false when the user blocks a forwarder.
func isContinuation(ctx context.Context, x *applying) (bool, error) {
	post := handler.ObjectOf(x.Activity, x.fetched)
	if post == nil || post.InReplyTo == "" || x.Activity.Type != vocab.Create {
		return false, nil
	}
	held, err := x.tx.Objects.Find(ctx, post.InReplyTo)
	if err != nil || held == nil || held.DeletedAt != nil {
		return false, err
	}
	forwarders := x.forwarders()
	blocked, err := x.tx.Blocks.FindAmong(ctx, forwarders)
	return !slices.ContainsFunc(forwarders, func(id vocab.ID) bool { return blocked[id] }), err
}
