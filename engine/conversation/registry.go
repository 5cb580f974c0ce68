package conversation

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Store is what conversations are kept in.
type Store interface {
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
}

// Actors knows users, and speaks for them.
type Actors interface {
	ID(u vocab.Username) vocab.ID
	NewActivityID(u vocab.Username) vocab.ID
	// Attest returns the user's signature of a text, by the Ed25519 key that the actor lists.
	Attest(u vocab.Username, text []byte) ([]byte, error)
}

// Finder finds actors, wherever they are.
type Finder interface {
	// Refresh returns the actor as its server describes it now, or did a moment ago; as it was
	// remembered when the server does not answer.
	Refresh(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
}

// Deps is what a registry works with.
type Deps struct {
	Store   Store
	Actors  Actors
	Finder  Finder
	Inboxes func([]db.Destination) []db.Inbox // through which an activity reaches all these, each once
	Rules   Rules
	Log     *slog.Logger
	Metrics prometheus.Registerer // may be nil
	Now     func() time.Time
}

// Limits of the conversations in memory.
const (
	maxLive     = 10_000
	maxWaiting  = 256 // messages that wait for one conversation
	maxBatch    = 64
	idleTime    = 2 * time.Minute
	workTime    = 10 * time.Second // for what has begun, whether or not its caller waits
	maxPanics   = 5                // within panicWindow; with one more the conversation rests
	panicWindow = time.Minute
	restTime    = time.Minute
)

var backoff = mailbox.Backoff{Min: 10 * time.Millisecond, Max: time.Second}

// Registry has the conversations that something was asked of lately. It is safe for concurrent
// use.
type Registry struct {
	Deps
	metrics  metrics
	carriers *carriers

	mu      sync.RWMutex
	live    map[Place]*live
	sweeper *time.Timer // nil while nothing is live
	closed  bool
}

// NewRegistry returns a registry without conversations.
func NewRegistry(d Deps) *Registry {
	r := &Registry{Deps: d, carriers: newCarriers(d.Store), live: map[Place]*live{}}
	r.metrics = newMetrics(d.Metrics, r)
	return r
}

// Epoch returns the epoch that a conversation was in when this process last heard of it, and
// whether it has heard of it lately. It is a hint: only a commit tells the epoch for certain.
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

// submit queues a task, and waits until the conversation has answered it. A caller that goes away
// before the task has begun takes it back; one that has begun is done all the same.
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
	r.metrics.observe(do.name(), err, r.Now().Sub(start))
	return err
}

// enqueue puts a task into the mailbox of its conversation, which it starts if need be. All that is
// under one lock, with the end of idle conversations: none is live twice, and nothing is put into
// a mailbox that has been given up.
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
	letter, err := c.box.Put(t, func(err error) { c.waiting.Add(-1); t.done <- err })
	if errors.Is(err, mailbox.ErrFull) {
		r.metrics.overloads.Inc()
		return nil, errBusy.After(time.Second)
	}
	if err == nil {
		r.metrics.depth.Observe(float64(c.waiting.Add(1)))
	}
	return letter, err
}

// start makes a conversation live. The caller holds mu.
func (r *Registry) start(at Place) *live {
	c := newLive(r, at)
	r.live[at] = c
	if r.sweeper == nil {
		r.sweeper = time.AfterFunc(idleTime, r.sweep)
	}
	return c
}

// sweep drops the conversations that have been idle, and comes again while there are others.
func (r *Registry) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropIdle(idleTime)
	r.sweeper = nil
	if len(r.live) > 0 && !r.closed {
		r.sweeper = time.AfterFunc(idleTime, r.sweep)
	}
}

// dropIdle drops conversations that nothing was asked of for that long, and that have nothing to
// do. One that rests is kept: it would be forgotten why. The caller holds mu.
func (r *Registry) dropIdle(since time.Duration) {
	now := r.Now()
	for at, c := range r.live {
		if now.Sub(c.usedAt) >= since && !now.Before(c.restsUntil) && c.box.IsIdle() {
			delete(r.live, at)
		}
	}
}

// count returns how many conversations are live, and how many of them rest after panics.
func (r *Registry) count() (all, resting int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.Now()
	for _, c := range r.live {
		if now.Before(c.restsUntil) {
			resting++
		}
	}
	return len(r.live), resting
}

// Close refuses new messages and waits until those that wait are answered, or ctx ends.
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
