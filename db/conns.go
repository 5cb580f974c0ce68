package db

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/fault"
)

const (
	idleTime = 10 * time.Minute // after which an unused connection is closed
	lifeTime = time.Hour        // after which a connection is not used again
)

// conns manages the connections to users' databases: one cap for all, the least recently used idle one makes way, and
// who waits is served in order of coming. Opening a connection costs about fifteen times a write.
type conns struct {
	connect func(ctx context.Context, database string) (*pgx.Conn, error)
	usable  func(*pgx.Conn) bool // whether it can serve another transaction
	shut    func(*pgx.Conn)
	metrics connMetrics

	mu      sync.Mutex
	free    int                 // slots nobody holds and no idle connection fills
	idle    *list.List          // of *lease, the least recently used first; empty while anybody waits
	byName  map[string][]*lease // idle connections per database, the most recently used last
	waiters *list.List          // of *waiter, the first come first
	closed  bool
	out     sync.WaitGroup // slots that somebody holds
	reaper  *time.Timer
}

// lease is a connection and the slot it fills.
type lease struct {
	conn       *pgx.Conn
	database   string
	opened, at time.Time // at: since when it is idle
	reused     bool      // it was idle before, and may have died meanwhile
	elem       *list.Element
}

type waiter struct {
	database string
	ready    chan *lease // gives a connection, or nil for a slot to open one in; closed when nobody is served any more
}

func newConns(limit int, connect func(context.Context, string) (*pgx.Conn, error), reg prometheus.Registerer) *conns {
	c := &conns{connect: connect, usable: settled, shut: shut, metrics: newConnMetrics(reg), free: limit, idle: list.New(),
		byName: map[string][]*lease{}, waiters: list.New()}
	c.reaper = time.AfterFunc(idleTime/2, c.reap)
	return c
}

// settled tells whether a connection lives and is in no transaction.
func settled(conn *pgx.Conn) bool { return !conn.IsClosed() && conn.PgConn().TxStatus() == 'I' }

func shut(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // nothing is pending on it, and the server notices a lost one itself
}

// acquire returns a connection to the database, waiting for its turn while all are in use.
func (c *conns) acquire(ctx context.Context, database string) (*lease, error) {
	l, err := c.slot(ctx, database)
	if err != nil || l != nil {
		return l, err
	}
	conn, err := c.connect(ctx, database)
	if err != nil {
		c.metrics.failed.Inc()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.handOver()
		return nil, err
	}
	c.metrics.opened.Inc()
	return &lease{conn: conn, database: database, opened: time.Now()}, nil
}

// slot returns an idle connection to the database, or nil when the caller may open one.
func (c *conns) slot(ctx context.Context, database string) (*lease, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errStopping
	}
	if own := c.byName[database]; len(own) > 0 {
		l := own[len(own)-1]
		c.take(l)
		c.mu.Unlock()
		return l, nil
	}
	if c.free > 0 {
		c.free--
		c.out.Add(1)
		c.mu.Unlock()
		return nil, nil
	}
	if oldest := c.idle.Front(); oldest != nil {
		l := oldest.Value.(*lease)
		c.take(l)
		c.mu.Unlock()
		c.shut(l.conn)
		return nil, nil
	}
	w := &waiter{database: database, ready: make(chan *lease, 1)}
	place := c.waiters.PushBack(w)
	c.mu.Unlock()
	return c.wait(ctx, w, place)
}

func (c *conns) wait(ctx context.Context, w *waiter, place *list.Element) (*lease, error) {
	select {
	case l, served := <-w.ready:
		if !served {
			return nil, errStopping
		}
		if l != nil && l.database != w.database {
			c.shut(l.conn)
			l = nil
		}
		return l, nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	select {
	case l, served := <-w.ready: // given in the same moment: pass it on
		if l != nil {
			defer c.release(l)
		} else if served {
			c.handOver()
		}
	default:
		c.waiters.Remove(place)
	}
	c.mu.Unlock()
	return nil, fault.Wrap(fault.Unavailable, "all database connections are in use", ctx.Err()).After(time.Second)
}

var errStopping = fault.New(fault.Unavailable, "the engine is stopping")

// release gives a connection back. One in an unfinished transaction, closed or old is not used again.
func (c *conns) release(l *lease) {
	keep := c.usable(l.conn) && time.Since(l.opened) < lifeTime
	c.mu.Lock()
	if keep && !c.closed {
		c.put(l)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.shut(l.conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handOver()
}

// put gives a connection to the first who waits, or keeps it. The caller holds mu.
func (c *conns) put(l *lease) {
	l.reused = true
	if first := c.waiters.Front(); first != nil {
		c.waiters.Remove(first).(*waiter).ready <- l
		return
	}
	l.at = time.Now()
	l.elem = c.idle.PushBack(l)
	c.byName[l.database] = append(c.byName[l.database], l)
	c.out.Done()
}

// handOver gives a slot without connection to the first who waits, or counts it free. The caller holds mu.
func (c *conns) handOver() {
	if first := c.waiters.Front(); first != nil {
		c.waiters.Remove(first).(*waiter).ready <- nil
		return
	}
	c.free++
	c.out.Done()
}

// take takes an idle connection with its slot. The caller holds mu.
func (c *conns) take(l *lease) {
	c.idle.Remove(l.elem)
	own := c.byName[l.database]
	own = slices.DeleteFunc(own, func(x *lease) bool { return x == l })
	if c.byName[l.database] = own; len(own) == 0 {
		delete(c.byName, l.database)
	}
	c.out.Add(1)
}

// reap closes connections that were idle for long.
func (c *conns) reap() {
	c.closeIdle(func(l *lease) bool { return time.Since(l.at) >= idleTime })
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
			old = append(old, l)
		}
	}
	c.mu.Unlock()
	for _, l := range old {
		c.shut(l.conn)
		c.mu.Lock()
		c.handOver()
		c.mu.Unlock()
	}
}

// close turns away who waits or comes, waits for who has a connection, and closes all.
func (c *conns) close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.reaper.Stop()
		for w := c.waiters.Front(); w != nil; w = c.waiters.Front() {
			close(c.waiters.Remove(w).(*waiter).ready)
		}
	}
	c.mu.Unlock()
	c.closeIdle(func(*lease) bool { return true })
	c.out.Wait()
}
