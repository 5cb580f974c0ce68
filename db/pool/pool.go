// Package pool manages the connections to users' databases, under one limit for the process. It
// knows nothing of tables.
package pool

import (
	"container/list"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/holding"
)

const (
	idleTime = 10 * time.Minute // an unused connection is closed after this time
	lifeTime = time.Hour        // a connection is not reused after this time, give or take a fifth
)

// Pool manages the connections to users' databases. Each class has a share of the limit. When the
// limit is reached, a new connection takes the slot of the connection that was idle for longest.
// Waiters are served in order of arrival, as far as the shares of their class and of their
// database allow. Strangers are served by turns of their payers. To open a connection costs some
// fifteen times as much as a write.
type Pool struct {
	connect func(ctx context.Context, database string) (*pgx.Conn, error)
	usable  func(*pgx.Conn) bool // whether a connection can serve another transaction
	shut    func(*pgx.Conn)
	log     *slog.Logger
	metrics connMetrics

	mu        sync.Mutex
	limit     int                       // of connections
	ceiling   int                       // how many connections there may be now; below limit for some time after the server had no room
	held      [classes]int              // slots in use, by class, including connections that are being opened
	shutting  int                       // slots whose connection is being closed
	opening   [classes]int              // connections that are being opened for less than slowOpen, by class
	idle      *list.List                // of *Lease, the least recently used first
	databases map[string]*databaseConns // the databases with a connection or a waiter
	waiters   [classes]*list.List
	arrivals  uint64 // how many calls of Acquire there were so far
	broken    broken
	closed    bool
	out       sync.WaitGroup // counts the slots in use
	reaper    *time.Timer
	grower    *time.Timer // runs while ceiling is below limit
	toldFull  rate.Sometimes
}

// databaseConns has the connections to one database, and the number of callers that wait for one
// of these connections.
type databaseConns struct {
	database string
	held     [classes]int
	idle     []*Lease // the most recently used last
	waiting  int
	owners   int // those among waiting that are of the class Owner
}

// Lease is a connection and its slot, that is, its place under the pool's limit. It is in use or
// idle.
type Lease struct {
	conn   *pgx.Conn // nil until the connection is opened
	of     *databaseConns
	class  Class
	until  time.Time // the connection is not reused after this time
	at     time.Time // when it became idle
	reused bool
	elem   *list.Element
}

// Conn returns the connection. It may be used until Release.
func (l *Lease) Conn() *pgx.Conn { return l.conn }

// IsReused reports whether the connection was idle before. Such a connection may have died while
// it was idle.
func (l *Lease) IsReused() bool { return l.reused }

// New returns a pool of up to limit connections. It opens them with connect.
func New(limit int, connect func(context.Context, string) (*pgx.Conn, error), log *slog.Logger, reg prometheus.Registerer) *Pool {
	c := &Pool{connect: connect, usable: postgres.IsSettled, shut: postgres.Shut, log: log, limit: limit, ceiling: limit, idle: list.New(),
		databases: map[string]*databaseConns{}, broken: broken{}, toldFull: rate.Sometimes{Interval: time.Minute}}
	for class := range c.waiters {
		c.waiters[class] = list.New()
	}
	c.metrics = newConnMetrics(reg, c)
	c.reaper = time.AfterFunc(idleTime/2, c.closeOld)
	c.grower = time.AfterFunc(growTime, c.raiseCeiling)
	c.grower.Stop()
	return c
}

// Acquire returns a connection to the database. It waits in a queue until one is available, but
// for the class Stranger no longer than strangerTime. It refuses a database that is recorded as
// broken. If the parameter "of" is nil, as for all classes but Stranger, nobody pays for the
// call, and a connection may always be opened.
func (c *Pool) Acquire(ctx context.Context, class Class, database string, of *Strangers) (*Lease, error) {
	if err := holding.RefuseHolder(ctx, "a connection to a user's database"); err != nil {
		return nil, err
	}
	start := time.Now()
	payer := ""
	if of != nil {
		payer = of.PayerOf(ctx)
	}
	w, err := c.enterQueue(class, database, payer, func() bool { return of == nil || of.MayOpen(ctx) })
	if err != nil {
		return nil, err
	}
	for {
		g := c.awaitGrant(ctx, w)
		c.metrics.waited[class].Observe(time.Since(start).Seconds())
		if g.err != nil || g.lease.conn != nil {
			return g.lease, g.err
		}
		err := c.open(ctx, g)
		if err == nil {
			return g.lease, nil
		}
		if ctx.Err() == nil {
			c.metrics.failed.Inc()
		}
		if start = time.Now(); !c.giveBackSlot(g.lease, w, err) {
			return nil, err
		}
	}
}

