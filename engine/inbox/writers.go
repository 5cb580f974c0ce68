package inbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxBatch  = 100              // activities in one transaction
	applyTime = 30 * time.Second // for one transaction, with waiting for a connection
)

// writers are the goroutines that own users' databases for inbound work: one per user that has any, which commits what
// is queued in one transaction. The writer of a user who is parked applies nothing: it puts what is queued into the
// journal, from which the user's drain applies it.
type writers struct {
	inbox   *Inbox
	places  *policy.Pool // entries, and those that are about to be queued
	memory  *policy.Pool // bytes of bodies, one that several users share counted once
	backoff backoff
	drains  drains

	mu       sync.Mutex
	queues   map[vocab.Username]*queue // none for who has nothing in memory
	parked   map[vocab.Username]*parked
	backlogs map[vocab.Username]*backlog // none while nothing waits in the journal
	rows     map[db.IntakeKey]*row       // what the journal holds for entries that are queued or about to be
	done     []db.IntakeRow              // of which the last entry has ended
	closed   bool
	closing  chan struct{} // closed with it
	running  sync.WaitGroup
	ending   sync.Mutex // held by who ends rows of the journal
}

func newWriters(i *Inbox) *writers {
	return &writers{inbox: i, places: policy.Queue.NewPool(), memory: policy.QueueBytes.NewPool(), backoff: backoff{time.Second, time.Minute}, drains: newDrains(),
		queues: map[vocab.Username]*queue{}, parked: map[vocab.Username]*parked{}, backlogs: map[vocab.Username]*backlog{}, rows: map[db.IntakeKey]*row{}, closing: make(chan struct{})}
}

var (
	errFull   = fault.New(fault.Unavailable, "the engine takes no more now").After(retryAfter)
	errParked = fault.New(fault.Unavailable, "the user cannot take it now; the journal can")
)

// submit queues x for u's writer and waits for its commit. When ctx ends first the activity may still be committed. When u
// cannot take it now the fault is errParked, and the entry that is returned holds its place until keep has put it into the
// journal.
func (w *writers) submit(ctx context.Context, u vocab.Username, x *applying) (*entry, error) {
	e := &entry{x: x, done: make(chan error, 1)}
	if err := w.enqueue(u, e); err != nil {
		return e, err
	}
	select {
	case err := <-e.done:
		return e, err
	case <-ctx.Done():
		return e, w.giveUp(ctx, e)
	}
}

func (w *writers) enqueue(u vocab.Username, e *entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errFull
	}
	e.number = w.inbox.Store.ArrivalNumber()
	if w.parked[u] != nil {
		w.append(u, e)
		return errParked
	}
	if !w.takePlaces(e.x.payer, 1, e.size()) {
		return errFull
	}
	e.ready = true
	w.append(u, e)
	return nil
}

// giveUp lets an entry go on without who waits for it, unless it was just refused.
func (w *writers) giveUp(ctx context.Context, e *entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case err := <-e.done:
		return err
	default:
	}
	e.given = true
	return fault.Wrap(fault.Busy, "time ran out", ctx.Err())
}

// takePlaces reserves places in the queues and memory for a payer, both or neither.
func (w *writers) takePlaces(payer string, entries int, bytes int64) bool {
	if !w.places.Take(payer, int64(entries)) {
		return false
	}
	if !w.memory.Take(payer, bytes) {
		w.places.Give(payer, int64(entries))
		return false
	}
	return true
}

// largest is what one body counts at most, so that one always finds room.
const largest = 1 << 20

// size returns how many bytes the entry alone holds in memory.
func (e *entry) size() int64 {
	if e.done == nil {
		return 0 // they are its row's
	}
	return min(int64(len(e.x.raw)), largest)
}

// run commits u's queue batch by batch until it is empty. It outlives the requests that filled the queue.
func (w *writers) run(u vocab.Username) {
	defer w.running.Done()
	for {
		switch w.next(u) {
		case toCommit:
			w.write(u)
		case toSpill:
			w.spill(u)
		case toEnd:
			return
		}
	}
}

// What a writer does next.
const (
	toEnd = iota
	toCommit
	toSpill
)

// next tells what u's writer is to do, and ends it when there is nothing that it can do.
func (w *writers) next(u vocab.Username) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		w.leave(u)
	}
	todo := w.pending(u)
	if todo == toEnd {
		w.queues[u].writing = false
		w.start(u)
	}
	return todo
}

// write commits one batch. What cannot be applied now stays first in the queue of a user who is parked.
func (w *writers) write(u vocab.Username) {
	var batch []*entry
	err := w.commit(u, func() []*entry {
		if batch == nil { // taken once the connection is there: waiting for it makes batches bigger
			batch = w.take(u)
		}
		return batch
	})
	if batch == nil {
		batch = w.take(u) // the database could not be opened
	}
	left, cause := w.settle(u, batch, err)
	if cause != nil {
		w.putOff(u, left, cause)
	}
}

