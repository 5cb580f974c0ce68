package inbox

import (
	"context"
	"errors"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// isVote reports whether a post is only a vote in a poll. A vote is not public, but it does not
// count as a private message either. The handler of Create decides whether the vote counts.
func isVote(x *applying) bool {
	o := handler.ObjectOf(x.Activity, x.Fetched)
	return o != nil && handler.Votes(o)
}

// audienceOfPost returns the audience of the post that an activity brings to its readers, or
// nil if the activity brings no post. Readers see the object, so the object's audience counts.
// If the object is not known or has no addressing, the activity's audience counts.
func audienceOfPost(a *vocab.Activity, sender *vocab.Actor, fetched map[vocab.ID]*vocab.Object) *audience.Audience {
	o := handler.ObjectOf(a, fetched)
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

// checkPermitted drops a post for followers if the user is not one of them, and a post that is
// only for users of another server. receiveStranger decides about a private post by a stranger. A
// stranger is an actor that the rule insecure_dm does not permit to write to the user in private.
// checkStrangersEdit decides about an Update of a stranger's post.
func (p *applier) checkPermitted(ctx context.Context, x *applying) error {
	if handler.IsInvitation(x.Activity) {
		return p.checkInvited(ctx, x)
	}
	post := audienceOfPost(x.Activity, x.Actor, x.Fetched)
	if post != nil && post.IsLocal() && !post.With(x.Activity.Addressing).MaySee(audience.Viewer{ID: x.Me}) {
		x.reason = IgnoredFollowers
		return handler.ErrIgnored
	}
	casts := x.Activity.Type == vocab.Create && isVote(x) // other activities would store a vote as a post
	if post == nil || post.IsPublic() || casts || x.Follows && !post.IsPrivate() {
		return nil
	}
	known, err := p.isKnown(ctx, x)
	if err != nil || known && (x.Follows || post.IsPrivate() || x.Activity.Type == vocab.Update) {
		return err // a private post need not name the user: its recipients may be hidden
	}
	if x.Activity.Type == vocab.Update {
		return p.checkStrangersEdit(ctx, x, *post)
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

// hideRefused hides the stored version of a public post from everybody but the user if the user
// may not have the new version, which is less public. It returns the refusal of the new version,
// or an error.
func hideRefused(ctx context.Context, x *applying, refusal error) error {
	if x.Activity.Type != vocab.Update || !errors.Is(refusal, handler.ErrIgnored) {
		return refusal
	}
	if err := handler.HideNarrowed(ctx, x.tx, &x.Received); err != nil {
		return err
	}
	return refusal
}

// isAboutRequest reports whether an Update, a Delete or an Undo is about an activity or object of
// its actor that waits among the requests. Its event is then that of a request, because programs
// that may not know of the request may not learn of its end either, or get ids that the stranger
// chose.
func isAboutRequest(ctx context.Context, x *applying, handlers *handler.Registry) (bool, error) {
	if x.Activity.Type != vocab.Update && !handlers.Lookup(x.Activity).TakesBack || x.Activity.Object.ID == "" {
		return false, nil
	}
	senders, err := x.tx.Requests.FindSenders(ctx, x.Activity.Object.ID)
	return slices.Contains(senders, x.Actor.ID), err
}

// checkInvited drops a Welcome from a host that is a stranger, if the user wants no messages of
// strangers. The rule is the one for private messages: an actor that the user has written to in
// private, or whose request the user has accepted, is no stranger.
func (p *applier) checkInvited(ctx context.Context, x *applying) error {
	if p.Profiles.User(x.User).Messaging.TakesStrangers() != registry.DropStrangers {
		return nil
	}
	if known, err := p.isKnown(ctx, x); err != nil || known {
		return err
	}
	if _, knows, err := p.countRequests(ctx, x); err != nil || knows {
		return err
	}
	x.outcome, x.reason = outcomeStranger, IgnoredStranger
	return handler.ErrIgnored
}

// checkStrangersEdit ignores an Update by which a stranger turns a post that was no private message
// into one that would have to wait among the message requests. If the Update were applied, the
// message would replace the post in places where messages of strangers may not be. For the same
// reason it ignores an Update of such a message that comes before the message itself.
func (p *applier) checkStrangersEdit(ctx context.Context, x *applying, post audience.Audience) error {
	held, err := x.tx.Objects.Find(ctx, x.Activity.Object.ID)
	if err != nil {
		return err
	}
	if held == nil && !x.Named && !post.Names(x.Me) {
		return nil
	}
	if held != nil && post.IsUnaddressed() {
		return nil
	}
	r, err := p.standingOf(ctx, x)
	if err != nil || !audience.IsLetterOfStranger(post, r) {
		return err
	}
	if held != nil {
		if was, err := wasLetter(ctx, x, r); err != nil || was {
			return err
		}
	}
	if err := p.receiveStranger(ctx, x); err != nil || !x.Request {
		return err
	}
	x.outcome, x.reason = outcomeStranger, IgnoredStranger
	return handler.ErrIgnored
}

// wasLetter reports whether the version of the edited post that the user has is a private message
// already: an open request, or one that the user has accepted. An answer that names the user's
// followers or those of a forwarder is none, and neither is a post that nothing addresses.
func wasLetter(ctx context.Context, x *applying, r audience.Recipient) (bool, error) {
	held, err := x.tx.Threads.Find(ctx, x.Activity.Object.ID)
	if err != nil || held == nil || held.Waits {
		return held != nil && held.Waits, err
	}
	before, err := held.Parse()
	if err != nil {
		return false, err
	}
	to, err := held.AddressingOf(before)
	if err != nil {
		return false, err
	}
	was := audience.Of(to, before.AttributedTo, x.Actor.Followers)
	inCircle := slices.ContainsFunc(r.Circles, was.Names)
	return was.IsPrivate() && !inCircle && !audience.IsNarrowed(before.Doc) && (held.Create != nil || !was.IsUnaddressed()), nil
}

// Bounds of the open message requests of one user.
const (
	requestsOfActor = 20
	requestsOfHost  = 200
	maxRequests     = 2000
)

// receiveStranger decides whether a private message of a stranger is accepted, becomes a request
// or is ignored. It is accepted if the user's setting messaging.strangers is "allow". A message of
// an encrypted conversation is also accepted if the setting is "requests". With any setting, the
// message is accepted if it answers a private post of the user's own, if the user has written to
// the sender in private, or if the user has accepted an earlier request of the sender. So is a
// message of an encrypted group without a host that a device of the user has joined, since the
// group's members need not know each other. Otherwise the message is ignored if the setting is
// "drop" or as many requests are open as the bounds permit. In all other cases it becomes a
// request.
func (p *applier) receiveStranger(ctx context.Context, x *applying) error {
	takes := p.Profiles.User(x.User).Messaging.TakesStrangers()
	if takes == registry.AllowStrangers || takes == registry.RequestStrangers && p.Handlers.IsApart(x.Activity) { // a message that is stored apart shows no text to anybody
		return nil
	}
	if back, err := isAnswerToLetter(ctx, x); err != nil || back {
		return err
	}
	if p.Handlers.IsApart(x.Activity) {
		if joined, err := conversation.IsOfJoinedGroup(ctx, x.tx, x.Activity); err != nil || joined {
			return err
		}
	}
	n, knows, err := p.countRequests(ctx, x)
	if err != nil || knows {
		return err
	}
	if takes == registry.DropStrangers || n.OfActor >= requestsOfActor || n.OfHost >= requestsOfHost || n.All >= maxRequests {
		x.outcome, x.reason = outcomeStranger, IgnoredStranger
		return handler.ErrIgnored
	}
	x.Request = true
	return nil
}

// countRequests counts the message requests that are open. The result "knows" is true if the
// sender needs no request, because the user has written to the sender in private or has accepted
// an earlier request of the sender.
func (p *applier) countRequests(ctx context.Context, x *applying) (n user.RequestCounts, knows bool, err error) {
	knows, err = x.tx.Relationships.HasWrittenTo(ctx, p.Local.Followers(x.User), x.Actor.ID)
	if err != nil || knows {
		return n, knows, err
	}
	n, err = x.tx.Requests.Count(ctx, x.Actor.ID, policy.RegistrableDomain(x.Actor.ID.Host()))
	return n, n.Accepted, err
}

// isKnown reports whether the user permits the sender to write the activity in private; see
// mayWrite. Only an activity that is stored among the messages of encrypted conversations counts
// as sealed, because the type of an object proves nothing.
func (p *applier) isKnown(ctx context.Context, x *applying) (bool, error) {
	return mayWrite(ctx, x.tx, p.Profiles.User(x.User), x.Actor.ID, p.Handlers.IsApart(x.Activity))
}

// mayWrite reports whether a user permits an actor to write in private. The rule insecure_dm may
// permit it. For a sealed (encrypted) message it is also enough that the user and the actor are in
// the same encrypted conversation.
func mayWrite(ctx context.Context, tx *user.Tx, u registry.User, actor vocab.ID, sealed bool) (bool, error) {
	all, err := tx.Relationships.FindAll(ctx, actor)
	if err != nil {
		return false, err
	}
	var ties []string
	for _, rel := range all {
		if rel.Status == user.Accepted {
			ties = append(ties, rel.Type)
		}
	}
	met := audience.Rule(u.Permissions.InsecureDM).IsMet(ties)
	if met || !sealed {
		return met, nil
	}
	return tx.Conversations.IsShared(ctx, actor)
}

// standingOf returns the user's relation to a stranger's post.
func (p *applier) standingOf(ctx context.Context, x *applying) (r audience.Recipient, err error) {
	r.ID, r.Circles = x.Me, []vocab.ID{p.Local.Followers(x.User)}
	for _, f := range x.Forwarders {
		follows, err := x.tx.Relationships.IsAccepted(ctx, user.Following, f.ID)
		if err != nil {
			return r, err
		}
		if follows {
			r.Circles = append(r.Circles, f.Followers)
		}
	}
	if slices.ContainsFunc(r.Circles, func(id vocab.ID) bool { return audience.Names(x.Activity.Addressing, id) }) {
		r.Answers, err = p.isInThread(ctx, x)
	}
	return r, err
}

// isInThread reports whether a post answers a post that the user has stored: one of the user's
// own that the sender may see, or one that the user received from another actor.
func (p *applier) isInThread(ctx context.Context, x *applying) (bool, error) {
	post := handler.ObjectOf(x.Activity, x.Fetched)
	if post == nil || post.InReplyTo == "" {
		return false, nil
	}
	held, err := x.tx.Objects.Find(ctx, post.InReplyTo)
	if err != nil || held == nil || held.DeletedAt != nil {
		return false, err
	}
	if !x.Mine(post.InReplyTo) {
		return true, nil
	}
	o, err := held.Parse()
	if err != nil {
		return false, err
	}
	return handler.Sees(ctx, x.tx, p.Local.Addresses, &x.Received, o)
}

// isAnswerToLetter reports whether a post answers a private post of the user's own that was
// addressed to the answer's author, by name or through a group.
func isAnswerToLetter(ctx context.Context, x *applying) (bool, error) {
	post := handler.ObjectOf(x.Activity, x.Fetched)
	if post == nil || !x.Mine(post.InReplyTo) {
		return false, nil
	}
	held, err := x.tx.Objects.Find(ctx, post.InReplyTo)
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
