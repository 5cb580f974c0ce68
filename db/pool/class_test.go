package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestEachClassHasItsShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit  int
		first  Class // the class that takes as many connections as it can
		has    int
		others []Class // the classes that still get a connection after that
	}{
		{1000, Work, 64, []Class{Owner, Stranger}},
		{64, Work, 56, []Class{Owner}},
		{64, Owner, 60, []Class{Work}},
		{64, Stranger, 16, []Class{Owner, Work}},
		{8, Work, 7, []Class{Owner}},
		{8, Owner, 7, []Class{Work}},
		{8, Stranger, 2, []Class{Owner, Work}},
		{4, Work, 3, []Class{Owner}},
		{4, Owner, 3, []Class{Work}},
		{4, Stranger, 1, []Class{Owner, Work}},
		{1, Work, 1, nil},
		{1, Stranger, 1, nil},
	} {
		t.Run(fmt.Sprintf("%s of %d", tt.first, tt.limit), func(t *testing.T) {
			t.Parallel()
			c, _ := managed(tt.limit)
			defer c.Close()
			held := hold(t, c, tt.first, tt.has)
			for class := range classes {
				if got := now(c, class, "another"); got != slices.Contains(tt.others, class) {
					t.Errorf("when %s has %d of %d, %s gets one: %t", tt.first, tt.has, tt.limit, class, got)
				}
			}
			for _, l := range held {
				c.Release(l)
			}
		})
	}
}

func TestOneUserHasFourConnectionsAndHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(64)
		var greedy sync.WaitGroup
		enough := make(chan struct{})
		for range 64 {
			greedy.Go(func() {
				l, err := c.Acquire(t.Context(), Owner, "alice", nil)
				if err != nil {
					t.Error(err)
					return
				}
				<-enough
				c.Release(l)
			})
		}
		synctest.Wait()
		if n := s.is("alice"); n != 4 {
			t.Errorf("64 who ask for alice have %d connections, want 4", n)
		}
		for class := range classes {
			if !now(c, class, "bob") || now(c, class, "alice") {
				t.Errorf("%s: bob is served %t, alice %t; want bob only", class, now(c, class, "bob"), now(c, class, "alice"))
			}
		}
		close(enough)
		greedy.Wait()
		if n := s.is("alice"); n != 4 {
			t.Errorf("alice had up to %d connections, want 4", n)
		}
		c.Close()
	})
}

// The programs of one user wait for its database up to a bound, and more of them are refused at
// once. The user's writer and other users' programs are not.
func TestProgramsOfAUserWaitUpToABound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := managed(64)
		ctx, giveUp := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		wait := func(class Class) {
			waiting.Go(func() {
				if l, err := c.Acquire(ctx, class, "alice", nil); err == nil {
					<-ctx.Done()
					c.Release(l)
				}
			})
		}
		for range perUser + maxOwners {
			wait(Owner)
		}
		synctest.Wait()
		if _, err := c.Acquire(t.Context(), Owner, "alice", nil); !errors.Is(err, errCrowded) {
			t.Errorf("one more gets %v, want that too many are asking", err)
		}
		wait(Work)
		if !now(c, Owner, "bob") {
			t.Error("bob's program is not served")
		}
		giveUp()
		waiting.Wait()
		if !now(c, Owner, "alice") {
			t.Error("alice's program is not served after the others have left")
		}
		c.Close()
	})
}

func TestStrangersLeaveAUserHalfOfItsConnections(t *testing.T) {
	t.Parallel()
	c, _ := managed(64)
	defer c.Close()
	for range 2 {
		l, err := c.Acquire(t.Context(), Stranger, "alice", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release(l)
	}
	if now(c, Stranger, "alice") || !now(c, Owner, "alice") || !now(c, Work, "alice") {
		t.Error("with two strangers there a third was let in, or alice or her writer was not")
	}
}

func TestTheOldestOfAllClassesIsServedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := managed(2)
		held := []*Lease{mustAcquire(t, c, "x"), mustAcquire(t, c, "y")}
		var served []string
		var all sync.WaitGroup
		for n, class := range []Class{Work, Stranger, Owner, Work, Owner} {
			all.Go(func() {
				l, err := c.Acquire(t.Context(), class, fmt.Sprint(n), nil)
				if err != nil {
					t.Error(err)
					return
				}
				served = append(served, fmt.Sprint(n))
				c.Release(l)
			})
			synctest.Wait() // wait until the call is in the queue
		}
		c.Release(held[0])
		all.Wait()
		c.Release(held[1])
		if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
		c.Close()
	})
}

