package inbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxBatch   = 100              // activities in one transaction
	maxWaiting = 50_000           // activities in all writers together; beyond, peers are asked to come again
	applyTime  = 30 * time.Second // for one transaction, with waiting for a connection
)

// writers are the goroutines that own users' databases for inbound work: one per user that has any, which commits what
// is queued in one transaction.
type writers struct {
	inbox *Inbox
	limit int

	mu      sync.Mutex
	queues  map[vocab.Username][]*entry // the key is there while the user's writer runs
	waiting int
	closed  bool
	running sync.WaitGroup
}

type entry struct {
	x    *applying
	done chan error
}

func newWriters(i *Inbox) *writers {
	return &writers{inbox: i, limit: maxWaiting, queues: map[vocab.Username][]*entry{}}
}

// submit queues x for u's writer and waits for its commit. When ctx ends first the activity may still be committed.
func (w *writers) submit(ctx context.Context, u vocab.Username, x *applying) error {
	e := &entry{x: x, done: make(chan error, 1)}
	if !w.enqueue(u, e) {
		return fault.New(fault.Unavailable, "the engine takes no more now").After(retryAfter)
	}
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		return fault.Wrap(fault.Busy, "time ran out", ctx.Err())
	}
}

func (w *writers) enqueue(u vocab.Username, e *entry) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.waiting >= w.limit {
		return false
	}
	w.waiting++
	_, writing := w.queues[u]
	w.queues[u] = append(w.queues[u], e)
	if !writing {
		w.running.Add(1)
		go w.run(u)
	}
	return true
}

// run commits u's queue batch by batch until it is empty. It outlives the requests that filled the queue.
func (w *writers) run(u vocab.Username) {
	defer w.running.Done()
	for w.pending(u) {
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
		w.settle(u, batch, err)
	}
}

// pending tells whether anything is queued for u, and ends the writer when not.
func (w *writers) pending(u vocab.Username) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queues[u]) > 0 {
		return true
	}
	delete(w.queues, u)
	return false
}

func (w *writers) take(u vocab.Username) []*entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[u]
	n := min(len(q), maxBatch)
	w.queues[u] = q[n:]
	return q[:n:n]
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
// aside with the reason. When the database is the cause, everybody is asked to come again.
func (w *writers) settle(u vocab.Username, batch []*entry, err error) {
	switch {
	case err == nil || passing(err):
		w.finish(u, batch, err)
	case len(batch) == 1:
		w.finish(u, batch, w.setAside(u, batch[0].x, err))
	default:
		for _, half := range [][]*entry{batch[:len(batch)/2], batch[len(batch)/2:]} {
			w.settle(u, half, w.commit(u, func() []*entry { return half }))
		}
	}
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
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	w.inbox.Log.ErrorContext(ctx, "activity set aside", "user", u, "activity", x.Activity.ID, "type", x.Activity.Type, "err", cause)
	err := w.inbox.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		return tx.Poison(ctx, x.Activity.ID, x.raw, cause.Error())
	})
	if err != nil {
		return fmt.Errorf("set activity aside: %w", err)
	}
	x.outcome, x.Queued = outcomePoison, false
	return nil
}

// finish tells those who wait how their activities ended.
func (w *writers) finish(u vocab.Username, batch []*entry, err error) {
	w.mu.Lock()
	w.waiting -= len(batch)
	w.mu.Unlock()
	queued := false
	for _, e := range batch {
		if err == nil {
			queued = queued || e.x.Queued
			w.inbox.applied(e.x)
		}
	}
	if queued {
		w.inbox.Wake(u)
	}
	for _, e := range batch {
		e.done <- err
	}
}

// close waits until the writers have committed what they have.
func (w *writers) close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	drained := make(chan struct{})
	go func() { w.running.Wait(); close(drained) }()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Busy, "inbound work did not end in time", ctx.Err())
	}
}
