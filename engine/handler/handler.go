// Package handler defines the effects of each type of activity on the user who receives or sends
// it, and the registry that finds the handler of an activity.
//
// A handler runs inside the transaction that stores the activity. It does not use the network,
// Redis or another database. Needs names the objects that a handler needs from other servers,
// and Received.Fetched holds them.
package handler

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Handler holds all that the engine knows about one type of activity: functions, each of which
// may be nil, and data. Code that treats some types differently asks the registry for these
// types.
type Handler struct {
	// Check refuses an activity that cannot take effect because of its form or the origins of
	// its ids. It is called once per request.
	Check func(a *vocab.Activity) error
	// Needs names the objects that must be fetched from their own servers before Received.
	Needs func(a *vocab.Activity) []vocab.ID
	// Received applies the activity for a user who received it.
	Received func(ctx context.Context, tx *user.Tx, r *Received) (Effects, error)
	// Undone takes back an activity that the user received, and reports whether there was
	// anything to take back.
	Undone func(ctx context.Context, tx *user.Tx, r *Received, d doing) (bool, error)
	// Sent applies the activity for the user who sends it.
	Sent func(ctx context.Context, tx *user.Tx, s *Sent) error
	// SentUndone takes back an activity that the user sent.
	SentUndone func(ctx context.Context, tx *user.Tx, s *Sent) error
	// Again reports whether a received activity takes effect once more although its id is in
	// use (see Registry.ComesAgain), and makes room for its row. If Again is nil, it never does.
	Again func(ctx context.Context, tx *user.Tx, r *Received) (bool, error)
	// Subject names the thing that a received activity is about. If Subject is nil, that thing
	// is the activity's object.
	Subject func(a *vocab.Activity) vocab.ID
	// About names the object or group that an activity of the user makes, changes or is about.
	// If About is nil, the activity is about an actor.
	About func(a *vocab.Activity) vocab.ID
	// Version tells apart the activities that an actor sends under one id (see VersionID). If
	// Version is nil or returns the zero time, the activity has no versions.
	Version func(a *vocab.Activity) time.Time
	// Apart reports whether the handler itself stores a received activity, in place of the step
	// persist. Such an activity is handled even if the user blocks its actor. If Apart is nil,
	// the handler never stores it.
	Apart func(a *vocab.Activity) bool

	// In the comments of the fields below, it means an activity of the type.

	Concern  audience.Concern // the users that it concerns without addressing them
	Notifies Notice           // when it is shown in the feed of notifications
	Aliases  []Alias          // further events that it causes when it is received

	Final       bool // Undo has no effect on it
	TakesAway   bool // it takes effect, unseen, even if the user blocks its actor
	TakesBack   bool // it takes back something that its actor sent and that nobody may see any more
	Ends        bool // it goes to all who got the thing that it ends, even to blocked actors
	Lasting     bool // its deliveries are retried for 30 days
	Ordered     bool // its deliveries and those of its Undo keep their order; see OrderOf
	ChangesWho  bool // it or its Undo changes a follow, a friendship, a block or the members of a group
	InFeed      bool // it is shown in the feeds of the users that it is sent to
	Words       bool // it contains the text of an object that its actor wrote
	Authored    bool // it is about an object of its actor
	ShowsObject bool // it is shown together with its object
	Emoji       bool // its content may be an emoji
	Group       bool // it is a Group's Announce of another actor's activity
	Votes       bool // it is a Group's Announce of a vote, which is stored as that of the voter
	Relates     bool // it is stored as long as there is a relationship with its actor
	Unnamed     bool // it may come without an id, as Mastodon sends it
	Answers     bool // it answers a Follow, an Offer or a request, maybe automatically
}

// Notice says when an activity is shown in the feed of notifications.
type Notice uint8

// The notices.
const (
	Unnoticed     Notice = iota
	NoticeAlways         // for every object
	NoticeOfOwn          // if it is about the user, something of the user's, or nothing with an id
	NoticeOfNamed        // if it names the user, or answers or quotes something of the user's
)

// Alias is a further event that some received activities of a type cause.
type Alias struct {
	Event string
	Is    func(r *Received) bool
}

