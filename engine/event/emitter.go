package event

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	workers = 8

	// maxTold bounds the events of a user that wait in memory; beyond it they are read from the
	// database.
	maxTold = 256
)

// Store is the users' databases.
type Store interface {
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
}

// Users are the users of the instance.
type Users interface {
	All(ctx context.Context) ([]instance.User, error)
	TakeEventsDue(ctx context.Context) ([]vocab.Username, error)
}

// Deps is what an emitter needs.
type Deps struct {
	Store   Store
	Users   Users
	Streams *keyspace.Store
	Keep    int   // events that stay on a stream, and in a database once they are emitted
	Memory  int64 // what all streams together may take, in bytes
	Log     *slog.Logger
	Metrics prometheus.Registerer // may be nil
	Now     func() time.Time
}

// Emitter puts the events of all users on their streams. One process of an instance has one.
type Emitter struct {
	Deps
	metrics *metrics

	mu      sync.Mutex
	streams map[vocab.Username]*stream
	queue   []*stream
	busy    int
	wake    chan struct{} // something is in the queue
}

// NewEmitter returns an emitter that runs once Run is called. Until then it remembers who has
// events.
func NewEmitter(d Deps) *Emitter {
	e := &Emitter{Deps: d, streams: map[vocab.Username]*stream{}, wake: make(chan struct{}, 1)}
	e.metrics = newMetrics(d.Metrics, e)
	return e
}

// Committed hears of a commit in a user's database. It never waits.
func (e *Emitter) Committed(_ context.Context, c db.Commit) {
	switch {
	case c.Unknown:
		e.tell(c.User, nil)
	case len(c.Events) > 0:
		e.tell(c.User, c.Events)
	}
}

// tell notes which events were added to a user's database, or, with none, that there may be some.
func (e *Emitter) tell(u vocab.Username, added []db.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.streamOf(u)
	for _, ev := range added {
		if s.highest == 0 {
			s.trimmed = ev.Seq - 1
		}
		s.highest = max(s.highest, ev.Seq)
	}
	if len(added) == 0 || s.behind || len(s.told)+len(added) > maxTold {
		s.told, s.behind = nil, true
	} else {
		s.told = append(s.told, added...)
	}
	e.enqueue(s)
}

// streamOf returns what is known of the user's stream. The caller holds mu.
func (e *Emitter) streamOf(u vocab.Username) *stream {
	s := e.streams[u]
	if s == nil {
		s = &stream{user: u, behind: true}
		e.streams[u] = s
	}
	return s
}

// enqueue has the stream looked at soon. The caller holds mu.
func (e *Emitter) enqueue(s *stream) {
	if s.since.IsZero() {
		s.since = e.Now()
	}
	if s.queued || s.busy {
		return // whoever is at it looks again
	}
	s.queued = true
	e.queue = append(e.queue, s)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run emits until ctx ends.
func (e *Emitter) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { e.work(ctx) })
	}
	all.Go(func() { e.sweep(ctx) })
	all.Go(func() { e.keepGroups(ctx) })
	e.keepUp(ctx)
	all.Wait()
}

// work emits for one user after another.
func (e *Emitter) work(ctx context.Context) {
	for {
		s, t := e.next(ctx)
		if s == nil {
			return
		}
		e.end(ctx, s, e.do(ctx, s, t))
	}
}

// next waits for a stream that wants looking at; nil when ctx has ended.
func (e *Emitter) next(ctx context.Context) (*stream, task) {
	for {
		if s, t := e.take(); s != nil {
			return s, t
		}
		select {
		case <-ctx.Done():
			return nil, task{}
		case <-e.wake:
		}
	}
}

// take takes the first stream of the queue, and what there is to do about it.
func (e *Emitter) take() (*stream, task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil, task{}
	}
	s := e.queue[0]
	e.queue = e.queue[1:]
	s.queued, s.busy = false, true
	e.busy++
	if len(e.queue) > 0 { // for the next worker
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
	return s, s.begin()
}

// end notes how it went. Events that could not be emitted are read from the database when their
// time has come.
func (e *Emitter) end(ctx context.Context, s *stream, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.busy = false
	e.busy--
	switch {
	case fault.KindOf(err) == fault.NoUser:
		delete(e.streams, s.user)
	case err != nil:
		s.told, s.behind = nil, true
		s.failed(e.Now(), keyspace.IsAway(err))
		if ctx.Err() == nil && !keyspace.IsAway(err) { // that Redis is away is told once for all
			e.Log.WarnContext(ctx, "events not emitted", "user", s.user, "err", err)
		}
	case len(s.told) > 0 || s.behind:
		s.failures = 0
		e.enqueue(s)
	default:
		s.failures, s.since = 0, time.Time{}
	}
}

// Flush waits until everything that was told is emitted, as far as it can be now, or ctx ends.
func (e *Emitter) Flush(ctx context.Context) error { return e.await(ctx, e.isIdle) }

func (e *Emitter) isIdle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue) == 0 && e.busy == 0
}

// await waits until something is so, or ctx ends.
func (e *Emitter) await(ctx context.Context, is func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
