// Package handler holds what each type of activity does to the user who receives or sends it, and
// the registry that finds it.
//
// A handler runs inside the transaction that stores the activity. Nothing in it touches the
// network, Redis or another database: what it needs from outside it names in Needs, and gets in
// Received.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Tx is what handlers need of the transaction on the user's database. It is valid only during the
// call.
type Tx interface {
	Lock(ctx context.Context, thing string) error
	Claim(ctx context.Context, all []db.Owned) (map[db.Owned]bool, error)
	AddActivity(ctx context.Context, a db.Activity) error
	Activity(ctx context.Context, uri vocab.ID) (*db.Activity, error)
	ActivityBy(ctx context.Context, a db.Owned) (*db.Activity, error)
	LatestActivity(ctx context.Context, kind string, actor, object vocab.ID) (*db.Activity, error)
	RemoveActivity(ctx context.Context, a db.Owned) error
	CreatedBefore(ctx context.Context, create, actor, object vocab.ID) (bool, error)

	AddObject(ctx context.Context, o db.Object) (bool, error)
	Object(ctx context.Context, uri vocab.ID) (*db.Object, error)
	ReplaceObject(ctx context.Context, uri vocab.ID, raw, readable json.RawMessage, updated time.Time) (bool, error)
	RecountObject(ctx context.Context, uri vocab.ID, raw json.RawMessage) error
	IsBuried(ctx context.Context, o db.Owned) (bool, error)
	DisplaceObject(ctx context.Context, o db.Object) error
	BuryObject(ctx context.Context, g db.Grave, now time.Time) (bool, error)
	BuryObjects(ctx context.Context, graves []db.Grave, now time.Time) (int64, error)
	ObjectsBy(ctx context.Context, actor vocab.ID) ([]vocab.ID, error)
	AddFeedEntry(ctx context.Context, e db.FeedEntry) error
	AddRequest(ctx context.Context, r db.Request, now time.Time) error
	AcceptRequests(ctx context.Context, actor vocab.ID, now time.Time) ([]vocab.ID, error)
	RemoveRequests(ctx context.Context, actor vocab.ID) error

	AddPairNote(ctx context.Context, n db.PairNote) (*db.Conversation, bool, error)
	PairConversation(ctx context.Context, partner vocab.ID) (*db.Conversation, error)
	ClosePair(ctx context.Context, partner vocab.ID, own bool, now time.Time) ([]vocab.ID, error)
	CloseHostedBy(ctx context.Context, host vocab.ID, now time.Time) ([]vocab.ID, error)
	TiesTo(ctx context.Context, some []vocab.ID) (map[vocab.ID][]string, error)

	Relationship(ctx context.Context, kind string, actor vocab.ID) (*db.Relationship, error)
	SetRelationship(ctx context.Context, r db.Relationship, now time.Time) error
	EndRelationship(ctx context.Context, kind string, actor vocab.ID) (bool, error)
	CountOffers(ctx context.Context, host string) (db.OfferCounts, error)
	Actor(ctx context.Context, uri vocab.ID) (*vocab.Actor, error)
	SaveActor(ctx context.Context, a *vocab.Actor, now time.Time) error
	HoldsOf(ctx context.Context, actor, but vocab.ID) (bool, error)
	ForgetActor(ctx context.Context, actor vocab.ID) (bool, error)

	SetReaction(ctx context.Context, r db.Reaction, now time.Time) error
	Reaction(ctx context.Context, like db.Reaction) (*db.Reaction, error)
	RemoveReaction(ctx context.Context, activity, actor vocab.ID) (bool, error)

	AddBlock(ctx context.Context, b db.Block, now time.Time) error
	Block(ctx context.Context, direction string, actor vocab.ID) (*db.Block, error)
	RemoveBlock(ctx context.Context, direction string, actor vocab.ID) (bool, error)
	Blocked(ctx context.Context, actors []vocab.ID) (map[vocab.ID]bool, error)
	AddGroup(ctx context.Context, g db.Group, now time.Time) error
	RemoveGroup(ctx context.Context, id uuid.UUID) error
	AddMember(ctx context.Context, group uuid.UUID, actor, activity vocab.ID, now time.Time) error
	RemoveMember(ctx context.Context, group uuid.UUID, actor vocab.ID) error
	MoveMember(ctx context.Context, from, to vocab.ID) error
	GroupsOf(ctx context.Context, actor vocab.ID) ([]vocab.ID, error)
	Unnamed(ctx context.Context, object vocab.ID) ([]db.Unnamed, error)
	FollowerDestinations(ctx context.Context) ([]db.Destination, error)
	LeaveFeed(ctx context.Context, actor vocab.ID, objects []vocab.ID) error
	AddMove(ctx context.Context, account, target vocab.ID, now time.Time) (bool, error)
	SetPin(ctx context.Context, p db.Pin, now time.Time) error
	RemovePin(ctx context.Context, actor, object vocab.ID) (bool, error)
	RemovePinBy(ctx context.Context, activity, actor vocab.ID) (bool, error)
	AddStream(ctx context.Context, s db.Stream) error
	RemoveStream(ctx context.Context, uri vocab.ID) error
	AddToStream(ctx context.Context, stream vocab.ID, o db.StreamObject) error
	RemoveFromStream(ctx context.Context, stream, object vocab.ID) error
	AddVote(ctx context.Context, v db.Vote, once bool, now time.Time) (votes, voters int64, err error)
	RemoveVotes(ctx context.Context, actor vocab.ID) ([]db.Vote, error)

	SentTo(ctx context.Context, object vocab.ID) ([]db.Inbox, error)
	conversation.InboxTx

	Enqueue(ctx context.Context, j db.Job, inboxes []db.Inbox, due time.Time) error
	Withdraw(ctx context.Context, actor vocab.ID, of, but []vocab.ID, now time.Time) error
	AddEvent(ctx context.Context, e db.Event) error
}