// LockName names the lock that a transaction takes before it reads an object of the user in
// order to change it.
func LockName(object vocab.ID) string { return "object " + string(object) }

// ErrIgnored says that an activity does not concern the user: it is not stored, and causes no
// event. Rows that the handler wrote stay, such as the Tombstone of an object that never
// arrived.
var ErrIgnored = errors.New("the activity is not for this user")

// ErrContested says that the id of the object is already used by another author on the sender's
// server. Only that server can tell whose object it is. The handler did nothing. It succeeds once
// Fetched holds the object, and the server shows the object as the sender's.
var ErrContested = errors.New("somebody else of that server uses the id")

// Received is an activity with all that a handler knows about a user who received it.
type Received struct {
	User       vocab.Username
	Me         vocab.ID // the user's actor
	Activity   *vocab.Activity
	Actor      *vocab.Actor               // the verified sender
	Fetched    map[vocab.ID]*vocab.Object // the objects that Needs named; shared with other recipients, as Activity and Actor are
	Proven     bool                       // the object in Fetched is the one that a Group's Announce embeds, on its author's proof; its server was not asked
	Target     *vocab.Actor               // the target of a Move that both accounts confirm; shared, too
	Named      bool                       // it names the user, or its actor sent it to the user's inbox
	Forwarders []*vocab.Actor             // the actors that sent it, if these are not its own actor; shared, too
	Follows    bool                       // the user follows the sender
	Muted      bool                       // the user does not want to see it or be notified of it
	Request    bool                       // it is a stranger's private message, which waits among the requests; for its event, it may also be about one
	Blocked    bool                       // the user blocks the sender, or the policy refuses the author of the message; only set if the handler stores the activity itself (Apart)
	Now        time.Time                  // when it arrived
	Signed     time.Time                  // when the request that brought it was signed, or an earlier time; zero if it comes from a local user, or from the journal and a forwarder
	Remembers  bool                       // there is room to store ids of the sender
	Applied    time.Time                  // when it takes effect, and when the deliveries that it causes are due; maybe long after Now

	EncryptedChat audience.Rule // the user's rule for encrypted conversations of two

	// Tells reports whether the handler may add an event of its own. The parameter trust is
	// the user's trust in the actor who causes the event. Tells counts the events that it does
	// not permit.
	Tells func(trust string) bool

	// Rejects reports whether the sender and its domain may cause one more Reject that the user
	// did not ask for, and counts it.
	Rejects func() bool

	Refuses func(vocab.ID) bool // reports whether the policy refuses an actor
	Mutes   func(vocab.ID) bool // reports whether the user mutes an actor
}

// Effects is the result of a handler for an activity that a user received. The later steps of
// the pipeline use it, even if the activity was ignored.
type Effects struct {
	Changed       bool       // a relationship has changed
	Followed      bool       // the user follows the sender from now on
	Unfollowed    bool       // the user does not follow the sender any more
	Silent        bool       // no event tells of the activity
	Unchanged     bool       // everything is stored as before; no event tells of the activity if its id was claimed before
	Disabled      []vocab.ID // the claimed ids of an activity of the sender that must not take effect any more
	Quotes        bool       // it is the first activity that tells of this quote of the user's post
	Undecryptable string     // why the user's devices cannot use the message in it, if they cannot
	Mislabeled    bool       // the labels of the message in it contradict the MLS header
	Remembered    bool       // the user's database stores an id of the sender
	TakenAway     vocab.ID   // the id of something that a stranger deleted or undid before it arrived; the id is not stored
}

// Trust returns how far the user trusts the sender, as far as the activity has taken effect.
func (r *Received) Trust(ctx context.Context, tx *user.Tx) (string, error) {
	if r.Follows {
		return user.TrustContact, nil
	}
	for _, kind := range user.FriendTypes {
		if is, err := tx.Relationships.IsAccepted(ctx, kind, r.Actor.ID); err != nil || is {
			return user.TrustContact, err
		}
	}
	return user.TrustStranger, nil
}

// isReached reports whether the activity was sent to the user: it names the user, or the user
// follows the sender. Otherwise it only concerns something of the user's.
func (r *Received) isReached() bool { return r.Named || r.Follows }

