package delivery

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	batch    = 200              // deliveries claimed in one turn
	maxHeld  = 8192             // deliveries in memory
	maxTurns = 8                // turns at once, each of which holds a database connection
	margin   = 30 * time.Second // of its lease that a delivery must still have when its attempt starts

	crowded  = time.Second      // until the next turn of a user who found no room
	brokenAt = 5 * time.Second  // until the next turn of a user whose database failed, doubled each time
	broken   = 5 * time.Minute  // at most
	round    = 15 * time.Second // in which a sweep looks at every user, if they are few
	pace     = 500 * time.Millisecond
	turnTime = 30 * time.Second // for one turn, with waiting for a connection
	leaving  = 5 * time.Second  // for giving back leases at the end
)

// Dispatcher makes the attempts at all users' deliveries. What is owed lies in the users' databases; in memory are only
// rows it holds a lease on, one queue per host, so that a host that fails holds up nobody else's.
type Dispatcher struct {
	Deps
	queue   queue
	metrics metrics
	kick    chan struct{}  // something may start
	under   sync.WaitGroup // turns and attempts under way

	mu       sync.Mutex
	users    map[vocab.Username]*user
	due      users            // who wait for a turn
	turns    int              // under way
	hosts    map[string]*host // who have something waiting or something to remember
	ready    []*host          // who may start an attempt, in turn
	inflight int
	held     int
}

// user is a user with deliveries.
type user struct {
	name     vocab.Username
	due      time.Time // of the next turn; zero: none is needed
	place    int       // in Dispatcher.due, -1: not there
	busy     bool      // a turn is under way
	again    bool      // another turn is needed right after it
	tookBack bool
	failures int // turns in a row that failed
	ended    []ended
	held     map[int64]*row
}

// row is a delivery on which this process holds a lease.
type row struct {
	db.Delivery
	user  *user
	lease time.Time // its end
}

// New returns a dispatcher. Nothing happens before Run.
func New(deps Deps) *Dispatcher {
	if deps.Concurrency == 0 {
		deps.Concurrency = 128
	}
	if deps.HostConcurrency == 0 {
		deps.HostConcurrency = 4
	}
	return &Dispatcher{Deps: deps, queue: stored{deps.Store, deps.Owner}, metrics: newMetrics(deps.Metrics), kick: make(chan struct{}, 1),
		users: map[vocab.Username]*user{}, hosts: map[string]*host{}}
}

// atOnce is before every other time.
var atOnce = time.Unix(0, 0)

// Wake says that u owes something new. It does not wait.
func (d *Dispatcher) Wake(u vocab.Username) { d.want(u, atOnce) }

// want asks for a turn of u.
func (d *Dispatcher) want(name vocab.Username, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	u := d.users[name]
	if u == nil {
		u = &user{name: name, place: -1, held: map[int64]*row{}}
		d.users[name] = u
	}
	d.schedule(u, at)
	d.nudge()
}

// schedule makes sure that u has a turn by then. The caller holds mu.
func (d *Dispatcher) schedule(u *user, at time.Time) {
	switch {
	case u.busy:
		u.again = true
	case u.place < 0:
		u.due = at
		heap.Push(&d.due, u)
	case at.Before(u.due):
		u.due = at
		heap.Fix(&d.due, u.place)
	}
}

func (d *Dispatcher) nudge() {
	select {
	case d.kick <- struct{}{}:
	default: // it is awake
	}
}

// Run delivers until ctx ends. Then nothing new starts, attempts under way may end within the drain time, and what this
// process held is given back, due at once. Leases of processes that are gone are taken over, so one process may run at a
// time.
func (d *Dispatcher) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	d.under.Add(1)
	go d.sweep(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(d.start(work))
		select {
		case <-ctx.Done():
		case <-d.kick:
		case <-timer.C:
		}
	}
	d.stop(work, cancel)
	return nil
}

