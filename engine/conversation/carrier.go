package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Limits of the transactions that conversations share.
const (
	maxTransactions = 4  // of one host at once: each has a connection
	maxShared       = 64 // conversations in one
)

// load is what one conversation has to write. Its work leaves nothing of a request that it
// refuses; when it returns an error nothing of the transaction stays.
type load struct {
	id   uuid.UUID
	work func(context.Context, *db.Tx) error
	err  error
	done chan struct{} // closed once err is the outcome
}

// carriers takes loads to the databases of their hosts. Those of one host that wait at the same
// time share a transaction: they wait for the disk, and for the lock of events, once. It has a
// goroutine for each transaction, and none while nothing waits.
type carriers struct {
	store Store

	mu sync.Mutex
	of map[vocab.Username]*carrier // the hosts for which something waits or is written
}

// carrier is the loads of one host.
type carrier struct {
	waiting      []*load
	transactions int // that have begun
}

func newCarriers(s Store) *carriers { return &carriers{store: s, of: map[vocab.Username]*carrier{}} }

// carry does the work in a transaction, and returns once that has ended. The work may be done
// again after a transaction that did not hold. A panic in it is one of the caller's.
func (c *carriers) carry(at Place, work func(context.Context, *db.Tx) error) error {
	l := &load{id: at.ID, work: work, done: make(chan struct{})}
	c.enqueue(at.Host, l)
	<-l.done
	var p *panicked
	if errors.As(l.err, &p) {
		panic(p)
	}
	return l.err
}

func (c *carriers) enqueue(host vocab.Username, l *load) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of[host]
	if of == nil {
		of = &carrier{}
		c.of[host] = of
	}
	of.waiting = append(of.waiting, l)
	if of.transactions < maxTransactions {
		of.transactions++
		go c.run(host)
	}
}

// run runs one transaction of a host after the other, until nothing waits.
func (c *carriers) run(host vocab.Username) {
	for c.goOn(host) {
		c.transact(host)
	}
}

func (c *carriers) goOn(host vocab.Username) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of[host]
	if len(of.waiting) > 0 {
		return true
	}
	if of.transactions--; of.transactions == 0 {
		delete(c.of, host)
	}
	return false
}

// take returns the loads that have waited longest, in the order in which every process locks
// their conversations.
func (c *carriers) take(host vocab.Username) []*load {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of[host]
	n := min(len(of.waiting), maxShared)
	taken := slices.Clone(of.waiting[:n])
	of.waiting = slices.Delete(of.waiting, 0, n)
	slices.SortFunc(taken, func(a, b *load) int { return cmp.Compare(a.id.String(), b.id.String()) })
	return taken
}

// transact carries what waits by the time that there is a connection. After a mistake in one of
// several loads each is carried alone, so that the others do not pay for it.
func (c *carriers) transact(host vocab.Username) {
	var loads []*load
	take := func() []*load {
		if loads == nil {
			loads = c.take(host)
		}
		return loads
	}
	err := c.try(host, take)
	for _, l := range take() { // there may have been no connection
		l.err = err
		if err != nil && len(loads) > 1 && !isUnavailable(err) {
			l.err = c.try(host, func() []*load { return []*load{l} })
		}
		close(l.done)
	}
}

// isUnavailable reports whether another transaction would end as this one did.
func isUnavailable(err error) bool {
	k := fault.KindOf(err)
	return k == fault.Unavailable || k == fault.Busy
}

// try does the work of loads in one transaction.
func (c *carriers) try(host vocab.Username, take func() []*load) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, debug.Stack()}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), workTime)
	defer cancel()
	return c.store.Write(ctx, host, func(ctx context.Context, tx *db.Tx) error {
		for _, l := range take() {
			if err := l.work(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// panicked is a panic on its way from a transaction to the conversation that caused it.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("%v\n%s", p.value, p.stack) }