// IsSealed reports whether the object of the activity has the type of an encrypted message. That
// does not prove that it is one; see Registry.IsApart.
func (r *Received) IsSealed() bool {
	return r.post().Sealed() != ""
}

// own returns an id together with the sender as its owner.
func (r *Received) own(id vocab.ID) user.Owned { return user.Owned{ID: id, Actor: r.Actor.ID} }

// Mine reports whether id is that of the user, or of something that the user made.
func (r *Received) Mine(id vocab.ID) bool {
	rest, ok := strings.CutPrefix(string(id.Canonical()), string(r.Me))
	return ok && (rest == "" || strings.ContainsAny(rest[:1], "/?#"))
}

// Sent is an activity that a user sends.
type Sent struct {
	User     vocab.Username
	Actor    *vocab.Actor // the user's own actor
	Activity *vocab.Activity
	Object   *user.Object   // the stored object that an Update or Delete is about
	Target   *vocab.Actor   // the actor that a Follow, Offer, Accept, Reject, Block, Add, Remove or Undo is about
	Quoted   *vocab.Actor   // the author of the post that a Create quotes, if the author is asked to approve the quote
	Spelling vocab.Spelling // how other servers write the ids that the activity names
	Request  vocab.ID       // the stranger whose messages an Accept or Reject is about
	Group    *user.Group    // the group that a Create, Delete, Add or Remove is about
	Members  []user.Unnamed // the recipients that it reaches through the user's groups
	// Stream is the stream that an Add or Remove is about. If Group and Stream are nil, the Add or
	// Remove is about the pins.
	Stream *user.Stream
	Now    time.Time
}

// Key is the type, with or without an object type, for which a handler is registered.
type Key struct {
	Type       string
	ObjectType string // empty matches any object
}

// Registry finds the handler of an activity.
type Registry struct {
	handlers map[Key]Handler
	profiles Profiles
}

// Profiles returns the settings of a user.
type Profiles interface {
	User(u vocab.Username) registry.User
}

// New returns a registry with all handlers of this engine.
func New(local *actor.Local, profiles Profiles) *Registry {
	r := &Registry{handlers: map[Key]Handler{}, profiles: profiles}
	r.Register(Key{Type: vocab.Follow}, newFollow(local, profiles))
	r.Register(Key{Type: vocab.Accept}, newAccept(local))
	r.Register(Key{Type: vocab.Reject}, newReject(local))
	r.Register(Key{Type: vocab.Offer}, newOffer())
	r.Register(Key{Type: vocab.Offer, ObjectType: vocab.Relationship}, newFriendRequest(local))
	r.Register(Key{Type: vocab.Create}, newCreate(local))
	r.Register(Key{Type: vocab.Update}, newUpdate())
	r.Register(Key{Type: vocab.Delete}, newDelete(local, r))
	r.Register(Key{Type: vocab.Like}, newLike(local))
	r.Register(Key{Type: vocab.Dislike}, newDislike(local))
	r.Register(Key{Type: vocab.EmojiReact}, newEmojiReact(local))
	r.Register(Key{Type: vocab.Announce}, newAnnounce())
	r.Register(Key{Type: vocab.Add}, newAdd())
	r.Register(Key{Type: vocab.Remove}, newRemove())
	r.Register(Key{Type: vocab.Undo}, newUndo(r))
	r.Register(Key{Type: vocab.Block}, newBlock(local))
	r.Register(Key{Type: vocab.Move}, newMove(local))
	r.Register(Key{Type: vocab.Flag}, newFlag())
	r.Register(Key{Type: vocab.QuoteRequest}, newQuoteRequest(local, profiles))
	registerGroup(r, local)
	registerMessages(r, local)
	return r
}

// Register adds a handler. It panics if the key already has a handler.
func (r *Registry) Register(k Key, h Handler) {
	if _, twice := r.handlers[k]; twice {
		panic("handler: two handlers for " + k.Type + "(" + k.ObjectType + ")")
	}
	r.handlers[k] = h
}

