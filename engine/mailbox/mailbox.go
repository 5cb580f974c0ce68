// Package mailbox is a bounded queue with one worker, which handles what is queued in order and
// in batches.
//
// The worker takes its slot, such as a connection, before it takes a batch: while it waits for
// the slot the batch grows. A panic costs the batch that caused it, not the worker. An empty
// mailbox has no goroutine.
package mailbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

var (
	// ErrFull refuses a letter while a mailbox holds as many as it may.
	ErrFull = fault.New(fault.Unavailable, "the mailbox is full; try again later")
	// ErrClosed refuses a letter after Close, and answers those that Close could not let the
	// worker handle.
	ErrClosed = fault.New(fault.Unavailable, "the mailbox is closed")
	// ErrPanicked answers the letters of a batch that made the worker panic.
	ErrPanicked = errors.New("the worker panicked")
)

// Owner is what a mailbox works for. Its functions are called by the worker alone, one at a time.
type Owner[S, T any] struct {
	// Slot takes what a batch is handled in, calls use with it, and gives it back. It may call
	// use again, for the same batch.
	Slot func(use func(ctx context.Context, slot S) error) error
	// Together says how many of the first letters are handled together, one at least; nil: all. A
	// panic is answered to these alone.
	Together func(first []*Letter[T]) int
	// Handle handles a batch in a slot.
	Handle func(ctx context.Context, slot S, batch []*Letter[T]) error
	// Settle answers the letters of a batch; err is what Slot returned. A letter that it does not
	// answer keeps its place and is in the next batch. After an error the worker waits before it
	// takes that one.
	Settle func(batch []*Letter[T], err error) error
	// Panicked reports a panic of the worker.
	Panicked func(value any, stack []byte)
}

// Limits bounds a mailbox.
type Limits struct {
	Letters int // in the mailbox at once, with those that are being handled
	Batch   int // letters handled at once
	Backoff Backoff
}

// Backoff says how long to wait before something that failed is tried again.
type Backoff struct{ Min, Max time.Duration }

// After returns the wait after so many failures in a row before the last one: Min, doubled with
// each, and Max at most.
func (b Backoff) After(failures int) time.Duration {
	return min(b.Min<<min(failures, 20), b.Max)
}

// Mailbox is a queue of letters that hold a T, for a worker that needs an S. It is safe for
// concurrent use.
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

// Close refuses new letters and waits until the worker has handled those that are there. A batch
// that fails now is answered with ErrClosed. The error is that of ctx when it ends first; the
// worker goes on.
func (m *Mailbox[S, T]) Close(ctx context.Context) error {
	m.close()
	select {
	case <-m.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run handles batch after batch until the first letter is not ready, or there is none.
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
	if m.owner.Together != nil && len(batch) > 0 {
		batch = batch[:m.owner.Together(batch)]
	}
	return batch
}

// pause waits; Close ends the wait.
func (m *Mailbox[S, T]) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-m.closing:
	case <-t.C:
	}
}
