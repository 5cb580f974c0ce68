// Package inbox is the inbound pipeline. Its first half, Receive, runs once per request. Its
// second half, Apply, runs once per recipient, in a transaction of that user's writer (see
// package intake). Each step has a file of its own.
package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/intake"
	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Deps holds the dependencies of an inbox.
type Deps struct {
	Store    *db.Cluster
	Local    *actor.Local
	Actors   *actor.Resolver
	Verifier *actor.Verifier
	Gate     *policy.Gate
	Hosts    *policy.Limiter // requests per registrable domain of the signer
	Senders  *policy.Limiter // requests per signer
	Handlers *handler.Registry
	Profiles handler.Profiles
	Relays   Relays
	Heard    func(ctx context.Context, host string, d signature.Dialect, software string) // records the signature dialect and the software name that a host uses
	Log      *slog.Logger
	Metrics  prometheus.Registerer
	// BodyLimit is the greatest size of a request's body in bytes; the body of an MLS message
	// may be larger.
	BodyLimit int64
	Now       func() time.Time
}

// Inbox receives activities for all users.
type Inbox struct {
	Deps
	receiving *pipeline.Pipeline[*receiving]
	applier   *applier
	intake    *intake.Intake
	beside    *intake.Background // work that no request waits for
	known     *known
	followers *synchronizer
	renewer   *renewer
	memory    *memory
	fetcher   *fetcher
	voucher   *voucher
	budgets   *budgets
	bounds    *bounds
	ignored   *ignored
	metrics   metrics
}

// perRequest and perByte are the memory, in bytes, that is counted for a request while it is
// processed: perRequest once, and perByte for each byte of the body. perByte is this high
// because a parsed document takes many times the memory of its text.
const (
	perRequest = 16 << 10
	perByte    = 16
)

// receiving is one request on its way through Receive.
type receiving struct {
	pipeline.Inbound
	came       time.Time
	claims     []signature.Claim
	large      int64                                // the size of a body above BodyLimit, which may only be an MLS message; 0 for an ordinary body
	recognized vocab.ID                             // the sender of such a large body
	payer      string                               // the client address, the domain of a large body's sender, or the result of payerFor; see paidBy
	room       int64                                // bytes of memory reserved for the request
	roomOf     string                               // the payer of that memory
	documents  int64                                // bytes of the documents that were fetched for the request; see takeDocument
	parsed     *vocab.Activity                      // the parsed body, while it is in memory
	foreign    bool                                 // set by parseBody: no signature is by a key of the actor's server
	signer     *vocab.Actor                         // set by verifySignature: the actor who made the request
	passer     *vocab.Actor                         // set by verifySignature: the actor who made the request, if it is not the activity's actor
	relay      bool                                 // set by verifySignature: a relay passes it on
	fetched    map[vocab.ID]*vocab.Object           // set by resolveAddressing: the objects that the handler needs, each from its origin
	proven     bool                                 // set by resolveAddressing: the object is from a group's Announce, with its author's proof; see handler.Received
	reader     vocab.Username                       // set by resolveAddressing: the user in whose name the objects were fetched; zero for the instance actor
	followers  map[vocab.ID]map[vocab.Username]bool // set by followersOf: for each actor that was looked up, the users who may follow it
	strangers  map[vocab.Username]bool              // set by chargeFanOut: the recipients who are counted, which are none if the activity is free
	target     *vocab.Actor                         // set by resolveAddressing: the target of a Move that both accounts confirm
	refused    error                                // set by resolveAddressing: the answer if some recipients were left out; the peer then retries
	unkept     string                               // the reason why the activity is stored for nobody, if Receive has found one
	gone       bool                                 // set by resolveActor and verifySignature: the actor's server says that the actor was deleted
	meant      map[vocab.Username]bool              // set by respond: the users that the activity is meant for in person (see meantFor)
}