// start begins every turn and attempt that may begin, and returns how long nothing else will become due.
func (d *Dispatcher) start(ctx context.Context) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.Now()
	for d.turns < maxTurns && len(d.due) > 0 && !d.due[0].due.After(now) {
		u := heap.Pop(&d.due).(*user)
		t := d.begin(u, now)
		d.under.Add(1)
		go d.turn(ctx, u, t)
	}
	for d.inflight < d.Concurrency {
		r := d.next(now)
		if r == nil {
			break
		}
		d.inflight++
		d.metrics.inflight.Inc()
		d.under.Add(1)
		go d.attempt(ctx, r)
	}
	if d.turns == maxTurns || len(d.due) == 0 {
		return time.Hour // something under way, or a new wake, will nudge
	}
	return d.due[0].due.Sub(now)
}

// next returns the delivery to attempt next, going round the hosts. The caller holds mu.
func (d *Dispatcher) next(now time.Time) *row {
	for len(d.ready) > 0 {
		h := d.ready[0]
		d.ready[0] = nil
		d.ready = d.ready[1:]
		h.listed = false
		r := h.pop()
		d.list(h)
		if r == nil {
			continue
		}
		if r.lease.Sub(now) >= margin {
			return r
		}
		h.ended(r, result{}, now) // it waited too long: its lease could end during the attempt
		d.settle(r, put(r.Delivery, now, "", now))
		d.list(h)
	}
	return nil
}

// list puts h into the round if it may start an attempt. The caller holds mu.
func (d *Dispatcher) list(h *host) {
	if _, ok := h.ready(); ok && !h.listed {
		h.listed = true
		d.ready = append(d.ready, h)
	}
}

// settle leaves an outcome to the user's next turn. The caller holds mu.
func (d *Dispatcher) settle(r *row, o db.Outcome) {
	r.user.ended = append(r.user.ended, ended{r.Delivery, o})
	d.schedule(r.user, atOnce)
}

// finish takes in how an attempt ended.
func (d *Dispatcher) finish(r *row, res result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.Now()
	d.inflight--
	d.metrics.inflight.Dec()
	h := d.hosts[r.Host]
	h.ended(r, res, now)
	if !res.cut {
		d.settle(r, res.outcome)
	}
	d.putOff(h, now)
	d.list(h)
	if h.idle(now) {
		delete(d.hosts, h.name)
	}
	d.nudge()
}

// putOff gives back what waits for a host that is left alone. The caller holds mu.
func (d *Dispatcher) putOff(h *host, now time.Time) {
	if !h.closed.After(now) {
		return
	}
	for _, r := range h.flush() {
		d.settle(r, put(r.Delivery, h.closed, "the host is left alone for a while", now))
	}
}

// sweep gives every user a turn now and then: deliveries of processes that are gone, and those that other processes made
// due, are found by nobody else. The first round, at the start, does not wait between users.
func (d *Dispatcher) sweep(ctx context.Context) {
	defer d.under.Done()
	for first := true; ; first = false {
		users, err := d.queue.users(ctx)
		if err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "users could not be listed", "err", err)
		}
		pause := max(pace, round/time.Duration(max(len(users), 1)))
		for _, u := range users {
			d.want(u, d.Now())
			if !first && !wait(ctx, pause) {
				return
			}
		}
		if (first || len(users) == 0) && !wait(ctx, round) {
			return
		}
	}
}

// wait reports whether the time passed before ctx ended.
func wait(ctx context.Context, t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// stop waits for what is under way, no longer than the drain time, and gives back everything else.
func (d *Dispatcher) stop(ctx context.Context, cancel func()) {
	done := make(chan struct{})
	go func() {
		d.under.Wait()
		close(done)
	}()
	drain, end := context.WithTimeout(ctx, d.Drain)
	defer end()
	select {
	case <-done:
	case <-drain.Done():
		cancel() // what is under way notices, and ends
		<-done
	}
	d.leave(context.WithoutCancel(ctx))
}

// leave settles what ended and gives back every lease.
func (d *Dispatcher) leave(ctx context.Context) {
	ctx, end := context.WithTimeout(ctx, leaving)
	defer end()
	d.mu.Lock()
	defer d.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(maxTurns)
	for _, u := range d.users {
		if len(u.ended) == 0 && len(u.held) == 0 {
			continue
		}
		g.Go(func() error {
			if err := d.queue.leave(ctx, u.name, u.ended, d.Now()); err != nil { // the leases end by themselves
				d.Log.WarnContext(ctx, "deliveries could not be given back", "user", u.name, "err", err)
			}
			return nil
		})
	}
	_ = g.Wait() // every error was logged
}