// Handler holds all that the engine knows of one type of activity: its functions, each of which
// may be nil, and its data. Whatever treats some types differently from others asks the registry
// which ones they are.
type Handler struct {
	// Check refuses, once per request, an activity whose shape or origins do not let it take
	// effect.
	Check func(a *vocab.Activity) error
	// Needs names what must be fetched from its own origin before Received.
	Needs func(a *vocab.Activity) []vocab.ID
	// Received does what the activity does to the user who received it.
	Received func(ctx context.Context, tx Tx, r *Received) (Effects, error)
	// Undone takes back what an actor did, and reports whether there was anything to take back.
	Undone func(ctx context.Context, tx Tx, r *Received, d doing) (bool, error)
	// Sent does what the activity does to the user who sends it.
	Sent func(ctx context.Context, tx Tx, s *Sent) error
	// SentUndone takes back what the user did.
	SentUndone func(ctx context.Context, tx Tx, s *Sent) error
	// Subject names what a received activity is about; nil: that is its object.
	Subject func(a *vocab.Activity) vocab.ID
	// About names the object or group that an activity of the user's makes, changes or is about;
	// nil: that is an actor.
	About func(a *vocab.Activity) vocab.ID
	// Apart tells of a received activity that its handler stores it, in place of persist: of
	// blocked actors, too. nil: of none.
	Apart func(a *vocab.Activity) bool

	Concern  audience.Concern // the users it concerns although it does not address them
	Notifies Notice           // when it is in the feed of notifications
	Aliases  []Alias          // further events that it is when it is received

	Final       bool // Undo has no effect on it: it is changed, deleted or answered anew
	TakesAway   bool // it takes effect, unseen, even when the user blocks its actor
	TakesBack   bool // it takes back what its actor sent before: nobody is to see that any more
	Ends        bool // it goes to all who had what it ends, also to actors that the user blocks
	Lasting     bool // its deliveries are tried for a month
	Ordered     bool // deliveries of it and of its Undo keep their order; those of others keep it by their object
	ChangesWho  bool // it changes who the user's followers, friends or the members of its groups are
	InFeed      bool // it has a place in the feed of the users it reached
	Words       bool // it brings the words of an object that its actor wrote
	Authored    bool // it is about an object of its actor's own
	ShowsObject bool // whoever is shown it is shown its object
	Emoji       bool // its content is an emoji
	Group       bool // it is what a Group actor announces: others' activities
	Relates     bool // it is kept as long as there is a relationship with its actor
	Answers     bool // it answers a Follow, an Offer or a request, maybe without the user's doing
}

