// Package outbox is the outbound pipeline: it turns an action that a user's program dispatches
// into an activity that is stored and owed to everybody it concerns. One file per step.
package outbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
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
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
}

// Actors finds actors of other servers.
type Actors interface {
	Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	Handle(ctx context.Context, handle string) (*vocab.Actor, error)
	// Known and KnownHandle ask nobody, and return nil for those that are not remembered.
	Known(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	KnownHandle(ctx context.Context, handle string) (*vocab.Actor, error)
}

// Stale knows the actors that have said that they changed.
type Stale interface {
	// IsStale reports whether the actor has said that it changed, and the user's copy of it may be
	// old; HasStale, whether any actor has said so.
	IsStale(id vocab.ID) bool
	HasStale() bool
}

// Objects fetches objects of other servers.
type Objects interface {
	Object(ctx context.Context, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error)
}

// Profiles are the files in which users say what others see of them.
type Profiles interface {
	User(u vocab.Username) registry.User
	UpdateUser(u vocab.Username, change func(*registry.User) error) error
}

// Keys loads the keys that a user signs with.
type Keys interface {
	Keys(u vocab.Username) (transport.Keys, error)
}

// Gate says whether a host may be contacted, and an actor be delivered to: nil, or why not.
type Gate interface {
	Check(host string) error
	CheckActor(id vocab.ID) error
}

// Dispatcher makes the deliveries. The commit hands it what is stored under its leases.
type Dispatcher interface {
	Leases() db.DeliveryLeases
}

// Relays are the servers that pass public posts on.
type Relays interface {
	// Active returns those that have accepted this server.
	Active() []instance.Relay
	// AnnounceActivity returns the activity that tells LitePub relays of an object, with its id.
	AnnounceActivity(object vocab.ID) (vocab.ID, vocab.Doc)
}

// Deps is what an outbox works with.
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
	DeliverBlocks bool // deliver a Block to its object
	Dispatcher    Dispatcher
	Log           *slog.Logger
	Metrics       prometheus.Registerer
	Now           func() time.Time
}

// Outbox does what users' programs ask for.
type Outbox struct {
	Deps
	pipeline *pipeline.Pipeline[*exchange]
	finder   *finder
	refusals *refusals
}

// New returns an outbox. It holds the table of contents of the pipeline.
func New(d Deps) *Outbox {
	o := &Outbox{Deps: d, refusals: newRefusals(d.Store, d.Log, d.Now),
		finder: &finder{store: d.Store, instance: d.Instance, local: d.Local, actors: d.Actors, objects: d.Objects, gate: d.Gate, profiles: d.Profiles, log: d.Log, deliverBlocks: d.DeliverBlocks}}
	o.pipeline = pipeline.New("dispatch", d.Log, d.Metrics,
		pipeline.Step[*exchange]{Name: "validateAction", Run: o.validateAction},
		pipeline.Do("resolveRecipients", o.resolveRecipients),
		pipeline.Do("constructActivity", o.constructActivity),
		pipeline.Do("encryptContent", o.encryptContent),
		pipeline.Step[*exchange]{Name: "persist", Run: o.persist},
		pipeline.Do("signRequest", o.signRequest),
		pipeline.Do("deliver", o.deliver),
		pipeline.Do("emitEvents", o.emitEvents),
		pipeline.Do("respond", o.respond),
	)
	return o
}

// Dispatch is an action that is to be done in a user's name.
type Dispatch struct {
	User           vocab.Username
	Token          uuid.UUID // by which it came; zero: by none
	Assistant      bool      // the token is the LLM engine's, which is not trusted like its user
	Action         pipeline.Action
	IdempotencyKey string    // empty for none
	CausedBy       uuid.UUID // eventId of the event that this answers; zero: of none
}

// Result is what came of a Dispatch.
type Result struct {
	ActivityID vocab.ID
	ObjectID   vocab.ID // the object or group that it makes, changes or is about; empty when that is an actor
	Job        *Job     // nil when nothing leaves
	Unresolved []string // handles in the text that lead to nobody, and stay text

	Accepted     *conversation.Accepted // where ciphertext stands in a conversation; nil when it was none
	Conversation uuid.UUID              // that the action is about; zero when it is about none
	Replayed     bool                   // the answer is an earlier one's, to the same Idempotency-Key
}

// Job is the fan-out of an activity.
type Job struct {
	JobID      string       `json:"jobId"`
	Recipients int          `json:"recipients"` // actors that it will reach
	Counts     db.JobCounts `json:"counts"`     // of deliveries: several recipients may share one
}

// exchange is one dispatch on its way through the pipeline, with what the steps have learnt so
// far.
type exchange struct {
	Dispatch
	now    time.Time
	digest []byte        // of the action
	intent intent        // validateAction
	cause  handler.Cause // validateAction

	// resolveRecipients
	actor       *vocab.Actor              // who acts
	counterpart *vocab.Actor              // the actor a Follow, an answer to one, a Block or an Add is about
	to, cc      []vocab.ID                // the addressing
	quoted      *vocab.Actor              // who wrote what is quoted, and is to be asked to approve
	named       []*vocab.Actor            // who is addressed by name, or was, without the one who acts
	spelling    vocab.Spelling            // how peers write what is named, beside actors
	mentions    mentions                  // what handles in the text lead to
	unresolved  []string                  // handles in the text that lead nowhere
	unnamed     []db.Unnamed              // who is addressed by a group, or was
	request     vocab.ID                  // the stranger whose messages are accepted or declined
	group       *db.Group                 // that is made, changed or deleted
	stream      *db.Stream                // that is made, changed or deleted
	target      vocab.ID                  // the collection that an Add or Remove changes
	fetched     []*vocab.Object           // to be kept, so that the feed can show them
	before      *db.Object                // the stored object that an Update or Delete is about
	earlier     []db.Inbox                // where it went before
	renewed     map[vocab.ID]*vocab.Actor // who have changed, as they are now
	embedded    vocab.Doc                 // goes in the place of the object's id to those who are told
	profile     []byte                    // stands for the profile that others are told of
	unchanged   bool                      // they were told of it before
	placing     *placing                  // the Add of what is written; nil when it is put into no stream

	activity *vocab.Activity // constructActivity
	body     json.RawMessage // constructActivity: the activity as it is sent
	members  []db.Unnamed    // persist: of those unnamed, who are in the groups
	inboxes  []db.Inbox      // persist
	told     []db.Inbox      // persist: of relays that take an Announce by the instance actor
	answer   answer          // persist: as it is stored; validateAction: as it was stored by an earlier dispatch
	replayed bool            // validateAction: the answer is an earlier one's
	result   Result          // respond
	leases   db.DeliveryLeases
}

// Dispatch does what d asks for. With a nil error everything that follows from it is stored and
// will be delivered. Dispatched again under the same Idempotency-Key, it is answered as before.
// Every dispatch is audited: one that is refused may be counted only.
func (o *Outbox) Dispatch(ctx context.Context, d Dispatch) (Result, error) {
	x := &exchange{Dispatch: d, now: o.Now().UTC().Truncate(time.Millisecond)}
	err := o.pipeline.Run(ctx, x)
	if err != nil && x.IdempotencyKey != "" && x.digest != nil {
		// Another dispatch under the key may have been quicker, and what it did be in the way of
		// this one.
		switch replayed, refusal := o.replayAnswer(ctx, x); {
		case replayed:
			return x.result, nil
		case refusal != nil && db.TakenKey(err):
			err = refusal
		}
	}
	if err != nil {
		o.refusals.recordRefusal(ctx, x, err)
		return Result{}, err
	}
	return x.result, nil
}
