package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/holding"
)

// server counts open connections. The connections do not lead to a real server.
type server struct {
	mu      sync.Mutex
	open    map[*pgx.Conn]string
	most    int
	opened  int
	refuses error
	refused int
	room    int // the most connections that may be open; 0 means no limit
	broken  map[*pgx.Conn]bool
}

func newServer() *server { return &server{open: map[*pgx.Conn]string{}, broken: map[*pgx.Conn]bool{}} }

func (s *server) connect(_ context.Context, database string) (*pgx.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refuses := s.refuses
	if s.room > 0 && len(s.open) >= s.room {
		refuses = errFull
	}
	if refuses != nil {
		s.refused++
		return nil, refuses
	}
	conn := new(pgx.Conn)
	s.open[conn] = database
	s.opened++
	s.most = max(s.most, len(s.open))
	return conn, nil
}

func (s *server) shut(conn *pgx.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[conn]; !open {
		panic("a connection was closed twice")
	}
	delete(s.open, conn)
}

func (s *server) usable(conn *pgx.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.broken[conn]
}

func (s *server) is(database string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, d := range s.open {
		if d == database {
			n++
		}
	}
	return n
}

func managed(limit int) (*Pool, *server) {
	s := newServer()
	c := New(limit, s.connect, slog.New(slog.DiscardHandler), nil)
	c.shut, c.usable = s.shut, s.usable
	return c, s
}

// hold takes n connections, each to a different database. No other call uses these databases.
func hold(t *testing.T, c *Pool, class Class, n int) (all []*Lease) {
	t.Helper()
	for i := range n {
		l, err := c.Acquire(t.Context(), class, fmt.Sprint(class, i), nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// now reports whether a class can get a connection to the database without waiting. It then
// releases the connection.
func now(c *Pool, class Class, database string) bool {
	ended, end := context.WithCancel(context.Background())
	end()
	l, err := c.Acquire(ended, class, database, nil)
	if err == nil {
		c.Release(l)
	}
	return err == nil
}

func mustAcquire(t *testing.T, c *Pool, database string) *Lease {
	t.Helper()
	l, err := c.Acquire(t.Context(), Work, database, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// line records the order in which calls of Acquire are served.
type line struct {
	*testing.T
	pool   *Pool
	served []string
	all    sync.WaitGroup
}

// ask calls Acquire, and returns once the call waits in the queue or is served. A served call
// keeps its connection until the channel release has a value or is closed. If release is nil, the
// call releases its connection at once.
func (l *line) ask(call string, class Class, database, payer string, release <-chan struct{}) {
	of := &Strangers{PayerOf: func(context.Context) string { return payer }, MayOpen: func(context.Context) bool { return true }}
	l.all.Go(func() {
		lease, err := l.pool.Acquire(l.Context(), class, database, of)
		if err != nil {
			l.Error(err)
			return
		}
		l.served = append(l.served, call)
		if release != nil {
			<-release
		}
		l.pool.Release(lease)
	})
	synctest.Wait()
}

// want waits for all calls. It fails the test unless they were served in the order of the
// parameter calls.
func (l *line) want(calls ...string) {
	l.Helper()
	l.all.Wait()
	if !slices.Equal(l.served, calls) {
		l.Errorf("served %q, want %q", l.served, calls)
	}
	l.pool.Close()
}

// available fails t unless the pool gives out exactly limit connections without waiting. Only the
// class Owner may get the last of them. Afterwards the pool must hold entries only of databases to
// which it has connections.
func available(t interface {
	Helper()
	Errorf(string, ...any)
}, c *Pool, limit int) {
	t.Helper()
	ended, end := context.WithCancel(context.Background())
	end()
	var all []*Lease
	for n := range limit + 1 {
		class := Work
		if n >= limit-keptFor(Owner, limit) {
			class = Owner
		}
		l, err := c.Acquire(ended, class, fmt.Sprint("fresh", n), nil)
		if (err == nil) != (n < limit) {
			t.Errorf("connection %d of %d: %v", n+1, limit, err)
		}
		if l != nil {
			all = append(all, l)
		}
	}
	for _, l := range all {
		c.Release(l)
	}
	if len(c.databases) != c.idle.Len() {
		t.Errorf("%d databases are remembered with %d connections", len(c.databases), c.idle.Len())
	}
}

func TestTheLeastRecentlyUsedConnectionMakesWay(t *testing.T) {
	t.Parallel()
	c, s := managed(2)
	for _, database := range []string{"a", "b", "a", "c"} {
		c.Release(mustAcquire(t, c, database))
	}
	if s.is("a") != 1 || s.is("b") != 0 || s.is("c") != 1 || s.opened != 3 {
		t.Errorf("open: a %d, b %d, c %d after %d openings; want b gone after 3", s.is("a"), s.is("b"), s.is("c"), s.opened)
	}
	c.Close()
	if len(s.open) != 0 {
		t.Errorf("%d connections are open after close", len(s.open))
	}
}

func TestWhoWaitsIsServedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := managed(1)
		held := mustAcquire(t, c, "x")
		l := &line{T: t, pool: c}
		for _, database := range []string{"c", "x", "a", "b", "x"} {
			l.ask(database, Work, database, "", nil)
		}
		c.Release(held)
		l.want("c", "x", "a", "b", "x")
	})
}

func TestWhoStopsWaitingLeavesItsPlaceToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(1)
		held := mustAcquire(t, c, "a")
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Acquire(brief, Work, "b", nil)
		if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || f.RetryAfter == 0 {
			t.Errorf("acquire = %v, want Unavailable with a time to come again", err)
		}
		c.Release(held)
		available(t, c, 1)
		c.Close()
		if len(s.open) != 0 {
			t.Errorf("%d connections are open after close", len(s.open))
		}
	})
}

