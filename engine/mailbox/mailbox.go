// Package mailbox is a bounded queue with one worker, which handles the queued letters in order
// and in batches.
//
// The worker acquires a slot, such as a database connection, before it takes a batch. So the
// batch grows while the worker waits for the slot. A panic fails only the batch that caused it;
// the worker goes on. An empty mailbox has no goroutine.
package mailbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

var (
	// ErrFull refuses a letter while the number of letters in a mailbox is at its limit.
	ErrFull = fault.New(fault.Unavailable, "the mailbox is full; try again later")
	// ErrClosed refuses a letter after Close. It is also the answer to the letters of a batch
	// that fails after Close.
	ErrClosed = fault.New(fault.Unavailable, "the mailbox is closed")
	// ErrPanicked is the answer to the letters of a batch that made the worker panic.
	ErrPanicked = errors.New("the worker panicked")
)

// Owner holds the functions that a mailbox calls. Only the worker calls them, one at a time.
type Owner[S, T any] struct {
	// Slot acquires a slot, such as a transaction, calls the function use with it, and then
	// releases the slot. Slot may call this function again, for the same batch.
	Slot func(use func(ctx context.Context, slot S) error) error
	// Alone says whether a letter is a batch by itself. Letters between two such letters are
	// handled together. If Alone is nil, no letter is handled alone.
	Alone func(T) bool
	// Handle handles a batch in a slot.
	Handle func(ctx context.Context, slot S, batch []*Letter[T]) error
	// Settle answers the letters of a batch; the parameter err is the error of Slot. A letter
	// that Settle does not answer keeps its place, and is in the next batch. If Settle returns
	// an error, the worker waits before it takes the next batch.
	Settle func(batch []*Letter[T], err error) error
	// Panicked is told of a panic of the worker.
	Panicked func(value any, stack []byte)
}

// Limits are the limits of a mailbox.
type Limits struct {
	Letters int // letters in the mailbox at one time, including those being handled
	Batch   int // the most letters that are handled together
	Backoff Backoff
}

// Backoff is the range of waits before a retry.
type Backoff struct{ Min, Max time.Duration }

// After returns the wait after a failure. The parameter failures is the number of other failures
// directly before it. The wait is Min, doubled for each of those failures, and at most Max.
func (b Backoff) After(failures int) time.Duration {
	return min(b.Min<<min(failures, 20), b.Max)
}

// Mailbox is a queue of letters with values of type T, for a worker that needs a slot of type S.
// It is safe for concurrent use.
type Mailbox[S, T any] struct {
	*queue[T]
	owner   Owner[S, T]
	batch   int
	backoff Backoff
}

// New returns an empty mailbox.
func New[S, T any](o Owner[S, T], l Limits) *Mailbox[S, T] {
	m := &Mailbox[S, T]{owner: o, batch: l.Batch, backoff: l.Backoff}
	m.queue = newQueue[T](l.Letters, func() { go m.run() })
	return m
}

// Close refuses new letters, and waits until the worker has handled those in the mailbox. The
// letters of a batch that fails from now on are answered with ErrClosed. If ctx ends first, Close
// returns the error of ctx, and the worker goes on.
func (m *Mailbox[S, T]) Close(ctx context.Context) error {
	m.close()
	select {
	case <-m.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run is the worker. It handles batch after batch until there is no letter, or the first letter
// is not ready.
func (m *Mailbox[S, T]) run() {
	for failures := 0; m.goOn(); {
		if m.turn() == nil {
			failures = 0
			continue
		}
		m.pause(m.backoff.After(failures))
		failures++
	}
}

// turn handles one batch.
func (m *Mailbox[S, T]) turn() (err error) {
	var batch []*Letter[T]
	defer func() {
		if p := recover(); p != nil {
			m.owner.Panicked(p, debug.Stack())
			answerReady(batch, ErrPanicked)
			err = fmt.Errorf("%w: %v", ErrPanicked, p)
		}
	}()
	err = m.owner.Slot(func(ctx context.Context, slot S) error {
		if batch == nil {
			batch = m.takeBatch()
		}
		if len(batch) == 0 { // all were withdrawn
			return nil
		}
		return m.owner.Handle(ctx, slot, batch)
	})
	if batch == nil { // there was no slot
		batch = m.takeBatch()
	}
	if len(batch) == 0 {
		return nil
	}
	if err = m.owner.Settle(batch, err); err != nil && m.isClosing() {
		answerReady(batch, ErrClosed)
	}
	return err
}

// takeBatch returns the first letters that are handled together.
func (m *Mailbox[S, T]) takeBatch() []*Letter[T] {
	batch := m.take(m.batch)
	if m.owner.Alone == nil {
		return batch
	}
	if n := slices.IndexFunc(batch, func(l *Letter[T]) bool { return m.owner.Alone(l.Value) }); n >= 0 {
		return batch[:max(n, 1)]
	}
	return batch
}

// pause waits for d, or until Close is called.
func (m *Mailbox[S, T]) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-m.closing:
	case <-t.C:
	}
}
