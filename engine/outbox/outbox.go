// Package outbox is the outbound pipeline: it turns an action that a user's client dispatches
// into an activity that is stored and delivered to everybody it concerns. Each step has a file.
package outbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Store reads and writes users' databases.
type Store interface {
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
}

// Actors finds actors of this and other servers.
type Actors interface {
	Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	Handle(ctx context.Context, handle string) (*vocab.Actor, error)
	// Known and KnownHandle send no request. They return nil for actors that are not stored.
	Known(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	KnownHandle(ctx context.Context, handle string) (*vocab.Actor, error)
}

// Stale tells which actors have announced a change.
type Stale interface {
	// IsStale reports whether the actor has announced a change, so that the user's copy of it
	// may be out of date. HasStale reports whether there is any such actor.
	IsStale(id vocab.ID) bool
	HasStale() bool
}

// Objects fetches objects of other servers.
type Objects interface {
	Object(ctx context.Context, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error)
}

// Profiles reads and changes the files of the users, which contain their profiles.
type Profiles interface {
	User(u vocab.Username) registry.User
	UpdateUser(u vocab.Username, change func(*registry.User) error) error
}

// Keys loads the keys that a user signs with.
type Keys interface {
	Keys(u vocab.Username) (transport.Keys, error)
}

// Gate decides whether requests may be sent to a host, and deliveries to an actor. Its methods
// return nil, or the reason why nothing may be sent.
type Gate interface {
	Check(host string) error
	CheckActor(id vocab.ID) error
}

// Dispatcher makes the deliveries. Deliveries that a transaction stores with the leases of the
// Dispatcher are passed to the Dispatcher when the transaction commits.
type Dispatcher interface {
	Leases() user.DeliveryLeases
}

// Relays are the relays that pass public posts on to other servers.
type Relays interface {
	// Active returns the relays that have accepted this server.
	Active() []instance.Relay
	// AnnounceActivity returns an Announce of an object for LitePub relays, and the Announce's
	// id.
	AnnounceActivity(object vocab.ID) (vocab.ID, vocab.Doc)
}

// Deps are the dependencies of an outbox.
type Deps struct {
	Store         Store
	Instance      *instance.Database
	Local         *actor.Local
	Actors        Actors
	Stale         Stale
	Objects       Objects
	Keys          Keys
	Profiles      Profiles
	Gate          Gate
	Relays        Relays
	Handlers      *handler.Registry
	Conversations *conversation.Registry
	Members       *conversation.Members
	DeliverBlocks bool // send a Block to the blocked actor
	Dispatcher    Dispatcher
	Log           *slog.Logger
	Metrics       prometheus.Registerer
	Now           func() time.Time
}

// Outbox carries out the actions of users' clients.
type Outbox struct {
	Deps
	pipeline      *pipeline.Pipeline[*exchange]
	finder        *finder
	fanOut        *fanOut
	answers       *answers
	conversations *conversations
	refusals      *refusals
}

// New returns an outbox. Its code lists the steps of the pipeline in order.
func New(d Deps) *Outbox {
	o := &Outbox{Deps: d, refusals: newRefusals(d.Store, d.Log, d.Now),
		finder:  &finder{store: d.Store, instance: d.Instance, local: d.Local, actors: d.Actors, stale: d.Stale, objects: d.Objects, gate: d.Gate, profiles: d.Profiles, log: d.Log, deliverBlocks: d.DeliverBlocks},
		fanOut:  &fanOut{addresses: d.Local.Addresses, handlers: d.Handlers, gate: d.Gate, relays: d.Relays},
		answers: &answers{store: d.Store, handlers: d.Handlers, log: d.Log}}
	o.conversations = &conversations{registry: d.Conversations, members: d.Members, finder: o.finder}
	o.pipeline = pipeline.New("dispatch", d.Log, d.Metrics,
		pipeline.Step[*exchange]{Name: "validateAction", Run: o.validateAction},
		pipeline.Do("resolveRecipients", o.resolveRecipients),
		pipeline.Do("constructActivity", o.constructActivity),
		pipeline.Do("encryptContent", o.encryptContent),
		pipeline.Step[*exchange]{Name: "persist", Run: o.persist},
		pipeline.Do("signRequest", o.signRequest),
		pipeline.Do("deliver", o.deliver),
		pipeline.Do("emitEvents", o.emitEvents),
		pipeline.Do("respond", o.answers.respond),
	)
	return o
}

// Dispatch is a request to carry out an action in a user's name.
type Dispatch struct {
	User           vocab.Username
	Token          uuid.UUID // of the client; zero if dispatched without a token
	Assistant      bool      // the token belongs to an LLM engine, which is trusted less than the user
	Action         pipeline.Action
	IdempotencyKey string    // empty for none
	CausedBy       uuid.UUID // eventId of the event that this reacts to; zero for none
}

// Result is the result of a Dispatch.
type Result struct {
	ActivityID vocab.ID
	ObjectID   vocab.ID // the object or group that the action makes, changes or is about; empty if the action is about an actor
	Job        *Job     // nil when nothing is sent
	Unresolved []string // handles in the text for which no actor was found; they stay plain text

	Accepted     *conversation.Accepted // the log place of the sent MLS message; nil for none
	Conversation uuid.UUID              // the conversation that the action is about; zero when it is about none
	Replayed     bool                   // the answer is that of an earlier dispatch with the same Idempotency-Key
}

// Job is the set of deliveries of an activity.
type Job struct {
	JobID      string         `json:"jobId"`
	Recipients int            `json:"recipients"` // actors that will get the activity
	Counts     user.JobCounts `json:"counts"`     // of the deliveries; several recipients may share one
}

// exchange is one dispatch on its way through the pipeline, with the results of the steps so far.
// The comments name the step that sets each field. For an Add to or a Remove from a group,
// constructActivity sets target. persist sets leases.
type exchange struct {
	Dispatch
	now    time.Time
	digest []byte        // of the action
	intent intent        // validateAction
	cause  handler.Cause // validateAction

	// resolveRecipients
	actor       *vocab.Actor              // the sender
	counterpart *vocab.Actor              // the actor followed, asked, answered, blocked or added
	to, cc      []vocab.ID                // the addressing
	communities []vocab.ID                // the addressed Group actors of the communities that it is for (FEP-1b12)
	quoted      *vocab.Actor              // author of the quoted object, if its approval is needed
	named       []*vocab.Actor            // actors that are or were addressed by name, without the sender
	spelling    vocab.Spelling            // ids in the form in which their own servers write them, except the ids of actors
	mentions    mentions                  // the actors of handles in the text
	unresolved  []string                  // handles in the text for which no actor was found
	unnamed     []user.Unnamed            // actors that are or were addressed through a group
	request     vocab.ID                  // the stranger whose messages the user accepts or declines
	group       *user.Group               // the group that is created, changed or deleted
	stream      *user.Stream              // the stream that is created, changed or deleted
	target      vocab.ID                  // the collection that an Add or Remove changes
	held        []vocab.ID                // stored objects that the action needs
	fetched     []*vocab.Object           // objects that are stored with the activity, so that the feed can show them
	before      *user.Object              // the stored object that an Update or Delete is about
	earlier     []user.Inbox              // the inboxes that the object or activity was sent to before
	renewed     map[vocab.ID]*vocab.Actor // changed recipients, as fetched just now
	embedded    vocab.Doc                 // replaces the object's id in the activity that is sent
	profile     []byte                    // digest of the profile that the activity sends
	unchanged   bool                      // the same profile was sent before
	placing     *placing                  // the Add of the post to a stream; nil when there is none

	activity *vocab.Activity // constructActivity
	body     json.RawMessage // constructActivity: the activity as it is sent
	members  []user.Unnamed  // persist: those in unnamed that are still in their groups
	inboxes  []user.Inbox    // persist
	told     []user.Inbox    // persist: inboxes of relays that get an Announce by the instance actor
	answer   answer          // persist: the new answer; validateAction: the stored answer of an earlier dispatch
	replayed bool            // validateAction: the answer is that of an earlier dispatch
	result   Result          // respond
	leases   user.DeliveryLeases
}

// Dispatch carries out the action of d. If the error is nil, all results of the action are stored,
// and the deliveries will be made. A repeated dispatch with the same Idempotency-Key gets the same
// answer for 24 hours. Every dispatch is audited; a refused one may only be counted.
func (o *Outbox) Dispatch(ctx context.Context, d Dispatch) (Result, error) {
	x := &exchange{Dispatch: d, now: o.Now().UTC().Truncate(time.Millisecond)}
	err := o.pipeline.Run(ctx, x)
	if err != nil && x.IdempotencyKey != "" && x.digest != nil {
		// Another dispatch with the same key may have ended first, and its effect may be the
		// reason for this refusal.
		switch replayed, refusal := o.answers.replayAnswer(ctx, x); {
		case replayed:
			return x.result, nil
		case refusal != nil && user.TakenKey(err):
			err = refusal
		}
	}
	if err != nil {
		o.refusals.recordRefusal(ctx, x, err)
		return Result{}, err
	}
	return x.result, nil
}