func TestAConnectionGivenWhileTheWaiterLeavesIsNotLost(t *testing.T) {
	t.Parallel()
	for _, wants := range []string{"a", "b"} {
		for range 50 { // a waiter may see either of two events first, at random, so try often
			synctest.Test(t, func(t *testing.T) {
				c, s := managed(1)
				held := mustAcquire(t, c, "a")
				ctx, cancel := context.WithCancel(t.Context())
				var waiting sync.WaitGroup
				waiting.Go(func() {
					if l, err := c.Acquire(ctx, Work, wants, nil); err == nil {
						c.Release(l)
					}
				})
				synctest.Wait()
				cancel()
				c.Release(held)
				waiting.Wait()
				available(t, c, 1)
				c.Close()
				if len(s.open) != 0 {
					t.Errorf("%d connections are open after close", len(s.open))
				}
			})
		}
	}
}

func TestAFailedConnectLeaksNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(1)
		s.refuses = errors.New("no")
		for range 3 {
			if _, err := c.Acquire(t.Context(), Work, "a", nil); !errors.Is(err, s.refuses) {
				t.Errorf("acquire = %v, want the reason", err)
			}
		}
		s.refuses = nil
		held := mustAcquire(t, c, "a")
		s.broken[held.conn] = true
		s.refuses = errors.New("no")
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := c.Acquire(t.Context(), Work, "b", nil); err == nil {
					t.Error("a refused connection was given out")
				}
			})
		}
		synctest.Wait()
		c.Release(held)
		all.Wait()
		s.refuses = nil
		available(t, c, 1)
		c.Close()
	})
}

func TestUnusedAndOldConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(4)
		c.Release(mustAcquire(t, c, "idle"))
		for range 7 {
			time.Sleep(idleTime / 4) // on the fake clock of synctest
			synctest.Wait()
			c.Release(mustAcquire(t, c, "busy"))
		}
		if s.is("idle") != 0 || s.is("busy") != 1 {
			t.Errorf("open: idle %d, busy %d; want only the busy one", s.is("idle"), s.is("busy"))
		}
		held := mustAcquire(t, c, "busy")
		time.Sleep(lifeTime)
		c.Release(held)
		if s.is("busy") != 0 {
			t.Error("a connection outlived its time")
		}
		available(t, c, 4)
		c.Close()
	})
}

func TestCloseTurnsAwayWhoWaitsAndWaitsForWhoWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(1)
		held := mustAcquire(t, c, "a")
		var waiting, closing sync.WaitGroup
		waiting.Go(func() {
			if _, err := c.Acquire(t.Context(), Work, "b", nil); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("acquire = %v, want Unavailable", err)
			}
		})
		synctest.Wait()
		var closed atomic.Bool
		closing.Go(func() { c.Close(); closed.Store(true) })
		waiting.Wait()
		synctest.Wait()
		if closed.Load() {
			t.Error("close did not wait for the connection in use")
		}
		c.Release(held)
		closing.Wait()
		if len(s.open) != 0 {
			t.Errorf("%d connections are open after close", len(s.open))
		}
		if _, err := c.Acquire(t.Context(), Work, "a", nil); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("acquire after close = %v, want Unavailable", err)
		}
		c.Close() // a second Close does nothing
	})
}

// ledger counts the connections in use, independently of the pool.
type ledger struct {
	mu    sync.Mutex
	class [classes]int
	at    map[string]*[classes]int
}

func (l *ledger) add(class Class, database string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.class[class] += n
	if l.at[database] == nil {
		l.at[database] = new([classes]int)
	}
	l.at[database][class] += n
}

// exceeded describes a bound that is exceeded if the pool's limit is the parameter limit. It
// returns "" if no bound is exceeded.
func (l *ledger) exceeded(limit int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := func(n [classes]int) int { return n[Work] + n[Owner] + n[Stranger] }
	switch {
	case sum(l.class) > limit, l.class[Stranger] > max(1, limit/4), sum(l.class)-l.class[Owner] > limit-keptFor(Owner, limit), sum(l.class)-l.class[Work] > limit-keptFor(Work, limit):
		return fmt.Sprintf("%v of %d are in use", l.class, limit)
	}
	for database, n := range l.at {
		if user := max(1, min(4, limit/2)); sum(*n) > user || n[Stranger] > max(1, user/2) {
			return fmt.Sprintf("%v of %d to %s are in use", n, limit, database)
		}
	}
	return ""
}

