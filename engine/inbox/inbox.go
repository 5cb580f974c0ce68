// Package inbox is the inbound pipeline: Receive, once per request, and Apply, once per recipient
// in that user's writer and transaction. One file per step.
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

// Deps is what an inbox works with.
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
	Heard    func(ctx context.Context, host string, d signature.Dialect, software string) // a host signs in this dialect, and calls its software so
	Log      *slog.Logger
	Metrics  prometheus.Registerer
	Now      func() time.Time
}

// Inbox takes activities in for all users.
type Inbox struct {
	Deps
	receiving *pipeline.Pipeline[*receiving]
	applier   *applier
	intake    *intake.Intake
	beside    *intake.Background // work beside requests
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

// Memory that a request under way takes, in bytes. A parsed document takes many times
// those it was written with.
const (
	perRequest = 16 << 10
	perByte    = 16
)

// receiving is one request on its way through Receive.
type receiving struct {
	pipeline.Inbound
	came      time.Time
	claims    []signature.Claim
	payer     string                               // for the memory it takes
	room      int64                                // bytes of memory it holds
	roomOf    string                               // who pays for that
	parsed    *vocab.Activity                      // what the body holds, while it is in memory
	foreign   bool                                 // parseBody: no claim is by a key of the actor's server
	signer    *vocab.Actor                         // verifySignature: who made the request
	passer    *vocab.Actor                         // verifySignature: who made the request, when that is not the activity's actor
	relay     bool                                 // verifySignature: a relay made it, and passes a post on
	fetched   map[vocab.ID]*vocab.Object           // resolveAddressing: what the handler needs, from its origin
	reader    vocab.Username                       // resolveAddressing: the user its origin showed that to; zero: the instance actor
	followers map[vocab.ID]map[vocab.Username]bool // resolveAddressing: the users who may follow an actor, as far as that was asked
	target    *vocab.Actor                         // resolveAddressing: of a Move that both accounts confirm
	refused   error                                // resolveAddressing: the answer when some recipients are left out, for which it is to come again
	unkept    string                               // why the activity is kept for nobody, when it ended before respond
	gone      bool                                 // resolveActor, verifySignature: the actor's server says that it was deleted
	meant     map[vocab.Username]bool              // respond: whose own inbox it came to, and who is addressed
}

// applying is one activity on its way through Apply, for one recipient.
type applying struct {
	handler.Received
	raw     json.RawMessage            // the activity as it is stored
	payer   string                     // who caused it: see receiving.paidBy
	fetched map[vocab.ID]*vocab.Object // what Receive fetched; Fetched holds what the user may read of it, from persist on
	reader  vocab.Username             // the user its origin showed that to; zero: the instance actor
	tx      *db.Tx
	effects handler.Effects // executeSideEffects: what the handler decided
	blocked bool            // the user blocks, or the policy refuses, who is behind it
	stored  bool            // persist: the activity is in the user's database
	told    *bool           // emitEvents: whether the budget of strangers has room for its events; nil until that is asked
	outcome string
	reason  string // why it is ignored
}

// forwarders returns the ids of those who sent the activity and are not its actor.
func (x *applying) forwarders() (ids []vocab.ID) {
	for _, f := range x.Forwarders {
		ids = append(ids, f.ID)
	}
	return ids
}

// New returns an inbox. It holds the table of contents of Receive; newApplier holds that of Apply.
func New(d Deps) *Inbox {
	i := &Inbox{Deps: d, known: newKnown(), bounds: newBounds(d.Now), metrics: newMetrics(d.Metrics), beside: intake.NewBackground()}
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
		Memory: policy.QueueBytes.NewPool(), Backoff: mailbox.Backoff{Min: time.Second, Max: time.Minute}, Log: d.Log, Metrics: d.Metrics, Now: d.Now})
	i.applier.rivals.revisit = i.intake.Revisit
	i.followers = newSynchronizer(i)
	i.renewer = newRenewer(i)
	i.memory = &memory{policy.Memory.NewPool(), d.Actors}
	i.fetcher = &fetcher{d, i.memory, i.renewer, i.bounds}
	i.voucher = &voucher{d, i.memory, i.bounds}
	i.budgets = &budgets{d, i.bounds, i.ignored}
	return i
}

// Receive takes one request to an inbox through both halves: user is whose inbox was addressed,
// zero for the shared one. With nil the activity is durable for every recipient, or nobody here
// wants it: the peer is answered 202.
func (i *Inbox) Receive(ctx context.Context, r *http.Request, body []byte, user vocab.Username) error {
	x := &receiving{Inbound: pipeline.Inbound{Request: r, Body: body, User: user}, came: i.Now()}
	err := i.admitRequest(ctx, x)
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

// admitRequest runs Receive while there is room for what it takes: nobody fills the memory with
// bodies, least of all before it is known who sent them.
func (i *Inbox) admitRequest(ctx context.Context, x *receiving) error {
	x.payer = policy.PayerOf(ctx)
	if err := i.memory.takeRoom(x); err != nil {
		return err
	}
	defer i.memory.giveRoom(x)
	return i.receiving.Run(ctx, x)
}

// droppedBy says why something that others passed on, or nobody signed, was dropped.
func droppedBy(x *receiving) string {
	switch {
	case x.signer == nil:
		return "" // nobody knows who sent it
	case x.relay:
		return IgnoredRelay
	}
	return IgnoredUnproven
}

// Deliver hands a user what another one of this server sends: an activity of its own, or one that
// it forwards (local recipients take part in deliveries like others). A forwarded activity is no
// more in person for the user than if the forwarder was on another server.
func (i *Inbox) Deliver(ctx context.Context, from, to vocab.Username, body []byte) error {
	a, err := vocab.ParseActivity(body)
	if err != nil {
		return err
	}
	x := &receiving{Inbound: pipeline.Inbound{User: to, Activity: a}}
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
	if err := i.fetcher.fetchNeeds(ctx, x); err != nil {
		return err
	}
	return i.respond(ctx, x)
}

// Start takes over what an earlier process left in the intake journal, and goes on with it until
// Close. It must be called once this process alone serves the instance, and before the first
// request.
func (i *Inbox) Start(ctx context.Context) error {
	if err := i.intake.Start(ctx); err != nil {
		return err
	}
	i.beside.Go(func() { i.ignored.flushOften(i.beside) })
	return nil
}

// Close takes nothing more and lets the writers finish what they are at. The rest lies in the
// journal, for the next process. The fault is Busy when ctx ends first.
func (i *Inbox) Close(ctx context.Context) error {
	return errors.Join(i.followers.close(ctx), i.beside.Close(ctx), i.intake.Close(ctx), i.ignored.flush(ctx))
}
