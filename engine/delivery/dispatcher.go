package delivery

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	batch              = 200  // deliveries claimed in one turn
	handful            = 8    // deliveries at least that are claimed in one turn
	maxForwarded       = 2048 // deliveries in memory of what others said
	maxForwardedOfUser = 256
	maxTurns           = 8                // turns at once, each of which holds a database connection
	margin             = 30 * time.Second // of its lease that a delivery must still have when its attempt starts

	crowded  = time.Second            // until the next turn of a user who found no room
	brokenAt = 5 * time.Second        // until the next turn of a user whose database failed, doubled each time
	broken   = 5 * time.Minute        // at most
	round    = 15 * time.Second       // in which a sweep looks at every user, if they are few
	pace     = 500 * time.Millisecond // between two users, if they are many
	hurry    = 50 * time.Millisecond  // in the first round: a process that was killed may not have said who owes something
	unpark   = 1000                   // parked deliveries of a user made due again in one turn
	turnTime = 30 * time.Second       // for one turn, with waiting for a connection
	leaving  = 5 * time.Second        // for giving back leases at the end
)

// Dispatcher makes the attempts at all users' deliveries. What is owed lies in the users' databases; in memory are only
// rows it holds a lease on, one queue per host, so that a host that fails holds up nobody else's. Attempts and memory are
// shared by the registrable domains of the inboxes; what users of this server get has attempts of its own.
type Dispatcher struct {
	Deps
	queue    queue
	ledger   ledger
	metrics  metrics
	lines    lines
	unsigned unsigned
	poll     time.Duration
	kick     chan struct{}  // something may start
	news     chan struct{}  // something is to be remembered
	under    sync.WaitGroup // turns and attempts under way

	mu         sync.Mutex
	users      map[vocab.Username]*user
	due        users            // who wait for a turn
	turns      int              // under way
	hosts      map[string]*host // who have something waiting or something to remember
	ready      *rotation        // who may start an attempt at something of users' own
	passing    *rotation        // who may start one at what others said
	attempts   *policy.Pool     // under way to other servers, by domain
	rows       *policy.Pool     // held, by domain
	forwarding int              // of the attempts under way, those
	forwarded  int              // of what is held, that
	parked     map[string]map[vocab.Username]bool
	leaves     bool // nothing new starts

	// What is to be remembered in the instance database.
	changed       map[string]bool // hosts
	park, resumed map[db.Parked]bool
	unmarked      map[*user]bool
	seen          time.Time // the last change by the operator that was taken in
	begun         bool      // what was remembered has been taken in
}

// user is a user with deliveries.
type user struct {
	name      vocab.Username
	due       time.Time // of the next turn; zero: none is needed
	place     int       // in Dispatcher.due, -1: not there
	busy      bool      // a turn is under way
	again     bool      // another turn is needed right after it
	tookBack  bool
	failures  int // turns in a row that failed
	ended     []ended
	held      map[int64]*row
	forwarded int             // of them, what others said
	resume    map[string]bool // hosts whose deliveries are to be made due again
	marked    *time.Time      // what the instance database says of when this user is due
	open      []db.OpenDeliveries
	counted   time.Time
}

// row is a delivery on which this process holds a lease.
type row struct {
	db.Delivery
	user   *user
	domain string
	lease  time.Time // its end
}

// New returns a dispatcher. Nothing happens before Run.
func New(deps Deps) *Dispatcher {
	if deps.Concurrency == 0 {
		deps.Concurrency = 128
	}
	if deps.HostConcurrency == 0 {
		deps.HostConcurrency = 4
	}
	d := &Dispatcher{Deps: deps, lines: newLines(deps.Now), queue: stored{deps.Store, deps.Owner}, ledger: deps.Store, poll: polled, kick: make(chan struct{}, 1), news: make(chan struct{}, 1),
		attempts: policy.DeliveryAttempts.PoolOf(int64(deps.Concurrency)), rows: policy.HeldDeliveries.NewPool(), ready: newRotation(), passing: newRotation(),
		users: map[vocab.Username]*user{}, hosts: map[string]*host{}, parked: map[string]map[vocab.Username]bool{},
		changed: map[string]bool{}, park: map[db.Parked]bool{}, resumed: map[db.Parked]bool{}, unmarked: map[*user]bool{}}
	d.metrics = newMetrics(deps.Metrics, d)
	return d
}

