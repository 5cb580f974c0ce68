package conversation

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// turnstile is a store that counts transactions. It delays all of them until the channel open is
// closed.
type turnstile struct {
	Store
	open           chan struct{}
	begun, at, top atomic.Int32
}

func (s *turnstile) Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	s.begun.Add(1)
	for n := s.at.Add(1); ; {
		if top := s.top.Load(); n <= top || s.top.CompareAndSwap(top, n) {
			break
		}
	}
	defer s.at.Add(-1)
	<-s.open
	return s.Store.Write(ctx, u, work)
}

// crowd carries loads at the same time, one for each function in works. It returns their outcomes.
func crowd(t *testing.T, s *turnstile, u vocab.Username, works []func(context.Context, *user.Tx) error) (outcomes []error) {
	t.Helper()
	c, outcomes := newCarriers(s), make([]error, len(works))
	var wg sync.WaitGroup
	for i, work := range works {
		wg.Go(func() {
			defer func() {
				if p, is := recover().(*panicked); is {
					outcomes[i] = p
				}
			}()
			outcomes[i] = c.carry(Place{Host: u, ID: uuid.New()}, work)
		})
	}
	for c.count(u) < len(works) { // wait until all loads are in the queue
		runtime.Gosched()
	}
	close(s.open)
	wg.Wait()
	for !c.isIdle() {
		runtime.Gosched()
	}
	return outcomes
}

// isIdle reports whether no host has a load left.
func (c *carriers) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.of) == 0
}

// count returns the number of a host's waiting loads. A load waits until its transaction has a
// connection.
func (c *carriers) count(host vocab.Username) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.of[host]; of != nil {
		return len(of.waiting)
	}
	return 0
}

// addNumbered returns a load that adds an event. The event contains the number n.
func addNumbered(n int) func(context.Context, *user.Tx) error {
	return func(ctx context.Context, tx *user.Tx) error {
		d := vocab.Doc{"n": n}
		return tx.Events.Add(ctx, user.Event{Type: "test", Source: "local", Payload: d.JSON(), At: time.Now()})
	}
}

func countEvents(t *testing.T, s *db.Cluster, u vocab.Username) (n int) {
	t.Helper()
	err := s.Read(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Events.List(ctx, 0, 1000)
		n = len(all)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestConversationsOfAHostShareTransactions(t *testing.T) {
	t.Parallel()
	store := dbtest.New(t)
	u := dbtest.User(t, store, "alice")
	s := &turnstile{Store: store, open: make(chan struct{})}
	var works []func(context.Context, *user.Tx) error
	for n := range 200 {
		works = append(works, addNumbered(n))
	}
	for i, err := range crowd(t, s, u, works) {
		if err != nil {
			t.Errorf("load %d: %v", i, err)
		}
	}
	if n := countEvents(t, store, u); n != 200 {
		t.Errorf("%d events, want 200", n)
	}
	if n := s.begun.Load(); n < 4 || n > 8 { // 200 loads need four transactions of at most 64 loads; four more may begin at once
		t.Errorf("%d transactions, want about 4", n)
	}
	if n := s.top.Load(); n != maxTransactions {
		t.Errorf("%d transactions at once, want %d", n, maxTransactions)
	}
}

func TestAMistakeInASharedTransactionTouchesNoNeighbour(t *testing.T) {
	t.Parallel()
	store := dbtest.New(t)
	u := dbtest.User(t, store, "alice")
	s := &turnstile{Store: store, open: make(chan struct{})}
	mistake := errors.New("a mistake")
	works := []func(context.Context, *user.Tx) error{
		func(ctx context.Context, tx *user.Tx) error { return errors.Join(addNumbered(0)(ctx, tx), mistake) },
		func(context.Context, *user.Tx) error { panic("nobody tested this") },
	}
	for n := 2; n < 40; n++ {
		works = append(works, addNumbered(n))
	}
	for i, err := range crowd(t, s, u, works) {
		switch i {
		case 0:
			if !errors.Is(err, mistake) {
				t.Errorf("the mistake is answered with %v", err)
			}
		case 1:
			if err == nil || !strings.Contains(err.Error(), "nobody tested this") || !strings.Contains(err.Error(), "carrier_test.go") {
				t.Errorf("the panic is answered with %v, want it and where it was", err)
			}
		default:
			if err != nil {
				t.Errorf("its neighbour %d: %v", i, err)
			}
		}
	}
	if n := countEvents(t, store, u); n != 38 {
		t.Errorf("%d events, want those of the 38 neighbours", n)
	}
}

// If the database does not answer a transaction, all loads in the transaction fail at once. The
// engine does not begin another transaction for each load.
func TestThoseWhoShareATransactionWaitOnceForADeadDatabase(t *testing.T) {
	t.Parallel()
	s := &turnstile{Store: away{}, open: make(chan struct{})}
	u := vocab.Username{}
	works := make([]func(context.Context, *user.Tx) error, 200)
	for i, err := range crowd(t, s, u, works) {
		if !errors.Is(err, errAway) {
			t.Errorf("load %d: %v", i, err)
		}
	}
	if n := s.begun.Load(); n > 8 {
		t.Errorf("the database was asked %d times", n)
	}
}
