package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/lightweb/lightweb/engine/fault"
)

// server counts the connections that are open, none of which leads anywhere.
type server struct {
	mu      sync.Mutex
	open    map[*pgx.Conn]string
	most    int
	opened  int
	refuses error
	broken  map[*pgx.Conn]bool
}

func newServer() *server { return &server{open: map[*pgx.Conn]string{}, broken: map[*pgx.Conn]bool{}} }

func (s *server) connect(_ context.Context, database string) (*pgx.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses != nil {
		return nil, s.refuses
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

func managed(limit int) (*conns, *server) {
	s := newServer()
	c := newConns(limit, s.connect, nil)
	c.shut, c.usable = s.shut, s.usable
	return c, s
}

func mustAcquire(t *testing.T, c *conns, database string) *lease {
	t.Helper()
	l, err := c.acquire(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// available fails t unless limit connections can be had at once and no more.
func available(t interface {
	Helper()
	Errorf(string, ...any)
}, c *conns, limit int) {
	t.Helper()
	ended, end := context.WithCancel(context.Background())
	end()
	var all []*lease
	for n := range limit + 1 {
		l, err := c.acquire(ended, fmt.Sprint("fresh", n))
		if (err == nil) != (n < limit) {
			t.Errorf("connection %d of %d: %v", n+1, limit, err)
		}
		if l != nil {
			all = append(all, l)
		}
	}
	for _, l := range all {
		c.release(l)
	}
}

func TestTheLeastRecentlyUsedConnectionMakesWay(t *testing.T) {
	t.Parallel()
	c, s := managed(2)
	for _, database := range []string{"a", "b", "a", "c"} {
		c.release(mustAcquire(t, c, database))
	}
	if s.is("a") != 1 || s.is("b") != 0 || s.is("c") != 1 || s.opened != 3 {
		t.Errorf("open: a %d, b %d, c %d after %d openings; want b gone after 3", s.is("a"), s.is("b"), s.is("c"), s.opened)
	}
	c.close()
	if len(s.open) != 0 {
		t.Errorf("%d connections are open after close", len(s.open))
	}
}

func TestWhoWaitsIsServedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := managed(1)
		held := mustAcquire(t, c, "x")
		var served []string
		var all sync.WaitGroup
		for _, database := range []string{"c", "x", "a", "b", "x"} {
			all.Go(func() {
				l, err := c.acquire(t.Context(), database)
				if err != nil {
					t.Error(err)
					return
				}
				served = append(served, database)
				c.release(l)
			})
			synctest.Wait() // it stands in the queue
		}
		c.release(held)
		all.Wait()
		if want := []string{"c", "x", "a", "b", "x"}; !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
		c.close()
	})
}

func TestWhoStopsWaitingLeavesItsPlaceToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(1)
		held := mustAcquire(t, c, "a")
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.acquire(brief, "b")
		if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || f.RetryAfter == 0 {
			t.Errorf("acquire = %v, want Unavailable with a time to come again", err)
		}
		c.release(held)
		available(t, c, 1)
		c.close()
		if len(s.open) != 0 {
			t.Errorf("%d connections are open after close", len(s.open))
		}
	})
}

func TestAConnectionGivenWhileTheWaiterLeavesIsNotLost(t *testing.T) {
	t.Parallel()
	for _, give := range []func(*conns, *lease){
		func(c *conns, l *lease) { c.put(l) },
		func(c *conns, l *lease) { c.shut(l.conn); c.handOver() },
	} {
		for range 50 { // which of two moments a waiter sees first is left to chance
			synctest.Test(t, func(t *testing.T) {
				c, s := managed(1)
				held := mustAcquire(t, c, "a")
				ctx, cancel := context.WithCancel(t.Context())
				var waiting sync.WaitGroup
				waiting.Go(func() {
					if l, err := c.acquire(ctx, "b"); err == nil {
						c.release(l)
					}
				})
				synctest.Wait()
				c.mu.Lock()
				cancel()
				give(c, held)
				c.mu.Unlock()
				waiting.Wait()
				available(t, c, 1)
				c.close()
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
			if _, err := c.acquire(t.Context(), "a"); !errors.Is(err, s.refuses) {
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
				if _, err := c.acquire(t.Context(), "b"); err == nil {
					t.Error("a refused connection was given out")
				}
			})
		}
		synctest.Wait()
		c.release(held)
		all.Wait()
		s.refuses = nil
		available(t, c, 1)
		c.close()
	})
}

func TestUnusedAndOldConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(4)
		c.release(mustAcquire(t, c, "idle"))
		for range 7 {
			time.Sleep(idleTime / 4) // of the test's own clock
			synctest.Wait()
			c.release(mustAcquire(t, c, "busy"))
		}
		if s.is("idle") != 0 || s.is("busy") != 1 {
			t.Errorf("open: idle %d, busy %d; want only the busy one", s.is("idle"), s.is("busy"))
		}
		held := mustAcquire(t, c, "busy")
		time.Sleep(lifeTime)
		c.release(held)
		if s.is("busy") != 0 {
			t.Error("a connection outlived its time")
		}
		available(t, c, 4)
		c.close()
	})
}

func TestCloseTurnsAwayWhoWaitsAndWaitsForWhoWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(1)
		held := mustAcquire(t, c, "a")
		var waiting, closing sync.WaitGroup
		waiting.Go(func() {
			if _, err := c.acquire(t.Context(), "b"); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("acquire = %v, want Unavailable", err)
			}
		})
		synctest.Wait()
		var closed atomic.Bool
		closing.Go(func() { c.close(); closed.Store(true) })
		waiting.Wait()
		synctest.Wait()
		if closed.Load() {
			t.Error("close did not wait for the connection in use")
		}
		c.release(held)
		closing.Wait()
		if len(s.open) != 0 {
			t.Errorf("%d connections are open after close", len(s.open))
		}
		if _, err := c.acquire(t.Context(), "a"); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("acquire after close = %v, want Unavailable", err)
		}
		c.close() // again is nothing
	})
}

func TestTheCapHoldsUnderLoad(t *testing.T) {
	t.Parallel()
	const limit = 5
	c, s := managed(limit)
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if (n+i)%7 == 0 {
					go cancel()
				}
				l, err := c.acquire(ctx, fmt.Sprint((n*i)%11))
				if err == nil {
					if (n+i)%13 == 0 {
						s.mu.Lock()
						s.broken[l.conn] = true
						s.mu.Unlock()
					}
					c.release(l)
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
	c.close()
	if len(s.open) != 0 {
		t.Errorf("%d connections are open after close", len(s.open))
	}
}

func TestNoSequenceOfEventsLosesASlot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		c, s := managed(limit)
		var held []*lease
		ended, end := context.WithCancel(context.Background())
		end()
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				database := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "database")
				l, err := c.acquire(ended, database)
				if (err == nil) != (len(held) < limit) {
					t.Fatalf("with %d of %d in use acquire = %v", len(held), limit, err)
				}
				if err == nil {
					if s.open[l.conn] != database {
						t.Fatalf("asked for %s, got %s", database, s.open[l.conn])
					}
					held = append(held, l)
				}
			},
			"fail to connect": func(t *rapid.T) {
				s.refuses = errors.New("no")
				defer func() { s.refuses = nil }()
				if l, err := c.acquire(ended, rapid.StringMatching(`new[0-9]{9}`).Draw(t, "database")); err == nil {
					t.Fatalf("got %v from a server that refuses", l)
				}
			},
			"release": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing is held")
				}
				n := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				s.broken[held[n].conn] = rapid.Bool().Draw(t, "broken")
				c.release(held[n])
				held = slices.Delete(held, n, n+1)
			},
			"close all idle": func(*rapid.T) { c.closeIdle(func(*lease) bool { return true }) },
			"": func(t *rapid.T) {
				if s.most > limit {
					t.Fatalf("%d connections were open at once, want at most %d", s.most, limit)
				}
				if c.free+c.idle.Len()+len(held) != limit {
					t.Fatalf("%d free, %d idle and %d held slots of %d", c.free, c.idle.Len(), len(held), limit)
				}
			},
		})
		for _, l := range held {
			c.release(l)
		}
		available(t, c, limit)
		c.close()
		if len(s.open) != 0 {
			t.Fatalf("%d connections are open after close", len(s.open))
		}
	})
}