func TestAConnectionIsHandedToWhoCameFirstAndNotToItsOwnUser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(1)
		held := mustAcquire(t, c, "busy")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		other := false
		all.Go(func() {
			l := mustAcquire(t, c, "other")
			other = true
			c.Release(l)
		})
		synctest.Wait()
		for range 3 { // so that one of the calls always wants the free connection
			all.Go(func() {
				for ctx.Err() == nil {
					l := mustAcquire(t, c, "busy")
					if other {
						cancel()
					}
					c.Release(l)
				}
			})
		}
		synctest.Wait()
		c.Release(held)
		all.Wait()
		if s.opened > 3 {
			t.Errorf("%d connections were opened for two users in turn, want 3", s.opened)
		}
		c.Close()
	})
}

func TestStrangersOpenAsManyConnectionsAsTheyMayAndIdleOnesCostNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := managed(100)
		opens := rate.NewLimiter(20, 20)
		from := &Strangers{PayerOf: func(context.Context) string { return "" }, MayOpen: func(context.Context) bool { return opens.Allow() }}
		burst := func(first int) (refused int) {
			for n := range 50 {
				l, err := c.Acquire(t.Context(), Stranger, fmt.Sprint(first+n), from)
				if f := fault.Of(err); err != nil && (f.Kind != fault.Unavailable || f.Code != "crowded" || f.RetryAfter != time.Second) {
					t.Errorf("acquire = %v, want crowded", err)
				}
				if err != nil {
					refused++
					continue
				}
				c.Release(l)
			}
			return refused
		}
		if got := burst(0); got != 30 || s.opened != 20 {
			t.Errorf("of 50 at once %d were refused and %d opened, want 30 and 20", got, s.opened)
		}
		if got := burst(0); got != 30 || s.opened != 20 {
			t.Errorf("of 50 again %d were refused, and then %d opened; want the same 20 served", got, s.opened)
		}
		if !now(c, Owner, "alice") || !now(c, Work, "bob") {
			t.Error("strangers kept others from opening")
		}
		time.Sleep(time.Second) // on the fake clock of synctest
		if got := burst(1000); got != 30 {
			t.Errorf("of 50 others a second later %d were refused, want 30", got)
		}
		c.Close()
	})
}

// One address has many waiting calls, and another address has one. The second address is served
// before the first address has all its calls served.
func TestStrangersAreServedByTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := managed(4) // Stranger may use one connection of the four
		held, err := c.Acquire(t.Context(), Stranger, "alice", nil)
		if err != nil {
			t.Fatal(err)
		}
		l := &line{T: t, pool: c}
		for n, payer := range []string{"many", "many", "many", "many", "few", "one", "few"} {
			database := "alice"
			if n == 3 {
				database = "bob"
			}
			l.ask(payer, Stranger, database, payer, nil)
		}
		c.Release(held)
		l.want("many", "few", "one", "many", "few", "many", "many")
	})
}

// A call that arrives while other calls are served has to wait for its round. The waiting calls of
// earlier rounds, from all addresses, are served before it.
func TestAStrangerThatWaitsKeepsItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := managed(4) // Stranger may use one connection of the four
		l, release := &line{T: t, pool: c}, make(chan struct{})
		ask := func(call string) {
			payer, _, _ := strings.Cut(call, " ")
			l.ask(call, Stranger, "alice", payer, release)
		}
		for _, call := range []string{"many 1", "many 2", "many 3", "many 4"} {
			ask(call)
		}
		for _, call := range []string{"few 1", "other 1", "many 5", "new 1"} {
			release <- struct{}{}
			synctest.Wait()
			ask(call)
		}
		close(release)
		l.want("many 1", "many 2", "many 3", "few 1", "other 1", "many 4", "new 1", "many 5")
	})
}

func TestAStrangerDoesNotWaitLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 8
		c, _ := managed(limit)
		held := hold(t, c, Stranger, 2)
		crowded := make(chan error, limit)
		start := time.Now()
		for range limit {
			go func() {
				_, err := c.Acquire(t.Context(), Stranger, "alice", nil)
				crowded <- err
			}()
		}
		for range limit {
			if err := <-crowded; !errors.Is(err, errCrowded) || time.Since(start) != strangerTime {
				t.Errorf("acquire = %v after %s, want crowded after %s", err, time.Since(start), strangerTime)
			}
		}
		for _, l := range held {
			c.Release(l)
		}
		available(t, c, limit)
		c.Close()
	})
}

func TestConnectionsOpenedTogetherDoNotEndTogether(t *testing.T) {
	t.Parallel()
	c, _ := managed(60)
	defer c.Close()
	now := time.Now()
	first, last := lifeTime*2, time.Duration(0)
	for _, l := range hold(t, c, Owner, 50) {
		age := l.until.Sub(now)
		first, last = min(first, age), max(last, age)
		c.Release(l)
	}
	if first < lifeTime*4/5 || last > lifeTime*6/5+time.Minute || last-first < lifeTime/10 {
		t.Errorf("they live from %s to %s, want %s give or take a fifth", first, last, lifeTime)
	}
}