// atOnce is before every other time.
var atOnce = time.Unix(0, 0)

// Wake says that u owes something new. It does not wait.
func (d *Dispatcher) Wake(u vocab.Username) { d.want(u, atOnce) }

// want asks for a turn of u.
func (d *Dispatcher) want(name vocab.Username, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.schedule(d.user(name), at)
	d.nudge()
}

// user returns what is known of a user. The caller holds mu.
func (d *Dispatcher) user(name vocab.Username) *user {
	u := d.users[name]
	if u == nil {
		u = &user{name: name, place: -1, held: map[int64]*row{}, resume: map[string]bool{}}
		d.users[name] = u
	}
	return u
}

// Leases returns the leases that whoever stores a job may take for this dispatcher, and then hands over with Take.
func (d *Dispatcher) Leases() db.DeliveryLeases {
	d.mu.Lock()
	defer d.mu.Unlock()
	most := d.rows.Share()
	if d.leaves || d.Paused || most < handful {
		return db.DeliveryLeases{}
	}
	now := d.Now()
	l := db.DeliveryLeases{Owner: d.Owner, Until: now.Add(deliveryLease), Most: int(most), Except: d.fullDomains(1)}
	for _, h := range d.hosts {
		if h.refuses(now) || !h.inactive.IsZero() {
			l.Except = append(l.Except, h.name)
		}
	}
	return l
}

// Take begins with deliveries of u that are leased to this dispatcher until then, and says that u may owe more. It waits
// for nothing while the dispatcher runs.
func (d *Dispatcher) Take(ctx context.Context, u vocab.Username, rows []db.Delivery, until time.Time) {
	d.mu.Lock()
	leaves := d.leaves
	if !leaves {
		owner := d.user(u)
		d.take(owner, rows, until.Add(-deliveryLease), until)
		d.schedule(owner, atOnce)
		d.nudge()
	}
	d.mu.Unlock()
	if leaves && len(rows) > 0 { // the next process would take them back, too
		if err := d.queue.leave(ctx, u, nil, d.Now()); err != nil {
			d.Log.WarnContext(ctx, "deliveries could not be given back", "user", u, "err", err)
		}
	}
}

// schedule makes sure that u has a turn by then. The caller holds mu.
func (d *Dispatcher) schedule(u *user, at time.Time) {
	d.remark(u)
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
	d.begin(ctx)
	d.under.Add(2)
	go d.sweep(ctx)
	go d.watch(ctx)
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
		t := d.plan(u, now)
		d.under.Add(1)
		go d.turn(ctx, u, t)
	}
	for {
		r := d.next(now)
		if r == nil {
			break
		}
		if r.Forwarded {
			d.forwarding++
		}
		d.metrics.inflight.Inc()
		d.under.Add(1)
		go d.attempt(ctx, r)
	}
	if d.turns == maxTurns || len(d.due) == 0 {
		return time.Hour // something under way, or a new wake, will nudge
	}
	return d.due[0].due.Sub(now)
}

// next returns the delivery to attempt next: one to a user of this server, or else of the host whose turn it is, and of what
// others said while no host may be sent something of users' own, with at most half of the attempts at once. The caller holds
// mu.
func (d *Dispatcher) next(now time.Time) *row {
	if h := d.hosts[""]; h != nil {
		if r := d.popRow(h, now); r != nil {
			return r
		}
	}
	if d.attempts.Used() >= int64(d.Concurrency) {
		return nil
	}
	if r := d.nextOf(d.ready, now); r != nil || d.forwarding >= max(1, d.Concurrency/2) {
		return r
	}
	return d.nextOf(d.passing, now)
}

// nextOf goes round the hosts of one round. The caller holds mu.
func (d *Dispatcher) nextOf(hosts *rotation, now time.Time) *row {
	for h := hosts.next(d.attempts); h != nil; h = hosts.next(d.attempts) {
		r := d.popRow(h, now)
		d.list(h)
		if r != nil {
			return r
		}
		d.attempts.Give(h.domain, 1)
	}
	return nil
}

