package db

import (
	"container/list"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/engine/fault"
)

// strangerTime is how long a stranger waits for a turn.
const strangerTime = 2 * time.Second

var (
	errStopping = fault.New(fault.Unavailable, "the engine is stopping")
	errCrowded  = fault.New(fault.Unavailable, "too many are asking: try again later").WithCode("crowded").After(time.Second)
)

// waiter is who waits for a connection to a database.
type waiter struct {
	class    Class
	database string
	came     uint64     // who came first has the lowest
	ready    chan grant // holds one
	mayOpen  func() bool
	place    *place // while it is in the queue
	elem     *list.Element
}

// grant is what a waiter gets: a lease, or why there is none.
type grant struct {
	lease   *lease
	evicted *pgx.Conn // fills the slot, and has to be closed before another one is opened
	err     error
}

// arrive puts a waiter into the queue, and serves at once the waiters that can be served. A connection that cannot be had
// is refused: the wait would change nothing.
func (c *conns) arrive(class Class, database string, mayOpen func() bool) (*waiter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errStopping
	}
	if err := c.broken.known(database); err != nil {
		return nil, err
	}
	c.came++
	w := &waiter{class: class, database: database, came: c.came, ready: make(chan grant, 1), mayOpen: mayOpen}
	c.enqueue(w)
	c.serve()
	return w, nil
}

// enqueue puts w where it belongs by when it came. The caller holds mu.
func (c *conns) enqueue(w *waiter) {
	w.place = c.at(w.database)
	w.place.waiting++
	queue := c.waiters[w.class]
	el := queue.Back()
	for el != nil && el.Value.(*waiter).came > w.came {
		el = el.Prev()
	}
	if el == nil {
		w.elem = queue.PushFront(w)
		return
	}
	w.elem = queue.InsertAfter(w, el)
}

// dequeue undoes enqueue. The caller holds mu.
func (c *conns) dequeue(w *waiter) {
	c.waiters[w.class].Remove(w.elem)
	w.place.waiting--
}

// wait returns what w gets in the end.
func (c *conns) wait(ctx context.Context, w *waiter) grant {
	select {
	case g := <-w.ready: // what is there is taken, be there time to wait or not
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

// giveUp ends the waiting of w, unless it was served in the same moment.
func (c *conns) giveUp(ctx context.Context, w *waiter) grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case g := <-w.ready:
		return g
	default:
	}
	c.dequeue(w)
	c.leave(w.place)
	if errors.Is(context.Cause(ctx), errCrowded) {
		c.metrics.crowded.Inc()
		return grant{err: errCrowded}
	}
	return grant{err: fault.Wrap(fault.Unavailable, "all database connections are in use", ctx.Err()).After(time.Second)}
}

// serve gives slots to those who may have one. It is called after every change, so that nobody waits for what is free.
// The caller holds mu.
func (c *conns) serve() {
	for w := c.next(); w != nil; w = c.next() {
		c.dequeue(w)
		w.ready <- c.grant(w)
		c.leave(w.place)
	}
}

// next returns who came first of those who may have a slot now: who waits only because its own user or class has its
// share holds up nobody else. The caller holds mu.
func (c *conns) next() *waiter {
	var first *waiter
	for class := range classes {
		if !c.room(class) {
			continue
		}
		for el := c.waiters[class].Front(); el != nil; el = el.Next() {
			w := el.Value.(*waiter)
			if first != nil && w.came > first.came {
				break
			}
			if c.roomAt(w.place, class) {
				first = w
				break
			}
		}
	}
	return first
}

// room tells whether a class may have one slot more: its own share is not used up, and what is kept for the others stays
// free. The caller holds mu.
func (c *conns) room(class Class) bool {
	if c.held[class] >= most(class, c.ceiling) {
		return false
	}
	free := c.ceiling - c.shutting - c.held[class]
	for other := range classes {
		if other != class {
			free -= max(c.held[other], kept(other, c.ceiling))
		}
	}
	return free > 0
}

// roomAt tells whether a class may have one slot more for this database. The caller holds mu.
func (c *conns) roomAt(p *place, class Class) bool {
	all := 0
	for _, n := range p.held {
		all += n
	}
	return all < mostOf(Work, c.ceiling) && p.held[class] < mostOf(class, c.ceiling)
}

// grant gives w the slot that it may have. A connection to its database that is idle costs nothing; else one is opened,
// in place of the least recently used one when there is no free slot. The caller holds mu.
func (c *conns) grant(w *waiter) grant {
	if err := c.broken.known(w.place.database); err != nil {
		return grant{err: err}
	}
	if own := w.place.idle; len(own) > 0 {
		l := own[len(own)-1]
		l.class = w.class
		c.hold(l)
		c.take(l)
		return grant{lease: l}
	}
	if !w.mayOpen() {
		c.metrics.crowded.Inc()
		return grant{err: errCrowded}
	}
	g := grant{lease: &lease{place: w.place, class: w.class}}
	if c.inUse()+c.shutting+c.idle.Len() >= c.ceiling {
		oldest := c.idle.Front().Value.(*lease)
		c.take(oldest)
		g.evicted = oldest.conn
		c.metrics.evicted.Inc()
	}
	c.hold(g.lease)
	return g
}