// applying is one activity on its way through Apply, for one recipient.
type applying struct {
	handler.Received
	raw       json.RawMessage            // the activity in the form in which it is stored
	large     bool                       // raw is larger than BodyLimit
	payer     string                     // the party that caused the activity: see receiving.paidBy
	fetched   map[vocab.ID]*vocab.Object // the objects that Receive fetched; persist sets Fetched to those that the user may read
	documents int64                      // bytes of the documents that Receive fetched
	reader    vocab.Username             // the user in whose name the objects were fetched; zero for the instance actor
	tx        *user.Tx
	effects   handler.Effects // set by executeSideEffects: what the handler decided
	blocked   bool            // the user blocks, or the policy refuses, an actor that sent it or whose objects it brings (see actorsBehind)
	again     bool            // another version of the activity has taken effect under its id
	stored    bool            // set by persist: the activity is in the user's database
	asks      bool            // set by persist: it changes or takes back a request (see isAboutRequest)
	told      *bool           // set by mayTell: whether the budget of strangers has room for the activity's events; nil until the budget was asked
	rejected  *bool           // set by rejects: whether the budgets have room for a Reject; nil until they were asked
	outcome   string
	reason    string // the reason why it is ignored
}

// forwarders returns the ids of the actors that sent the activity although it is not theirs.
func (x *applying) forwarders() (ids []vocab.ID) {
	for _, f := range x.Forwarders {
		ids = append(ids, f.ID)
	}
	return ids
}

// New returns an inbox. The steps of Receive are listed here, those of Apply in newApplier.
func New(d Deps) *Inbox {
	i := &Inbox{Deps: d, known: newKnown(), bounds: newBounds(d.Now), metrics: newMetrics(d.Metrics), beside: intake.NewBackground(d.Log)}
	i.receiving = pipeline.New("receive", d.Log, d.Metrics,
		pipeline.Do("receive", i.receive),
		pipeline.Do("parseBody", i.parseBody),
		pipeline.Step[*receiving]{Name: "resolveActor", Run: i.resolveActor},
		pipeline.Do("verifySignature", i.verifySignature),
		pipeline.Do("validateSchema", i.validateSchema),
		pipeline.Step[*receiving]{Name: "resolveAddressing", Run: i.resolveAddressing},
		pipeline.Do("respond", i.respond),
	)
	i.ignored = newIgnored(i)
	i.applier = newApplier(i)
	i.intake = intake.New(intake.Deps{Store: d.Store, Pipeline: i.applier, Rivals: i.applier.rivals, Places: policy.Queue.NewPool(),
		Memory: policy.QueueBytes.NewPool(), Large: make(chan struct{}, atOnce), Backoff: mailbox.Backoff{Min: time.Second, Max: time.Minute}, Log: d.Log, Metrics: d.Metrics, Now: d.Now})
	i.applier.rivals.revisit = i.intake.Revisit
	i.followers = newSynchronizer(i)
	i.renewer = newRenewer(i)
	i.memory = &memory{policy.Memory.NewPool(), d.Actors, d.BodyLimit}
	i.fetcher = &fetcher{d, i.memory, i.renewer, i.bounds}
	i.voucher = &voucher{d, i.memory, i.bounds}
	i.budgets = &budgets{d, i.bounds, i.ignored}
	return i
}

// Receive takes one request to an inbox through both halves of the pipeline. The parameter user is
// the owner of the inbox, or zero for the shared inbox. Receive returns nil if the activity is
// durable for every recipient, if it is a report or a relay's answer and was handled, or if it is
// stored for nobody (see IgnoredNobody and the other reasons). In all these cases the peer is
// answered 202.
func (i *Inbox) Receive(ctx context.Context, r *http.Request, body []byte, user vocab.Username) error {
	x := &receiving{Inbound: pipeline.Inbound{Request: r, Body: body, User: user}, came: i.Now()}
	return i.conclude(x, i.admitRequest(ctx, x))
}

// conclude counts a request that has ended, and returns the error for the answer; nil means 202.
func (i *Inbox) conclude(x *receiving, err error) error {
	if x.relay {
		i.metrics.relayed.WithLabelValues(relayOutcome(x, err)).Inc()
		err = withholdFault(err)
	}
	if errors.Is(err, errDropped) {
		x.unkept, err = droppedBy(x), nil
	}
	if err == nil {
		i.ignored.addRequest(x, x.unkept)
	}
	if err == nil {
		i.followers.heedOffer(x)
	}
	i.metrics.requests.WithLabelValues(outcomeOf(err)).Inc()
	return err
}