// open opens a connection for the slot of a grant.
func (c *Pool) open(ctx context.Context, g grant) (err error) {
	if g.evicted != nil {
		c.shut(g.evicted)
	}
	l := g.lease
	defer g.opened()
	if l.conn, err = c.connect(ctx, l.of.database); err != nil {
		return err
	}
	c.metrics.opened.Inc()
	l.until = time.Now().Add(jittered(lifeTime))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken.noteResult(l.of.database, nil)
	return nil
}

// giveBackSlot frees the slot that w was granted, because the connection could not be opened. The
// parameter err is the reason. If the server had no room, but the pool has other connections, w
// returns to its place in the queue, and is served when one of them becomes free. The result
// "again" is true if w is in the queue again.
func (c *Pool) giveBackSlot(l *Lease, w *waiter, err error) (again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken.noteResult(l.of.database, err)
	c.vacateSlot(l)
	if again = postgres.IsFull(err) && !c.closed && c.lowerCeiling(); again {
		c.enqueue(w)
	}
	c.serveWaiters()
	return again
}

// Release gives a connection back. The pool closes it if it is broken, old, or in an unfinished
// transaction.
func (c *Pool) Release(l *Lease) {
	keep := c.usable(l.conn) && time.Now().Before(l.until)
	c.mu.Lock()
	defer c.mu.Unlock()
	if keep && !c.closed {
		l.reused, l.at = true, time.Now()
		l.elem = c.idle.PushBack(l)
		l.of.idle = append(l.of.idle, l)
	} else {
		c.mu.Unlock()
		c.shut(l.conn)
		c.mu.Lock()
	}
	c.vacateSlot(l)
	c.serveWaiters()
}

// inUse counts the slots that are held. The caller holds mu.
func (c *Pool) inUse() int {
	n := 0
	for _, held := range c.held {
		n += held
	}
	return n
}

// connsOf returns the entry of a database, and makes it if there is none. The caller holds mu.
func (c *Pool) connsOf(database string) *databaseConns {
	p := c.databases[database]
	if p == nil {
		p = &databaseConns{database: database}
		c.databases[database] = p
	}
	return p
}

// forgetUnused removes the entry of a database if it has no connection and no waiter. The caller
// holds mu.
func (c *Pool) forgetUnused(p *databaseConns) {
	if p.held == [classes]int{} && len(p.idle) == 0 && p.waiting == 0 {
		delete(c.databases, p.database)
	}
}

// occupySlot counts the slot of l as in use. The caller holds mu.
func (c *Pool) occupySlot(l *Lease) {
	c.out.Add(1)
	c.held[l.class]++
	l.of.held[l.class]++
}

// vacateSlot undoes occupySlot. The caller holds mu.
func (c *Pool) vacateSlot(l *Lease) {
	c.held[l.class]--
	l.of.held[l.class]--
	c.forgetUnused(l.of)
	c.out.Done()
}

// takeIdle removes a connection from the idle ones. The caller holds mu.
func (c *Pool) takeIdle(l *Lease) {
	c.idle.Remove(l.elem)
	l.of.idle = slices.DeleteFunc(l.of.idle, func(x *Lease) bool { return x == l })
	c.forgetUnused(l.of)
}

// closeOld closes the idle connections that were idle for idleTime or that are too old.
func (c *Pool) closeOld() {
	now := time.Now()
	c.closeIdle(func(l *Lease) bool { return now.Sub(l.at) >= idleTime || !now.Before(l.until) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.reaper.Reset(idleTime / 2)
	}
}

func (c *Pool) closeIdle(which func(*Lease) bool) {
	var old []*Lease
	c.mu.Lock()
	for el := c.idle.Front(); el != nil; {
		l := el.Value.(*Lease)
		el = el.Next()
		if which(l) {
			c.takeIdle(l)
			c.shutting++
			old = append(old, l)
		}
	}
	c.mu.Unlock()
	for _, l := range old {
		c.shut(l.conn)
		c.mu.Lock()
		c.shutting--
		c.serveWaiters()
		c.mu.Unlock()
	}
}

// Close refuses waiters and new calls, closes all connections, and waits until those in use are
// given back.
func (c *Pool) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.reaper.Stop()
		c.grower.Stop()
		for _, queue := range c.waiters {
			for el := queue.Front(); el != nil; el = queue.Front() {
				w := el.Value.(*waiter)
				c.dequeue(w)
				w.ready <- grant{err: errStopping}
				c.forgetUnused(w.of)
			}
		}
	}
	c.mu.Unlock()
	c.closeIdle(func(*Lease) bool { return true })
	c.out.Wait()
}
