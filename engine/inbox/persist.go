package inbox

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// claimIDs is the first part of persist: it claims the ids of a batch for their actors, and
// returns those that were free. It also reads ahead what the steps will ask of the user's
// database, and marks activities of blocked actors.
func (p *applier) claimIDs(ctx context.Context, tx *db.Tx, batch []*applying) (map[db.Owned]bool, error) {
	ids := make([]db.Owned, len(batch))
	var actors []vocab.ID
	var objects []db.Owned
	for n, x := range batch {
		ids[n] = x.ownID()
		actors = append(actors, actorsBehind(x)...)
		objects = append(objects, db.Owned{ID: x.Activity.Object.ID, Actor: x.Actor.ID})
		for id, o := range x.fetched {
			objects = append(objects, db.Owned{ID: id, Actor: o.AttributedTo})
		}
	}
	claimed, err := tx.ClaimAhead(ctx, ids, actors, objects)
	if err != nil {
		return nil, err
	}
	return claimed, p.markBlocked(ctx, tx, batch)
}

// persist stores the activity for a user that it concerns, unless who is behind it is blocked.
// The claim of its id was made for the whole batch; object and feed entry are the handler's.
func (p *applier) persist(ctx context.Context, x *applying) error {
	isApart := p.Handlers.IsApart(x.Activity)
	if x.Blocked = x.blocked && isApart && !p.isRefused(x); x.blocked && !x.Blocked {
		return p.dismissBlocked(ctx, x)
	}
	following, err := x.tx.Relationship(ctx, db.Following, x.Actor.ID)
	if err != nil {
		return err
	}
	x.Follows = following != nil && following.Status == db.Accepted
	x.EncryptedChat = audience.Rule(p.Profiles.User(x.User).Permissions.EncryptedChat)
	if !p.isConcerned(x) {
		if continues, err := isContinuation(ctx, x); err != nil || !continues {
			x.reason = IgnoredUnrelated
			return ignoredUnless(err)
		}
	}
	if x.Fetched, err = p.selectReadable(ctx, x); err != nil {
		return err
	}
	if err := p.checkPermitted(ctx, x); err != nil {
		return err
	}
	x.Muted = p.isMuted(x)
	if isApart {
		return nil
	}
	x.stored = true
	return x.tx.AddActivity(ctx, db.Activity{ID: uuid.Must(uuid.NewV7()), URI: x.Activity.ID, Direction: db.Inbound, Type: x.Activity.Type,
		Actor: x.Actor.ID, Object: p.objectID(x), Published: handler.NotAfter(x.Activity.Published, x.Now), Raw: x.raw})
}

// objectID returns the id of what the activity is about, as its own origin writes it.
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

// isConcerned reports whether the user has to do with the activity: it is named, follows a sender
// who speaks to followers or everybody, or the activity is about something of the user's. Whether
// the user holds an object is for the handler to find out.
func (p *applier) isConcerned(x *applying) bool {
	a, c := x.Activity, p.Handlers.Lookup(x.Activity).Concern
	toFollowers := audience.IsForFollowers(a, c, x.Actor.Followers)
	return x.Named || c.Holders || x.Follows && toFollowers || slices.ContainsFunc(audience.About(a, c), x.Mine)
}

// isContinuation reports whether the activity answers a post that the user holds: it came because
// somebody passes on what is said to it, so that threads are whole. A forwarder that the user
// blocks completes none.
func isContinuation(ctx context.Context, x *applying) (bool, error) {
	parent, err := x.Activity.Object.Doc.Ref("inReplyTo")
	if err != nil || parent.ID == "" || x.Activity.Type != vocab.Create {
		return false, nil
	}
	held, err := x.tx.Object(ctx, parent.ID)
	if err != nil || held == nil || held.DeletedAt != nil {
		return false, err
	}
	forwarders := x.forwarders()
	blocked, err := x.tx.Blocked(ctx, forwarders)
	return !slices.ContainsFunc(forwarders, func(id vocab.ID) bool { return blocked[id] }), err
}

