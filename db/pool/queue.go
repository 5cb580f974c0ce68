package pool

import (
	"container/list"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/engine/fault"
)

// strangerTime limits how long a stranger waits for a connection.
const strangerTime = 2 * time.Second

// maxOwners limits how many requests of a user's own programs wait for a connection to the user's
// database. Such requests have no budget of their own, and every waiter costs the pool time.
const maxOwners = 64

var (
	errStopping = fault.New(fault.Unavailable, "the engine is stopping").WithCode("database_unavailable")
	errCrowded  = fault.New(fault.Unavailable, "too many are asking: try again later").WithCode("crowded").After(time.Second)
)

// waiter is a call of Acquire that waits for a connection to a database.
type waiter struct {
	class    Class
	database string
	payer    string     // empty for none
	turn     int        // see nextTurn
	arrival  uint64     // the number of the call
	ready    chan grant // has a buffer of one
	mayOpen  func() bool
	of       *databaseConns // set when it enters the queue
	elem     *list.Element
}

// grant is the answer to a waiter. It has a lease, or the reason why the waiter gets no lease.
type grant struct {
	lease   *Lease
	opened  func()    // is called when the connection of the lease has been opened; nil if it is open
	evicted *pgx.Conn // the slot's former connection, to be closed before the new one is opened
	err     error
}

// enterQueue puts a new waiter into the queue, and serves the waiters that can be served now. It
// refuses a database that is recorded as broken, because a waiter would wait for it in vain.
func (c *Pool) enterQueue(class Class, database, payer string, mayOpen func() bool) (*waiter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errStopping
	}
	if err := c.broken.failureOf(database); err != nil {
		return nil, err
	}
	if p := c.databases[database]; class == Owner && p != nil && p.owners >= maxOwners {
		c.metrics.crowded.Inc()
		return nil, errCrowded
	}
	c.arrivals++
	w := &waiter{class: class, database: database, payer: payer, arrival: c.arrivals, ready: make(chan grant, 1), mayOpen: mayOpen}
	c.enqueue(w)
	c.serveWaiters()
	return w, nil
}

// nextTurn returns the turn of w before w enters its queue. This is the first turn among the
// calls that wait for the same database, but later than all turns of the same payer among these
// calls. So the calls of one payer are served in order of arrival, and do not make others wait
// until all of them are served. A call without a payer has turn 0. The caller holds mu.
func (c *Pool) nextTurn(w *waiter) int {
	first, own := math.MaxInt, 0
	for el := c.waiters[w.class].Front(); el != nil && w.payer != ""; el = el.Next() {
		other := el.Value.(*waiter)
		if other.of != w.of {
			continue
		}
		first = min(first, other.turn)
		if other.payer == w.payer {
			own = max(own, other.turn+1)
		}
	}
	if first == math.MaxInt {
		return 0
	}
	return max(first, own)
}

// enqueue puts w into the queue of its class, in order of arrival. The caller holds mu.
func (c *Pool) enqueue(w *waiter) {
	w.of = c.connsOf(w.database)
	w.of.waiting++
	if w.class == Owner {
		w.of.owners++
	}
	w.turn = c.nextTurn(w)
	queue := c.waiters[w.class]
	el := queue.Back()
	for el != nil && el.Value.(*waiter).arrival > w.arrival {
		el = el.Prev()
	}
	if el == nil {
		w.elem = queue.PushFront(w)
		return
	}
	w.elem = queue.InsertAfter(w, el)
}

// dequeue undoes enqueue. The caller holds mu.
func (c *Pool) dequeue(w *waiter) {
	c.waiters[w.class].Remove(w.elem)
	w.of.waiting--
	if w.class == Owner {
		w.of.owners--
	}
}

// awaitGrant waits for the grant of w. A stranger waits for at most strangerTime.
func (c *Pool) awaitGrant(ctx context.Context, w *waiter) grant {
	select {
	case g := <-w.ready: // a grant is taken even if ctx has ended
		return g
	default:
	}
	if w.class == Stranger {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, strangerTime, errCrowded)
		defer cancel()
	}
	select {
	case g := <-w.ready:
		return g
	case <-ctx.Done():
		return c.giveUp(ctx, w)
	}
}