// popRow starts an attempt at the next delivery of h, nil when none may start. The caller holds mu.
func (d *Dispatcher) popRow(h *host, now time.Time) *row {
	for r := h.pop(); r != nil; r = h.pop() {
		if r.lease.Sub(now) >= margin {
			return r
		}
		h.ended(r, result{}, now) // it waited too long: its lease could end during the attempt
		d.settle(r, put(r.Delivery, now, "", now))
	}
	return nil
}

// list puts h into a round if it may start an attempt; this server needs none. The caller holds mu.
func (d *Dispatcher) list(h *host) {
	switch from := h.ready(); {
	case from == nil || h.name == "":
	case from == &h.forwarded:
		d.passing.add(h)
	default:
		d.ready.add(h)
	}
}

// settle leaves an outcome, and which targets are gone, to the user's next turn. The caller holds mu.
func (d *Dispatcher) settle(r *row, o db.Outcome, gone ...vocab.ID) {
	r.user.ended = append(r.user.ended, ended{r.Delivery, o, gone})
	d.schedule(r.user, atOnce)
}

// finish takes in how an attempt ended.
func (d *Dispatcher) finish(r *row, res result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.Now()
	if r.Forwarded {
		d.forwarding--
	}
	d.metrics.inflight.Dec()
	h := d.hosts[r.Host]
	if h.name != "" {
		d.attempts.Give(h.domain, 1)
	}
	if away := h.away(); h.ended(r, res, now) {
		d.remember(h.name)
		if away && !h.away() {
			d.resume(h.name)
		}
	}
	if !res.cut {
		d.settle(r, res.outcome, res.gone...)
	}
	d.putOff(h, now)
	d.list(h)
	d.drop(h, now)
	d.nudge()
}

// drop forgets a host of which nothing has to be remembered. The caller holds mu.
func (d *Dispatcher) drop(h *host, now time.Time) {
	if h.idle(now) && len(d.parked[h.name]) == 0 {
		delete(d.hosts, h.name)
	}
}

// putOff gives back what waits for a host that is left alone. The caller holds mu.
func (d *Dispatcher) putOff(h *host, now time.Time) {
	if !h.rests(now) {
		return
	}
	for _, r := range h.flush() {
		d.set(r, h, now)
	}
}

// set sets a delivery aside that may not be attempted. The caller holds mu.
func (d *Dispatcher) set(r *row, h *host, now time.Time) {
	switch {
	case h.paused:
		d.settle(r, put(r.Delivery, now, "the operator holds back deliveries to the host", now))
	case !h.inactive.IsZero():
		d.settle(r, parked(r.Delivery, h.inactive, now))
		d.parks(h.name, r.user)
	default:
		d.waits(h.name, r.user)
		d.settle(r, put(r.Delivery, h.until(), "the host is left alone for a while: "+cmp.Or(h.why, "it asked for that"), now))
	}
}

// sweep gives every user a turn now and then, so slowly that it costs next to nothing: it finds what nobody was told of.
func (d *Dispatcher) sweep(ctx context.Context) {
	defer d.under.Done()
	for least := hurry; ; least = pace {
		users, err := d.queue.users(ctx)
		if err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "users could not be listed", "err", err)
		}
		pause := max(least, round/time.Duration(max(len(users), 1)))
		for _, u := range users {
			d.want(u, d.Now())
			if !wait(ctx, pause) {
				return
			}
		}
		if len(users) == 0 && !wait(ctx, round) {
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
	d.mu.Lock()
	d.leaves = true
	d.mu.Unlock()
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
	var g errgroup.Group
	g.SetLimit(maxTurns)
	d.mu.Lock()
	for _, u := range d.users {
		if len(u.ended) == 0 && len(u.held) == 0 {
			continue
		}
		ended, now := u.ended, d.Now()
		g.Go(func() error {
			if err := d.queue.leave(ctx, u.name, ended, now); err != nil { // the next process takes them back
				d.Log.WarnContext(ctx, "deliveries could not be given back", "user", u.name, "err", err)
			}
			return nil
		})
	}
	d.mu.Unlock()
	_ = g.Wait() // every error was logged
	d.flush(ctx)
}