func ignoredUnless(err error) error {
	if err != nil {
		return err
	}
	return handler.ErrIgnored
}

// isVote reports whether a post only votes, which is private and no letter. Whether it counts is
// for its handler to know.
func isVote(x *applying) bool {
	o, err := vocab.ObjectOf(x.Activity.Object.Doc)
	if x.Activity.Object.Doc == nil {
		o, err = x.Fetched[x.Activity.Object.ID], nil
	}
	return err == nil && o != nil && handler.Votes(o)
}

// audienceOfPost returns for which audience the post is that an activity brings to its readers,
// nil when it brings none: what the object says, for that is shown, or the activity, when the
// object says nothing.
func audienceOfPost(a *vocab.Activity, sender *vocab.Actor, fetched map[vocab.ID]*vocab.Object) *audience.Audience {
	o := fetched[a.Object.ID]
	if o == nil && a.Type != vocab.Announce {
		o, _ = vocab.ObjectOf(a.Object.Doc) // which validateSchema has read
	}
	var post audience.Audience
	switch {
	case !handler.Brings(a.Type) || handler.UpdatesItself(a) || a.Type == vocab.Announce && o == nil:
		return nil
	case o != nil && len(o.All()) > 0:
		post = audience.OfObject(o, sender.Followers)
	default:
		post = audience.OfActivity(a, sender.Followers)
	}
	return &post
}

// checkPermitted drops posts that are for followers of which the user is none. A private one of a
// stranger, by the rule insecure_dm, becomes a request, unless it writes back, or the user has
// accepted its sender or settled otherwise (messaging.strangers).
func (p *applier) checkPermitted(ctx context.Context, x *applying) error {
	if handler.IsInvitation(x.Activity) {
		return p.checkInvited(ctx, x)
	}
	post := audienceOfPost(x.Activity, x.Actor, x.Fetched)
	if post == nil || post.IsPublic() || isVote(x) || x.Follows && !post.IsPrivate() {
		return nil
	}
	known, err := p.mayWrite(ctx, x)
	if err != nil || x.Follows && known {
		return err
	}
	if x.Activity.Type == vocab.Update {
		return p.checkRemainsPublic(ctx, x, *post)
	}
	r, err := p.standingOf(ctx, x)
	if err != nil {
		return err
	}
	r.Known = known
	if !audience.IsLetterOfStranger(*post, r) {
		if post.With(x.Activity.Addressing).MaySee(r.Viewer) {
			return nil
		}
		x.reason = IgnoredFollowers
		return handler.ErrIgnored
	}
	return p.receiveStranger(ctx, x)
}

// checkInvited drops the Welcome of a host that is a stranger, for a user who wants none of theirs.
func (p *applier) checkInvited(ctx context.Context, x *applying) error {
	if p.Profiles.User(x.User).Messaging.TakesStrangers() != registry.DropStrangers {
		return nil
	}
	if known, err := p.mayWrite(ctx, x); err != nil || known {
		return err
	}
	x.outcome, x.reason = outcomeStranger, IgnoredStranger
	return handler.ErrIgnored
}

// checkRemainsPublic ignores that a stranger makes a letter of a post that everybody could see:
// it would stand where letters of strangers do not.
func (p *applier) checkRemainsPublic(ctx context.Context, x *applying, post audience.Audience) error {
	held, err := x.tx.Object(ctx, x.Activity.Object.ID)
	if err != nil || held == nil || post.IsUnaddressed() {
		return err
	}
	before, err := held.Parse()
	if err != nil || !audience.IsPublic(before.Addressing) {
		return err
	}
	r, err := p.standingOf(ctx, x)
	if err != nil || !audience.IsLetterOfStranger(post, r) {
		return err
	}
	if err := p.receiveStranger(ctx, x); err != nil || !x.Request {
		return err
	}
	x.outcome, x.reason = outcomeStranger, IgnoredStranger
	return handler.ErrIgnored
}

