package event

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	workers = 8

	// maxTold limits the events of a user that wait in memory. If there are more, the emitter
	// reads the events from the database.
	maxTold = 256
)

// Store runs transactions in users' databases.
type Store interface {
	Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
}

// Users lists the users of the instance.
type Users interface {
	All(ctx context.Context) ([]instance.User, error)
	IsRemoved(ctx context.Context, u vocab.Username) bool
	ListEventsDue(ctx context.Context) ([]instance.EventsDue, error)
	ClearEventsDue(ctx context.Context, all []instance.EventsDue) error
}

// Deps are the dependencies of an Emitter.
type Deps struct {
	Store   Store
	Users   Users
	Streams *keyspace.Store
	Keep    int   // how many emitted events stay on a stream and in a database
	Memory  int64 // limit on the memory of all streams together, in bytes
	Log     *slog.Logger
	Metrics prometheus.Registerer // may be nil
	Now     func() time.Time
}

// Emitter copies the events of all users from their databases to their streams. Only one process
// of an instance may have an Emitter.
type Emitter struct {
	Deps
	metrics *metrics

	mu      sync.Mutex
	streams map[vocab.Username]*stream
	queue   []*stream
	busy    int
	wake    chan struct{} // signals that the queue is not empty

	isShort bool // the last measurement found too little memory; used only by the method makeRoom

	repairs   chan struct{} // has a place for the one repair that may take long
	repairing patientStore  // the store for that repair
}

// NewEmitter returns an emitter. It collects events from now on, and emits them once Run is
// called.
func NewEmitter(d Deps) *Emitter {
	repairing := patientStore{d.Store, repairTime}
	d.Store, d.Users = patientStore{d.Store, databaseTime}, patientUsers{d.Users, databaseTime}
	e := &Emitter{Deps: d, streams: map[vocab.Username]*stream{}, wake: make(chan struct{}, 1), repairs: make(chan struct{}, 1), repairing: repairing}
	e.metrics = newMetrics(d.Metrics, e)
	return e
}

// Committed remembers in memory which events a commit to a user's database has added, so that Run
// can emit them. It never waits for Redis or for a database.
func (e *Emitter) Committed(_ context.Context, c user.Commit) {
	switch {
	case c.Unknown:
		e.tellStream(c.User, nil)
	case len(c.Events) > 0:
		e.tellStream(c.User, c.Events)
	}
}

// tellStream remembers which events were added to a user's database, and queues the user's
// stream. If the parameter added is empty, it remembers that the database may have new events.
func (e *Emitter) tellStream(u vocab.Username, added []user.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.streamOf(u)
	for _, ev := range added {
		if s.highest == 0 {
			s.trimmed = ev.Seq - 1
		}
		s.highest = max(s.highest, ev.Seq)
	}
	s.waiting += len(added)
	if len(added) == 0 || s.behind || len(s.told)+len(added) > maxTold {
		s.told, s.behind = nil, true
	} else {
		s.told = append(s.told, added...)
	}
	e.enqueueStream(s)
}

// streamOf returns the state of the user's stream, and makes it if there is none. The caller
// holds mu.
func (e *Emitter) streamOf(u vocab.Username) *stream {
	s := e.streams[u]
	if s == nil {
		s = &stream{user: u, behind: true}
		e.streams[u] = s
	}
	return s
}

// enqueueStream queues a stream for the workers. The caller holds mu.
func (e *Emitter) enqueueStream(s *stream) {
	if s.since.IsZero() {
		s.since = e.Now()
	}
	if s.queued || s.busy {
		// A worker finds the new events when it takes the queued stream. If the stream is busy,
		// it is queued again after the current task.
		return
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
		all.Go(func() { e.emitQueued(ctx) })
	}
	all.Go(func() { e.sweepUsers(ctx) })
	all.Go(func() { e.keepGroups(ctx) })
	e.keepUp(ctx)
	all.Wait()
}

// emitQueued is a worker: it emits the events of one queued stream after another.
func (e *Emitter) emitQueued(ctx context.Context) {
	for {
		s, t := e.awaitStream(ctx)
		if s == nil {
			return
		}
		err := e.doTask(ctx, s, t)
		e.endTurn(ctx, s, err, err != nil && !keyspace.IsAway(err) && e.Users.IsRemoved(ctx, s.user))
	}
}

// awaitStream waits for a queued stream, and returns it with its task. It returns nil when ctx
// has ended.
func (e *Emitter) awaitStream(ctx context.Context) (*stream, task) {
	for {
		if s, t := e.takeStream(); s != nil {
			return s, t
		}
		select {
		case <-ctx.Done():
			return nil, task{}
		case <-e.wake:
		}
	}
}

// takeStream removes the first stream from the queue, and returns it with its task.
func (e *Emitter) takeStream() (*stream, task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil, task{}
	}
	s := e.queue[0]
	e.queue = e.queue[1:]
	s.queued, s.busy = false, true
	e.busy++
	if len(e.queue) > 0 { // wake the next worker
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
	return s, s.beginTask()
}

// endTurn records the result of a task. Events that could not be emitted are read from the
// database at the next try. If the user is removed, there is no other try.
func (e *Emitter) endTurn(ctx context.Context, s *stream, err error, isRemoved bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.busy, s.isRefused = false, keyspace.IsRefusal(err)
	e.busy--
	switch {
	case isRemoved:
		delete(e.streams, s.user)
	case err != nil:
		s.told, s.behind = nil, true
		s.noteFailure(e.Now(), keyspace.IsAway(err))
		if ctx.Err() == nil && !keyspace.IsAway(err) { // package keyspace logs once that Redis is away
			e.Log.WarnContext(ctx, "events not emitted", "user", s.user, "err", err)
		}
	case len(s.told) > 0 || s.behind || s.closing:
		s.failures, s.waiting = 0, max(s.waiting-s.taken, 0)
		e.enqueueStream(s)
	default:
		s.failures, s.waiting, s.since = 0, 0, time.Time{}
	}
}

// IsRefused reports whether events wait that Redis refused.
func (e *Emitter) IsRefused() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.streams {
		if s.isRefused {
			return true
		}
	}
	return false
}

// Flush waits until no stream is queued or being emitted, or ctx ends. Streams that wait for a
// retry do not count.
func (e *Emitter) Flush(ctx context.Context) error { return e.awaitState(ctx, e.isIdle) }

func (e *Emitter) isIdle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue) == 0 && e.busy == 0
}

// awaitState waits until isReached() is true, or until ctx ends.
func (e *Emitter) awaitState(ctx context.Context, isReached func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !isReached() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
