package db

import (
	"container/list"
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/lightweb/lightweb/engine/holding"
)

const (
	idleTime = 10 * time.Minute // after which an unused connection is closed
	lifeTime = time.Hour        // after which a connection is not used again, give or take a fifth
)

// conns manages the connections to users' databases: one limit for all, of which each class has a share; the idle one
// that was used least recently makes way, and who waits is served in order of coming as far as the share of the class
// and of the user allow. Opening a connection costs about fifteen times a write.
type conns struct {
	connect func(ctx context.Context, database string) (*pgx.Conn, error)
	usable  func(*pgx.Conn) bool // whether it can serve another transaction
	shut    func(*pgx.Conn)
	log     *slog.Logger
	metrics connMetrics

	mu        sync.Mutex
	limit     int               // of connections
	ceiling   int               // of connections, less than limit for a while after the server was full
	held      [classes]int      // slots in use, by class; a connection that is being opened is in use
	shutting  int               // slots whose connection is being closed
	idle      *list.List        // of *lease, the least recently used first
	databases map[string]*place // those of which anything is held, idle or waited for
	waiters   [classes]*list.List
	came      uint64 // how many have asked so far
	broken    broken
	closed    bool
	out       sync.WaitGroup // held slots
	reaper    *time.Timer
	grower    *time.Timer // runs while ceiling is below limit
	toldFull  rate.Sometimes
}

// place is what there is of one database.
type place struct {
	database string
	held     [classes]int
	idle     []*lease // the most recently used last
	waiting  int
}

// lease is a slot in use, and the connection that fills it.
type lease struct {
	conn   *pgx.Conn // nil: one has yet to be opened
	place  *place
	class  Class
	until  time.Time // when it is too old to be used again
	at     time.Time // since when it is idle
	reused bool      // it was idle before, and may have died meanwhile
	elem   *list.Element
}

func newConns(limit int, connect func(context.Context, string) (*pgx.Conn, error), log *slog.Logger, reg prometheus.Registerer) *conns {
	c := &conns{connect: connect, usable: settled, shut: shut, log: log, limit: limit, ceiling: limit, idle: list.New(),
		databases: map[string]*place{}, broken: broken{}, toldFull: rate.Sometimes{Interval: time.Minute}}
	for class := range c.waiters {
		c.waiters[class] = list.New()
	}
	c.metrics = newConnMetrics(reg, c)
	c.reaper = time.AfterFunc(idleTime/2, c.reap)
	c.grower = time.AfterFunc(growTime, c.grow)
	c.grower.Stop()
	return c
}

// settled tells whether a connection lives and is in no transaction.
func settled(conn *pgx.Conn) bool { return !conn.IsClosed() && conn.PgConn().TxStatus() == 'I' }

// shut closes a connection. It returns when the server has closed it too: until then it counts there.
func shut(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if settled(conn) {
		wire, terminate := conn.PgConn().Conn(), []byte{'X', 0, 0, 0, 4}
		deadline, _ := ctx.Deadline()
		if wire.SetDeadline(deadline) == nil {
			_, _ = wire.Write(terminate)     // a lost connection the server notices itself
			_, _ = io.Copy(io.Discard, wire) // until its end, or the deadline
		}
	}
	_ = conn.Close(ctx) // nothing is pending on it
	select {
	case <-conn.PgConn().CleanupDone(): // what was called off is closed behind our back
	case <-ctx.Done():
	}
}

// acquire returns a connection to the database, waiting for its turn while none may be had. mayOpen
// says whether one may be opened for it; nil: always. It is called with mu held.
func (c *conns) acquire(ctx context.Context, class Class, database string, mayOpen func(context.Context) bool) (*lease, error) {
	if err := holding.Check(ctx, "a connection to a user's database"); err != nil {
		return nil, err
	}
	start := time.Now()
	w, err := c.arrive(class, database, func() bool { return mayOpen == nil || mayOpen(ctx) })
	if err != nil {
		return nil, err
	}
	for {
		g := c.wait(ctx, w)
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
		if start = time.Now(); !c.failed(g.lease, w, err) {
			return nil, err
		}
	}
}