// putOff parks u, because left cannot be applied now and stays first in the queue. An activity that could not even be set
// aside is not taken from somebody who can send it again.
func (w *writers) putOff(u vocab.Username, left []*entry, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !passing(cause) && left[0].done != nil {
		w.letGo(u, left[:1], cause)
		return
	}
	w.trouble(u, w.park(u, w.backoff.min), cause)
}

// commit applies a batch in one transaction.
func (w *writers) commit(u vocab.Username, batch func() []*entry) error {
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	return w.inbox.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		return w.inbox.applyBatch(ctx, tx, batch())
	})
}

// settle ends a batch. One that failed is halved until the activity that cannot be applied stands alone, which is set
// aside with the reason. When the database is the cause, it returns that and what is left of the batch, in order.
func (w *writers) settle(u vocab.Username, batch []*entry, err error) (left []*entry, cause error) {
	switch {
	case err == nil:
		w.finish(u, batch)
		return nil, nil
	case passing(err):
		return batch, err
	case len(batch) == 1:
		if err := w.setAside(u, batch[0].x, err); err != nil {
			return batch, err
		}
		w.finish(u, batch)
		return nil, nil
	}
	middle := len(batch) / 2
	for n, half := range [][]*entry{batch[:middle:middle], batch[middle:]} {
		if left, cause := w.settle(u, half, w.commit(u, func() []*entry { return half })); cause != nil {
			return batch[n*middle+len(half)-len(left):], cause
		}
	}
	return nil, nil
}

// passing tells whether a failure says nothing about the activities, only that they cannot be applied now.
func passing(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Busy, fault.Config:
		return true
	}
	return false
}

func (w *writers) setAside(u vocab.Username, x *applying, cause error) error {
	w.inbox.Log.Error("activity set aside", "user", u, "activity", x.Activity.ID, "type", x.Activity.Type, "err", cause,
		"hint", "lightweb inbox list "+u.String())
	if err := w.poison(u, db.Poisoned{URI: x.Activity.ID, Actor: x.Actor.ID, Raw: openly(x.Activity), Forwarders: x.forwarders()}, cause); err != nil {
		return err
	}
	x.outcome = outcomePoison
	return nil
}

func (w *writers) poison(u vocab.Username, p db.Poisoned, cause error) error {
	p.Reason = cause.Error()
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	err := w.inbox.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		return tx.Poison(ctx, p)
	})
	if err != nil {
		return fmt.Errorf("set activity aside: %w", err)
	}
	return nil
}

// finish tells those who wait that their activities were committed, and ends the journal's rows. What is contested goes to
// the journal, where it waits until its server has said whose it is.
func (w *writers) finish(u vocab.Username, batch []*entry) {
	all := len(batch)
	batch = slices.DeleteFunc(slices.Clone(batch), func(e *entry) bool { return e.x.outcome == outcomeContested })
	for _, e := range batch {
		w.inbox.applied(e.x)
		if e.row == nil {
			w.inbox.ignored.noted(e.x)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.letGo(u, batch, nil)
	if len(batch) < all {
		w.park(u, 0)
	}
}

// letGo lets go of entries: they are committed, wait in the journal, or are somebody else's again. The caller holds mu.
func (w *writers) letGo(u vocab.Username, entries []*entry, err error) {
	for _, e := range entries {
		switch {
		case e.done != nil:
			w.uncount(e)
			e.done <- err
		case e.row != nil:
			w.places.Give(e.row.payer, 1)
			e.row.left--
			e.row.note(e.x)
			w.settleRow(e.row)
		}
	}
	w.remove(u, entries...)
}

// uncount says that an entry that somebody waits for takes no memory any more. The caller holds mu.
func (w *writers) uncount(e *entry) {
	w.places.Give(e.x.payer, 1)
	w.memory.Give(e.x.payer, e.size())
}

// leave lets the journal keep what is queued for u from the first entry on that lies there, or will: the next process
// applies it. Who queued behind it is asked to come again. The caller holds mu.
func (w *writers) leave(u vocab.Username) {
	q := w.queues[u]
	first := slices.IndexFunc(q.entries, func(e *entry) bool { return e.row != nil || !e.ready })
	if first < 0 {
		return
	}
	var left []*entry
	for _, e := range q.entries[first:] {
		switch {
		case !e.ready: // whose request removes it
			continue
		case e.done != nil:
			w.uncount(e)
			e.done <- errFull
		default:
			w.places.Give(e.row.payer, 1)
		}
		left = append(left, e)
	}
	w.remove(u, left...)
}

// close takes nothing more and waits until the writers have committed what they are at. What the journal holds stays
// there for the next process.
func (w *writers) close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.closing)
	}
	w.mu.Unlock()
	ended := make(chan struct{})
	go func() { w.running.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Busy, "inbound work did not end in time", ctx.Err())
	}
}