// Bounds of requests.
const (
	requestsOfActor = 20
	requestsOfHost  = 200
	maxRequests     = 2000
)

// receiveStranger decides what becomes of a private message of a stranger.
func (p *applier) receiveStranger(ctx context.Context, x *applying) error {
	takes := p.Profiles.User(x.User).Messaging.TakesStrangers()
	if takes == registry.AllowStrangers || takes == registry.RequestStrangers && x.IsSealed() { // of which nobody reads a word
		return nil
	}
	if back, err := isAnswerToLetter(ctx, x); err != nil || back {
		return err
	}
	n, err := x.tx.CountRequests(ctx, x.Actor.ID, policy.RegistrableDomain(x.Actor.ID.Host()))
	if err != nil || n.Accepted {
		return err
	}
	if takes == registry.DropStrangers || n.OfActor >= requestsOfActor || n.OfHost >= requestsOfHost || n.All >= maxRequests {
		x.outcome, x.reason = outcomeStranger, IgnoredStranger
		return handler.ErrIgnored
	}
	x.Request = true
	return nil
}

// mayWrite reports whether the user permits the sender to write in private: by the rule, or in a
// conversation that both are in.
func (p *applier) mayWrite(ctx context.Context, x *applying) (bool, error) {
	var ties []string
	for _, kind := range db.RelationshipTypes {
		rel, err := x.tx.Relationship(ctx, kind, x.Actor.ID)
		if err != nil {
			return false, err
		}
		if rel != nil && rel.Status == db.Accepted {
			ties = append(ties, kind)
		}
	}
	met := audience.Rule(p.Profiles.User(x.User).Permissions.InsecureDM).IsMet(ties)
	if met || !x.IsSealed() {
		return met, nil
	}
	return x.tx.SharesConversation(ctx, x.Actor.ID)
}

// standingOf returns how the user stands to a stranger's post.
func (p *applier) standingOf(ctx context.Context, x *applying) (r audience.Recipient, err error) {
	r.ID, r.Circles = x.Me, []vocab.ID{p.Local.Followers(x.User)}
	for _, f := range x.Forwarders {
		following, err := x.tx.Relationship(ctx, db.Following, f.ID)
		if err != nil {
			return r, err
		}
		if following != nil && following.Status == db.Accepted {
			r.Circles = append(r.Circles, f.Followers)
		}
	}
	if slices.ContainsFunc(r.Circles, func(id vocab.ID) bool { return audience.Names(x.Activity.Addressing, id) }) {
		r.Answers, err = p.isInThread(ctx, x)
	}
	return r, err
}

// isInThread reports whether a post answers what the user holds: something of the user's that the
// sender may see, or what the user got from somebody else.
func (p *applier) isInThread(ctx context.Context, x *applying) (bool, error) {
	parent, err := x.Activity.Object.Doc.Ref("inReplyTo")
	if err != nil || parent.ID == "" {
		return false, nil
	}
	held, err := x.tx.Object(ctx, parent.ID)
	if err != nil || held == nil || held.DeletedAt != nil {
		return false, err
	}
	if !x.Mine(parent.ID) {
		return true, nil
	}
	o, err := held.Parse()
	if err != nil {
		return false, err
	}
	return handler.Sees(ctx, x.tx, p.Local, &x.Received, o)
}

// isAnswerToLetter reports whether a post answers a private one of the user's own that was for
// its author, by name or by a group.
func isAnswerToLetter(ctx context.Context, x *applying) (bool, error) {
	parent, err := x.Activity.Object.Doc.Ref("inReplyTo")
	if err != nil || !x.Mine(parent.ID) {
		return false, nil
	}
	held, err := x.tx.Object(ctx, parent.ID)
	if err != nil || held == nil {
		return false, err
	}
	letter, err := held.Parse()
	if err != nil || audience.IsPublic(letter.Addressing) {
		return false, err
	}
	if audience.Names(letter.Addressing, x.Actor.ID) {
		return true, nil
	}
	return handler.ByGroup(ctx, x.tx, held.URI, x.Actor.ID)
}