// mayHave reports whether a class may have one more connection to the database.
func (l *ledger) mayHave(class Class, database string, limit int) bool {
	l.add(class, database, 1)
	defer l.add(class, database, -1)
	return l.exceeded(limit) == ""
}

func TestTheSharesHoldUnderLoad(t *testing.T) {
	t.Parallel()
	const limit = 9
	c, s := managed(limit)
	book := &ledger{at: map[string]*[classes]int{}}
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if (n+i)%7 == 0 {
					go cancel()
				}
				class, database := Class((n+i)%int(classes)), fmt.Sprint((n*i)%11)
				l, err := c.Acquire(ctx, class, database, nil)
				switch {
				case err == nil:
					book.add(class, database, 1)
					if more := book.exceeded(limit); more != "" {
						t.Error(more)
					}
					if (n+i)%13 == 0 {
						s.mu.Lock()
						s.broken[l.conn] = true
						s.mu.Unlock()
					}
					book.add(class, database, -1)
					c.Release(l)
				case ctx.Err() == nil && class != Stranger:
					t.Errorf("acquire for %s = %v, and nobody had called it off", class, err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if s.most > limit {
		t.Errorf("%d connections were open at once, want at most %d", s.most, limit)
	}
	available(t, c, limit)
	c.Close()
	if len(s.open) != 0 {
		t.Errorf("%d connections are open after close", len(s.open))
	}
}

func TestClosingUnderLoadServesOrTurnsAwayEverybody(t *testing.T) {
	t.Parallel()
	for range 20 {
		c, s := managed(5)
		var all sync.WaitGroup
		for n := range 40 {
			all.Go(func() {
				for {
					l, err := c.Acquire(t.Context(), Class(n%int(classes)), fmt.Sprint(n%7), nil)
					if errors.Is(err, errStopping) {
						return
					}
					if err == nil {
						c.Release(l)
					}
				}
			})
		}
		all.Go(c.Close)
		all.Wait()
		if len(s.open) != 0 || len(c.databases) != 0 {
			t.Errorf("after close %d connections are open, %d databases remembered", len(s.open), len(c.databases))
		}
	}
}

func TestNoSequenceOfEventsLosesASlot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		c, s := managed(limit)
		book := &ledger{at: map[string]*[classes]int{}}
		var held []*Lease
		ended, end := context.WithCancel(context.Background())
		end()
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				class := rapid.SampledFrom([]Class{Work, Owner, Stranger}).Draw(t, "class")
				database := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "database")
				may := book.mayHave(class, database, limit)
				l, err := c.Acquire(ended, class, database, nil)
				if (err == nil) != may {
					t.Fatalf("with %v of %d in use acquire for %s = %v", book.class, limit, class, err)
				}
				if err == nil {
					if s.open[l.conn] != database {
						t.Fatalf("asked for %s, got %s", database, s.open[l.conn])
					}
					book.add(class, database, 1)
					held = append(held, l)
				}
			},
			"fail to connect": func(t *rapid.T) {
				s.refuses = errors.New("no")
				defer func() { s.refuses = nil }()
				if l, err := c.Acquire(ended, Work, rapid.StringMatching(`new[0-9]{9}`).Draw(t, "database"), nil); err == nil {
					t.Fatalf("got %v from a server that refuses", l)
				}
			},
			"release": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing is held")
				}
				n := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				s.broken[held[n].conn] = rapid.Bool().Draw(t, "broken")
				book.add(held[n].class, held[n].of.database, -1)
				c.Release(held[n])
				held = slices.Delete(held, n, n+1)
			},
			"close all idle": func(*rapid.T) { c.closeIdle(func(*Lease) bool { return true }) },
			"": func(t *rapid.T) {
				if s.most > limit {
					t.Fatalf("%d connections were open at once, want at most %d", s.most, limit)
				}
				if c.inUse() != len(held) || c.idle.Len()+len(held) != len(s.open) {
					t.Fatalf("%d slots in use and %d idle, with %d of %d connections held", c.inUse(), c.idle.Len(), len(held), len(s.open))
				}
			},
		})
		for _, l := range held {
			c.Release(l)
		}
		available(t, c, limit)
		c.Close()
		if len(s.open) != 0 {
			t.Fatalf("%d connections are open after close", len(s.open))
		}
	})
}

// Two callers that each hold a connection and wait for the other's could wait for ever.
func TestWhoHoldsAConnectionWaitsForNoOther(t *testing.T) {
	t.Parallel()
	c, s := managed(4)
	defer c.Close()
	acquire := func() (err error) {
		defer func() {
			if r := recover(); r != nil { // with the race detector the refusal is a panic
				err = r.(error)
			}
		}()
		_, err = c.Acquire(holding.MarkHolder(t.Context()), Work, "a", nil)
		return err
	}
	if err := acquire(); err == nil || s.opened != 0 {
		t.Errorf("Acquire: %v, and %d connections were opened", err, s.opened)
	}
}