// open fills a slot with a connection.
func (c *conns) open(ctx context.Context, g grant) (err error) {
	if g.evicted != nil {
		c.shut(g.evicted)
	}
	l := g.lease
	if l.conn, err = c.connect(ctx, l.place.database); err != nil {
		return err
	}
	c.metrics.opened.Inc()
	l.until = time.Now().Add(jittered(lifeTime))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken.note(l.place.database, nil)
	return nil
}

// failed gives back the slot of w, in which no connection could be opened. When only the server had no room for it, w
// stands in the queue again, where it was, and is served when one of our other connections is free.
func (c *conns) failed(l *lease, w *waiter, err error) (again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken.note(l.place.database, err)
	c.vacate(l)
	if again = full(err) && !c.closed && c.shrink(); again {
		c.enqueue(w)
	}
	c.serve()
	return again
}

// release gives a connection back. One in an unfinished transaction, closed or old is not used again.
func (c *conns) release(l *lease) {
	keep := c.usable(l.conn) && time.Now().Before(l.until)
	c.mu.Lock()
	defer c.mu.Unlock()
	if keep && !c.closed {
		l.reused, l.at = true, time.Now()
		l.elem = c.idle.PushBack(l)
		l.place.idle = append(l.place.idle, l)
	} else {
		c.mu.Unlock()
		c.shut(l.conn)
		c.mu.Lock()
	}
	c.vacate(l)
	c.serve()
}

// inUse counts the slots that somebody holds. The caller holds mu.
func (c *conns) inUse() int {
	n := 0
	for _, held := range c.held {
		n += held
	}
	return n
}

// at returns the place of a database. The caller holds mu.
func (c *conns) at(database string) *place {
	p := c.databases[database]
	if p == nil {
		p = &place{database: database}
		c.databases[database] = p
	}
	return p
}

// leave forgets a place at which nothing is. The caller holds mu.
func (c *conns) leave(p *place) {
	if p.held == [classes]int{} && len(p.idle) == 0 && p.waiting == 0 {
		delete(c.databases, p.database)
	}
}

// hold counts a slot as in use. The caller holds mu.
func (c *conns) hold(l *lease) {
	c.out.Add(1)
	c.held[l.class]++
	l.place.held[l.class]++
}

// vacate undoes hold. The caller holds mu.
func (c *conns) vacate(l *lease) {
	c.held[l.class]--
	l.place.held[l.class]--
	c.leave(l.place)
	c.out.Done()
}

// take takes a connection from the idle ones. The caller holds mu.
func (c *conns) take(l *lease) {
	c.idle.Remove(l.elem)
	l.place.idle = slices.DeleteFunc(l.place.idle, func(x *lease) bool { return x == l })
	c.leave(l.place)
}

// reap closes connections that were idle for long, or are old.
func (c *conns) reap() {
	now := time.Now()
	c.closeIdle(func(l *lease) bool { return now.Sub(l.at) >= idleTime || !now.Before(l.until) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.reaper.Reset(idleTime / 2)
	}
}

func (c *conns) closeIdle(which func(*lease) bool) {
	var old []*lease
	c.mu.Lock()
	for el := c.idle.Front(); el != nil; {
		l := el.Value.(*lease)
		el = el.Next()
		if which(l) {
			c.take(l)
			c.shutting++
			old = append(old, l)
		}
	}
	c.mu.Unlock()
	for _, l := range old {
		c.shut(l.conn)
		c.mu.Lock()
		c.shutting--
		c.serve()
		c.mu.Unlock()
	}
}

// close turns away who waits or comes, waits for who has a connection, and closes all.
func (c *conns) close() {
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
				c.leave(w.place)
			}
		}
	}
	c.mu.Unlock()
	c.closeIdle(func(*lease) bool { return true })
	c.out.Wait()
}