// Notice says when an activity is in the feed of notifications.
type Notice uint8

// The notices.
const (
	Unnoticed     Notice = iota
	NoticeAlways         // whatever it is about
	NoticeOfOwn          // when it is about the user, something of the user's, or nothing that has an id
	NoticeOfNamed        // when it names the user, or answers something of the user's
)

// Alias is a further event that some received activities of a type are.
type Alias struct {
	Event string
	Is    func(r *Received) bool
}

// LockName is what a transaction locks that reads an object of the user's to change it.
func LockName(object vocab.ID) string { return "object " + string(object) }

// ErrIgnored says that an activity has no business with the user: it is not kept, and nobody is
// told. The rows that the handler wrote stay, such as the Tombstone of an object that never came.
var ErrIgnored = errors.New("the activity is not for this user")

// ErrContested says that somebody else on the sender's server uses the id of the object: only that
// server can say whose it is. Nothing was done; with the object as its server shows it in Fetched,
// it will be.
var ErrContested = errors.New("somebody else of that server uses the id")

// Received is an activity that reached a user.
type Received struct {
	User       vocab.Username
	Me         vocab.ID // the user's actor
	Activity   *vocab.Activity
	Actor      *vocab.Actor               // the sender, verified
	Fetched    map[vocab.ID]*vocab.Object // what Needs named, as its origin serves it; shared, as Activity and Actor are
	Target     *vocab.Actor               // of a Move that both accounts confirm; shared, too
	Named      bool                       // the user is addressed, or its own inbox was
	Forwarders []*vocab.Actor             // who sent it, when that is not its actor; shared, too
	Follows    bool                       // the user follows the sender
	Muted      bool                       // the user does not want to see it, nor be notified of it
	Request    bool                       // it is a private message of a stranger, which waits among the requests
	Blocked    bool                       // the user blocks the sender, and its type is Apart
	Now        time.Time                  // when it came
	Remembers  bool                       // there is room for what the user is to remember of the sender, if it is a stranger
	Applied    time.Time                  // when it takes effect, maybe long after: what the user owes for it is owed from then on

	EncryptedChat audience.Rule // the user's
}

// Effects is what a handler decided about an activity that a user received. The steps after it act
// on that, also when the activity was ignored.
type Effects struct {
	Changed       bool     // a relationship is not what it was
	Followed      bool     // the user follows the sender from now on
	Unfollowed    bool     // the user follows the sender no longer
	Silent        bool     // no event tells of the activity
	Disabled      vocab.ID // an activity of the sender's that must take no effect any more; its id is claimed
	Quotes        bool     // it is the first that tells of a quote of something of the user's
	Undecryptable string   // why the user's devices can do nothing with the message that it brings
	Remembered    bool     // the user's database keeps an id of the sender's
	TakenAway     vocab.ID // an id that the sender, a stranger, took away before it came, and that the user's database does not keep
}

// isReached reports whether the activity was meant for the user, and did not merely concern
// something of the user's.
func (r *Received) isReached() bool { return r.Named || r.Follows }

// IsSealed reports whether it brings a message of a conversation that only its clients can read.
func (r *Received) IsSealed() bool {
	if o := r.Fetched[r.Activity.Object.ID]; o != nil {
		return o.Doc.Sealed() != ""
	}
	return r.Activity.Object.Doc.Sealed() != ""
}

// own returns an id with the sender, whose it is.
func (r *Received) own(id vocab.ID) db.Owned { return db.Owned{ID: id, Actor: r.Actor.ID} }