// giveUp takes w out of the queue and returns the fault. But if w was served in the same moment,
// giveUp returns the grant.
func (c *Pool) giveUp(ctx context.Context, w *waiter) grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case g := <-w.ready:
		return g
	default:
	}
	c.dequeue(w)
	c.forgetUnused(w.of)
	if errors.Is(context.Cause(ctx), errCrowded) {
		c.metrics.crowded.Inc()
		return grant{err: errCrowded}
	}
	return grant{err: fault.Wrap(fault.Unavailable, "all database connections are in use", ctx.Err()).WithCode("crowded").After(time.Second)}
}

// serveWaiters gives free slots to waiters. It is called after every change, so that no waiter
// waits while a slot is free for it. The caller holds mu.
func (c *Pool) serveWaiters() {
	for w := c.nextWaiter(); w != nil; w = c.nextWaiter() {
		c.dequeue(w)
		w.ready <- c.grantSlot(w)
		c.forgetUnused(w.of)
	}
}

// nextWaiter returns the waiter that is served now, nil when there is none. First it looks for
// the waiter that arrived first, and skips waiters whose database or class has used up its share.
// Then it returns, among the waiters of the same class for the same database, the first one of
// those with the first turn. The caller holds mu.
func (c *Pool) nextWaiter() *waiter {
	var first *waiter
	for class := range classes {
		if !c.hasRoom(class) {
			continue
		}
		for el := c.waiters[class].Front(); el != nil; el = el.Next() {
			w := el.Value.(*waiter)
			if first != nil && w.arrival > first.arrival {
				break
			}
			if c.hasRoomAt(w.of, class) && c.mayOpenFor(w) {
				first = w
				break
			}
		}
	}
	if first == nil {
		return nil
	}
	for el := first.elem.Next(); el != nil; el = el.Next() {
		if w := el.Value.(*waiter); w.of == first.of && w.turn < first.turn {
			first = w
		}
	}
	return first
}

// hasRoom reports whether a class may have one slot more. The class may have it if its own share
// is not used up, and the slots reserved for the other classes remain available to them. The
// caller holds mu.
func (c *Pool) hasRoom(class Class) bool {
	if c.held[class] >= classShare(class, c.ceiling) {
		return false
	}
	free := c.ceiling - c.shutting - c.held[class]
	for other := range classes {
		if other != class {
			free -= max(c.held[other], keptFor(other, c.ceiling))
		}
	}
	return free > 0
}

// hasRoomAt reports whether a class may have one slot more for this database. The caller holds mu.
func (c *Pool) hasRoomAt(p *databaseConns, class Class) bool {
	all := 0
	for _, n := range p.held {
		all += n
	}
	return all < databaseShare(Work, c.ceiling) && p.held[class] < databaseShare(class, c.ceiling)
}

// mayOpenFor reports whether w can be served as far as the connections matter that are being opened
// (see openings). The caller holds mu.
func (c *Pool) mayOpenFor(w *waiter) bool {
	return len(w.of.idle) > 0 || c.opening[w.class] < openings(w.class)
}

// countOpening counts a connection that is being opened. The result ends that, and is called when
// the connection is open. After slowOpen it ends by itself. The caller holds mu.
func (c *Pool) countOpening(class Class) func() {
	c.opening[class]++
	opened := sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.opening[class]--
		c.serveWaiters()
	})
	slow := time.AfterFunc(slowOpen, opened)
	return func() {
		slow.Stop()
		opened()
	}
}

// grantSlot gives w a slot, or refuses w. If there is an idle connection to the database, w gets
// that one. Otherwise w opens a connection, and if no slot is free, the connection that was idle
// for longest is evicted for it. grantSlot refuses w if the database is recorded as broken, or if
// w would need a new connection and may not open one. The caller holds mu.
func (c *Pool) grantSlot(w *waiter) grant {
	if err := c.broken.failureOf(w.of.database); err != nil {
		return grant{err: err}
	}
	if own := w.of.idle; len(own) > 0 {
		l := own[len(own)-1]
		l.class = w.class
		c.occupySlot(l)
		c.takeIdle(l)
		return grant{lease: l}
	}
	if !w.mayOpen() {
		c.metrics.crowded.Inc()
		return grant{err: errCrowded}
	}
	g := grant{lease: &Lease{of: w.of, class: w.class}, opened: c.countOpening(w.class)}
	if c.inUse()+c.shutting+c.idle.Len() >= c.ceiling {
		oldest := c.idle.Front().Value.(*Lease)
		c.takeIdle(oldest)
		g.evicted = oldest.conn
		c.metrics.evicted.Inc()
	}
	c.occupySlot(g.lease)
	return g
}
