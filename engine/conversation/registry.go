package conversation

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Store runs transactions in the databases of users, where conversations are stored.
type Store interface {
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
	// Look does what Read does for work that makes one query.
	Look(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
}

// Actors makes ids and signatures for users.
type Actors interface {
	ID(u vocab.Username) vocab.ID
	NewActivityID(u vocab.Username) vocab.ID
	// Attest signs a text with the Ed25519 key that the user's actor lists.
	Attest(u vocab.Username, text []byte) ([]byte, error)
}

// Finder finds actors, wherever they are.
type Finder interface {
	// Refresh returns the actor as its server describes it now or described it a moment ago. If
	// the server does not answer, it returns the stored copy.
	Refresh(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
}

// Deps are the dependencies of a Registry.
type Deps struct {
	Store   Store
	Actors  Actors
	Finder  Finder
	Inboxes func([]user.Destination) []user.Inbox // returns the inboxes that reach all destinations, each inbox once
	Rules   Rules
	Log     *slog.Logger
	Metrics prometheus.Registerer // may be nil
	Now     func() time.Time
}

// isMuted reports whether a user mutes an actor.
func (d Deps) isMuted(u vocab.Username, actor vocab.ID) bool {
	return d.Rules.User(u).Moderation.HidesActor(actor)
}

// Limits of the conversations in memory.
const (
	maxLive     = 10_000
	maxWaiting  = 256 // requests that wait for one conversation
	maxBatch    = 64
	idleTime    = 2 * time.Minute
	workTime    = 10 * time.Second // limit for a transaction, which runs on even if its callers have gone
	maxPanics   = 5                // within panicWindow; one more makes the conversation refuse requests for restTime
	panicWindow = time.Minute
	restTime    = time.Minute
)

var backoff = mailbox.Backoff{Min: 10 * time.Millisecond, Max: time.Second}

// Registry holds the live conversations, that is, those that have a mailbox in this process
// because they got requests lately, or because a Warmer has just read them. It is safe for
// concurrent use.
type Registry struct {
	Deps
	Storage  *Storage
	metrics  metrics
	carriers *carriers

	mu      sync.RWMutex
	live    map[Place]*live
	sweeper *time.Timer // nil while nothing is live
	closed  bool
}

// NewRegistry returns a registry without conversations.
func NewRegistry(d Deps) *Registry {
	r := &Registry{Deps: d, Storage: newStorage(d.Now), carriers: newCarriers(d.Store), live: map[Place]*live{}}
	r.metrics = newMetrics(d.Metrics, r)
	return r
}

// Epoch returns the epoch of a conversation as this process last read it. The result "known" is
// false if this process has not read it lately. The epoch is only a hint, because another process
// may have changed it. Only a commit tells the epoch for certain.
//
// So far only tests and benchmarks call Epoch. Answers with an epoch go to members alone, and the
// query that finds the member finds the epoch, too. Nothing may be refused by a hint: a repeated
// commit or message must get its stored answer.
func (r *Registry) Epoch(at Place) (epoch int64, known bool) {
	r.mu.RLock()
	c := r.live[at]
	r.mu.RUnlock()
	if c == nil {
		return 0, false
	}
	epoch = c.epoch.Load()
	return epoch, epoch >= 0
}

// IsHosted reports whether this process knows that the user at.Host is the host of the encrypted
// conversation at.ID. An encrypted conversation never gets another host. Before it is encrypted,
// a conversation of two may get another host by the other actor's upgrade.
func (r *Registry) IsHosted(at Place) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c := r.live[at]
	return c != nil && c.hosted.Load()
}

// submit queues a task, and waits until the conversation has answered it. If ctx ends before the
// task has begun, the task is withdrawn; a task that has begun is completed all the same.
func (r *Registry) submit(ctx context.Context, at Place, do operation) error {
	start := r.Now()
	t := &task{ctx: ctx, do: do, done: make(chan error, 1)}
	letter, err := r.enqueue(at, t)
	if err == nil {
		select {
		case err = <-t.done:
		case <-ctx.Done():
			letter.Withdraw()
			err = fault.Wrap(fault.Busy, "the conversation took too long", ctx.Err())
		}
	}
	origin := "remote"
	if do.askedBy().SameOrigin(r.Actors.ID(at.Host)) {
		origin = "local"
	}
	r.metrics.observe(do.name(), origin, err, r.Now().Sub(start))
	return err
}

// enqueue puts a task into the mailbox of its conversation, and makes the conversation live if it
// is not. It holds the mutex under which idle conversations are dropped. So no conversation is
// live twice, and no task is put into the mailbox of a dropped one.
func (r *Registry) enqueue(at Place, t *task) (*mailbox.Letter[*task], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosing
	}
	c := r.live[at]
	if c == nil {
		if len(r.live) >= maxLive {
			if r.dropIdle(0); len(r.live) >= maxLive {
				r.metrics.overloads.Inc()
				return nil, errBusy.After(time.Second)
			}
		}
		c = r.start(at)
	}
	now := r.Now()
	if rest := c.restsUntil.Sub(now); rest > 0 {
		return nil, errQuarantined.After(rest)
	}
	c.usedAt = now
	letter, err := c.box.Put(t, func(err error) { t.done <- err })
	if errors.Is(err, mailbox.ErrFull) {
		r.metrics.overloads.Inc()
		return nil, errBusy.After(time.Second)
	}
	if err == nil {
		r.metrics.depth.Observe(float64(c.box.Len()))
	}
	return letter, err
}

// start creates the mailbox of a conversation, and adds the conversation to r.live. The caller
// holds mu.
func (r *Registry) start(at Place) *live {
	c := newLive(r, at)
	r.live[at] = c
	r.metrics.starts.Inc()
	if r.sweeper == nil {
		r.sweeper = time.AfterFunc(idleTime, r.sweep)
	}
	return c
}

// sweep drops idle conversations, and schedules itself again while others are live.
func (r *Registry) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropIdle(idleTime)
	r.sweeper = nil
	if len(r.live) > 0 && !r.closed {
		r.sweeper = time.AfterFunc(idleTime, r.sweep)
	}
}

// dropIdle drops the conversations that have no work and whose last request or warm-up is at least
// as old as the parameter since. A conversation that rests after panics stays, so that its rest is
// not forgotten. The caller holds mu.
func (r *Registry) dropIdle(since time.Duration) {
	now := r.Now()
	for at, c := range r.live {
		if now.Sub(c.usedAt) >= since && !now.Before(c.restsUntil) && c.box.IsIdle() {
			delete(r.live, at)
			r.metrics.stops.Inc()
		}
	}
}

// Close refuses new requests, and waits until those in the mailboxes are answered or ctx ends.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	if r.sweeper != nil {
		r.sweeper.Stop()
	}
	all := make([]*live, 0, len(r.live))
	for _, c := range r.live {
		all = append(all, c)
	}
	r.mu.Unlock()
	var errs []error
	for _, c := range all {
		if err := c.box.Close(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