// Mine reports whether id is the user's, or of something that the user made.
func (r *Received) Mine(id vocab.ID) bool {
	rest, ok := strings.CutPrefix(string(id.Canonical()), string(r.Me))
	return ok && (rest == "" || strings.ContainsAny(rest[:1], "/?#"))
}

// Sent is an activity that a user sends.
type Sent struct {
	User     vocab.Username
	Actor    *vocab.Actor // the user's own
	Activity *vocab.Activity
	Object   *db.Object     // the stored object that an Update or Delete is about
	Target   *vocab.Actor   // the actor that a Follow, Offer, Accept, Reject, Block, Add, Remove or Undo is about
	Quoted   *vocab.Actor   // the author of what a Create quotes, who is asked to approve; nil: nobody is
	Spelling vocab.Spelling // how the servers of what the activity names write it
	Request  vocab.ID       // the stranger whose messages an Accept or Reject is about
	Group    *db.Group      // the group that a Create, Delete, Add or Remove is about
	Stream   *db.Stream     // the stream that an Add or Remove is about; with neither, it is about what the user features
	Now      time.Time
}

// Key is what a handler is registered under.
type Key struct {
	Type       string
	ObjectType string // empty matches any object
}

// Registry finds the handler of an activity.
type Registry struct {
	handlers map[Key]Handler
	profiles Profiles
}

// Profiles tells how a user wants to be met.
type Profiles interface {
	User(u vocab.Username) registry.User
}

// New returns a registry of all handlers this engine has.
func New(local *actor.Local, profiles Profiles) *Registry {
	r := &Registry{handlers: map[Key]Handler{}, profiles: profiles}
	r.Register(Key{Type: vocab.Follow}, newFollow(local, profiles))
	r.Register(Key{Type: vocab.Accept}, newAccept(local))
	r.Register(Key{Type: vocab.Reject}, newReject(local))
	r.Register(Key{Type: vocab.Offer}, newOffer())
	r.Register(Key{Type: vocab.Offer, ObjectType: vocab.Relationship}, newFriendRequest(local))
	r.Register(Key{Type: vocab.Create}, newCreate(local))
	r.Register(Key{Type: vocab.Update}, newUpdate())
	r.Register(Key{Type: vocab.Delete}, newDelete(local))
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

// Register adds a handler. It panics on a second one for the same key.
func (r *Registry) Register(k Key, h Handler) {
	if _, twice := r.handlers[k]; twice {
		panic("handler: two handlers for " + k.Type + "(" + k.ObjectType + ")")
	}
	r.handlers[k] = h
}

// Lookup returns the handler of a's type and object type, else that of its type alone. The zero
// Handler does nothing: activities of types nobody knows are stored and emitted.
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

// IsApart reports whether the handler of an activity stores it.
func (r *Registry) IsApart(a *vocab.Activity) bool {
	h := r.Lookup(a)
	return h.Apart != nil && h.Apart(a)
}

// Knows reports whether an activity has a handler: without one it is stored, and does nothing.
func (r *Registry) Knows(a *vocab.Activity) bool { return r.Lookup(a).Received != nil }

// Check refuses an activity that cannot take effect, whoever receives it.
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

// Needs names what must be fetched before a can be received.
func (r *Registry) Needs(a *vocab.Activity) []vocab.ID {
	if h := r.Lookup(a); h.Needs != nil {
		return h.Needs(a)
	}
	return nil
}

// Received does what the activity does to the user who received it.
func (r *Registry) Received(ctx context.Context, tx Tx, x *Received) (Effects, error) {
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

// Sent does what the activity does to the user who sends it.
func (r *Registry) Sent(ctx context.Context, tx Tx, s *Sent) error {
	h := r.Lookup(s.Activity)
	if h.Sent == nil {
		return nil
	}
	if err := h.Sent(ctx, tx, s); err != nil || !h.Ends || s.Target == nil {
		return err
	}
	return r.closePair(ctx, tx, s.User, s.Actor.ID, s.Target.ID, true, s.Now)
}
