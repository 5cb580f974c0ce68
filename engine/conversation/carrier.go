package conversation

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Limits of the transactions that conversations share.
const (
	maxTransactions = 4  // at the same time for one host; each takes a database connection
	maxShared       = 64 // conversations that share one transaction
)

// load is the work of one conversation in a transaction. If the work refuses a request, it
// leaves no write of that request behind. If it returns an error, the whole transaction is
// rolled back.
type load struct {
	id   uuid.UUID
	work func(context.Context, *user.Tx) error
	// skipped is true if the shared transaction left the load out, because another transaction had
	// locked its conversation.
	skipped bool
	err     error
	done    chan struct{} // closed once err is set to the result
}

// carriers runs loads in the databases of their hosts. Loads that wait for one host at the same
// time share a transaction, so that they wait only once for the disk and for the lock under which
// events are numbered. A host has up to maxTransactions goroutines, each of which runs one
// transaction after another. It has none when no work is left.
type carriers struct {
	store Store

	mu sync.Mutex
	of map[vocab.Username]*carrier // the hosts that have waiting loads or open transactions
}

// carrier holds the waiting loads of one host and counts its transactions.
type carrier struct {
	waiting      []*load
	transactions int // goroutines that run transactions now
}

func newCarriers(s Store) *carriers { return &carriers{store: s, of: map[vocab.Username]*carrier{}} }

// carry runs the work in a transaction, and returns once that transaction has ended. The work may
// run several times. A transaction that conflicts with another one is tried again. If a shared
// transaction fails, each of its loads is tried again alone. A panic in the work is raised again
// in the caller.
func (c *carriers) carry(at Place, work func(context.Context, *user.Tx) error) error {
	l := &load{id: at.ID, work: work, done: make(chan struct{})}
	c.enqueue(at.Host, l)
	<-l.done
	if p, ok := errors.AsType[*panicked](l.err); ok {
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

// run runs the transactions of a host one after another, until no load waits.
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

// take removes the loads that have waited longest and returns them.
func (c *carriers) take(host vocab.Username) []*load {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of[host]
	n := min(len(of.waiting), maxShared)
	taken := slices.Clone(of.waiting[:n])
	of.waiting = slices.Delete(of.waiting, 0, n)
	return taken
}

// transact runs one transaction with the loads that wait when a connection becomes free. If the
// transaction fails and has several loads, each load is tried again in a transaction of its own,
// so that one faulty load does not fail the others. A load that the transaction skipped also gets
// a transaction of its own. If the database is unavailable or busy, no load is tried again.
func (c *carriers) transact(host vocab.Username) {
	var loads []*load
	take := func() []*load {
		if loads == nil {
			loads = c.take(host)
		}
		return loads
	}
	err := c.try(host, take)
	var alone []*load
	for _, l := range take() { // if try got no connection, it has taken no load
		l.err = err
		if len(loads) > 1 && !isUnavailable(err) && (l.skipped || err != nil) {
			alone = append(alone, l)
		} else {
			close(l.done)
		}
	}
	for _, l := range alone {
		l.skipped = false
		l.err = c.try(host, func() []*load { return []*load{l} })
		close(l.done)
	}
}

// isUnavailable reports whether err says that the database is unavailable or busy. Then another
// transaction would fail, too.
func isUnavailable(err error) bool {
	k := fault.KindOf(err)
	return k == fault.Unavailable || k == fault.Busy
}

// try runs the work of all loads in one transaction. A panic becomes an error of the type
// panicked.
func (c *carriers) try(host vocab.Username, take func() []*load) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, debug.Stack()}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), workTime)
	defer cancel()
	return c.store.Write(ctx, host, func(ctx context.Context, tx *user.Tx) error {
		loads := take()
		if err := markSkipped(ctx, tx, loads); err != nil {
			return err
		}
		for _, l := range loads {
			if l.skipped {
				continue
			}
			if err := l.work(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// markSkipped locks the conversations of several loads, and marks the loads whose conversations
// another transaction has locked. So a transaction that has locked one conversation never waits
// for a second conversation. Therefore it cannot deadlock with the batch of an inbox, which locks
// conversations in the order in which their messages arrived.
func markSkipped(ctx context.Context, tx *user.Tx, loads []*load) error {
	if len(loads) < 2 {
		return nil
	}
	ids := make([]uuid.UUID, len(loads))
	for n, l := range loads {
		ids[n] = l.id
	}
	held, err := tx.Hosted.LockFree(ctx, ids)
	for _, l := range loads {
		l.skipped = slices.Contains(held, l.id)
	}
	return err
}

// panicked carries a panic from the transaction to the conversation that caused it.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("%v\n%s", p.value, p.stack) }