// Lookup returns the handler for the type and object type of an activity. If there is none, it
// returns the handler for the type alone, or else the zero Handler, which does nothing.
// Activities of unknown types are stored and emitted.
func (r *Registry) Lookup(a *vocab.Activity) Handler {
	kind := a.Object.Type()
	if sealed := a.Object.Doc.Sealed(); sealed != "" {
		kind = sealed
	}
	if h, ok := r.handlers[Key{a.Type, kind}]; ok {
		return h
	}
	return r.handlers[Key{Type: a.Type}]
}

// VersionID returns the id under which this version of an activity takes effect once, although
// another version may have come under the activity's own id. It is the activity's own id if there
// are no versions. An activity that takes something back is a version of its own, because BookWyrm
// sends a Delete under the id of the Create. So are the Accept and the Reject of each request,
// because Hubzilla sends all its Accepts of one contact under the same id.
func (r *Registry) VersionID(a *vocab.Activity) vocab.ID {
	own, h := a.ID.Canonical(), r.Lookup(a)
	switch {
	case h.Version != nil && !h.Version(a).IsZero():
		return own + " " + vocab.ID(h.Version(a).Format(time.RFC3339Nano))
	case h.TakesBack:
		return own + " " + vocab.ID(a.Type)
	case h.Answers && a.Object.ID != "":
		return answerVersion(own, a.Type, a.Object.ID)
	}
	return own
}

// answerVersion returns the id of a version of an answer; object is the id of what it answers.
func answerVersion(answer vocab.ID, kind string, object vocab.ID) vocab.ID {
	return answer.Canonical() + " " + vocab.ID(kind) + " " + object.Canonical()
}

// UndoneID returns the id that is claimed, beside the activity's own id, when an answer is undone
// before it arrives. Its own id does not keep the answer from taking effect (see VersionID).
func UndoneID(answer vocab.ID) vocab.ID { return answer.Canonical() + " undone" }

// Answers reports whether an activity is an Accept or a Reject.
func (r *Registry) Answers(a *vocab.Activity) bool { return r.Lookup(a).Answers }

// IsApart reports whether the handler itself stores an activity.
func (r *Registry) IsApart(a *vocab.Activity) bool {
	h := r.Lookup(a)
	return h.Apart != nil && h.Apart(a)
}

// Knows reports whether the handler of an activity has a function Received. Without that function
// the activity is stored, and has no effect.
func (r *Registry) Knows(a *vocab.Activity) bool { return r.Lookup(a).Received != nil }

// Check refuses an activity that cannot take effect for any recipient.
func (r *Registry) Check(a *vocab.Activity) error {
	if err := checkOrigin(a); err != nil {
		return err
	}
	if err := vocab.CheckBounds(a.Doc, ""); err != nil {
		return err
	}
	if err := vocab.CheckBounds(a.Object.Doc, "/object"); err != nil {
		return err
	}
	if h := r.Lookup(a); h.Check != nil {
		return h.Check(a)
	}
	return nil
}

// Needs names the objects that must be fetched before an activity can be applied.
func (r *Registry) Needs(a *vocab.Activity) []vocab.ID {
	if h := r.Lookup(a); h.Needs != nil {
		return h.Needs(a)
	}
	return nil
}

// Received applies the activity for a user who received it.
func (r *Registry) Received(ctx context.Context, tx *user.Tx, x *Received) (Effects, error) {
	h := r.Lookup(x.Activity)
	if h.Received == nil {
		return Effects{}, nil
	}
	e, err := h.Received(ctx, tx, x)
	if err == nil && e.Changed {
		err = r.closePair(ctx, tx, x.User, x.Me, x.Actor.ID, false, x.Now)
	}
	return e, err
}

// Sent applies the activity for the user who sends it.
func (r *Registry) Sent(ctx context.Context, tx *user.Tx, s *Sent) error {
	h := r.Lookup(s.Activity)
	if h.Sent == nil {
		return nil
	}
	if err := h.Sent(ctx, tx, s); err != nil || !h.Ends || s.Target == nil {
		return err
	}
	return r.closePair(ctx, tx, s.User, s.Actor.ID, s.Target.ID, true, s.Now)
}