// admitRequest runs the steps of Receive if there is memory for the request. So nobody can fill
// the memory with bodies, not even with requests whose sender is not proven yet.
func (i *Inbox) admitRequest(ctx context.Context, x *receiving) error {
	x.payer = policy.PayerOf(ctx)
	if err := i.memory.takeRoom(x); err != nil {
		return err
	}
	defer i.memory.giveAll(x)
	return i.receiving.Run(ctx, x)
}

// droppedBy returns the reason why a dropped activity is stored for nobody. Such an activity
// was passed on by another actor, or nobody signed it.
func droppedBy(x *receiving) string {
	switch {
	case x.signer == nil:
		return "" // nobody knows who sent it
	case x.relay:
		return IgnoredRelay
	}
	return IgnoredUnproven
}

// Deliver delivers an activity from one local user to another. The parameter from is the user who
// made the activity or forwards it for another actor. The delivery queue handles local recipients
// like those of other servers. A forwarded activity is treated as if the forwarder were on another
// server. So forwarding alone does not make it an activity for the user in person. If the
// activity's actor is on another server, the domain of that actor pays for the rows that the
// activity adds here.
func (i *Inbox) Deliver(ctx context.Context, from, to vocab.Username, body []byte) error {
	a, err := vocab.ParseActivity(body)
	if err != nil {
		return err
	}
	x := &receiving{Inbound: pipeline.Inbound{User: to, Activity: a}, payer: i.payerFor(a.Actor)}
	if x.payer != "" {
		ctx = policy.PaidByDomain(ctx, a.Actor.Host())
	}
	if x.Actor, err = i.Actors.Resolve(ctx, a.Actor); err != nil {
		return err
	}
	if forwarder := i.Local.ID(from); !forwarder.Same(a.Actor) {
		if x.passer, err = i.Actors.Resolve(ctx, forwarder); err != nil {
			return err
		}
	}
	if x.arrival(i.Deps).IsLeaked() {
		return nil
	}
	if err := i.validateSchema(ctx, x); err != nil {
		return err
	}
	if x.Recipients, err = i.Store.Instance.Users.Active(ctx, []vocab.Username{to}); err != nil {
		return err
	}
	if len(x.Recipients) == 0 {
		return fault.New(fault.Gone, "the user is not here any more")
	}
	if err := i.budgets.limitStored(ctx, x); err != nil {
		return i.concludeHandOver(x, err)
	}
	defer i.memory.giveAll(x)
	if err := i.fetcher.fetchNeeds(ctx, x); err != nil {
		return err
	}
	if x.unkept == "" {
		err = i.respond(ctx, x)
	}
	return i.concludeHandOver(x, err)
}

// concludeHandOver returns the error for the delivery queue. After an error the queue tries the
// hand-over again; nil ends the hand-over. An activity for which a budget of its actor's domain
// has no room is ignored, because the queue would try it for days. But an activity that takes
// something away is tried again.
func (i *Inbox) concludeHandOver(x *receiving, err error) error {
	if fault.KindOf(err) == fault.RateLimited && !i.Handlers.Lookup(x.Activity).TakesAway {
		x.unkept, err = IgnoredOverBudget, nil
	}
	if err == nil {
		i.ignored.addRequest(x, x.unkept)
	}
	return err
}

// Start begins to apply the activities that an earlier process left in the intake journal, and
// tends the journal until Close. Start must be called when no other process serves the instance
// any more, and before the first request.
func (i *Inbox) Start(ctx context.Context) error {
	if err := i.intake.Start(ctx); err != nil {
		return err
	}
	i.beside.Loop(func() { i.ignored.flushOften(i.beside) })
	return nil
}

// Close refuses new activities and lets the writers finish their current work. The rest stays in
// the journal for the next process. The fault is Busy when ctx ends first.
func (i *Inbox) Close(ctx context.Context) error {
	return errors.Join(i.followers.close(ctx), i.beside.Close(ctx), i.intake.Close(ctx), i.ignored.flush(ctx))
}
