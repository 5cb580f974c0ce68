package mailbox

import (
	"slices"
	"sync"
)

// queue holds letters in their order.
type queue[T any] struct {
	limit   int
	start   func() // starts the worker
	closing chan struct{}
	ended   chan struct{} // closed once the queue is closed and empty, and the worker has ended

	mu      sync.Mutex
	letters []*Letter[T]
	running bool // the worker runs
}

// Letter is a value in the queue of a mailbox.
type Letter[T any] struct {
	Value T

	queue *queue[T]
	ready bool        // the worker may handle it
	gone  bool        // removed from the queue
	done  func(error) // called with the answer
}

func newQueue[T any](limit int, start func()) *queue[T] {
	return &queue[T]{limit: limit, start: start, closing: make(chan struct{}), ended: make(chan struct{})}
}

// Put queues a value. The function done is called with the answer.
func (q *queue[T]) Put(v T, done func(error)) (*Letter[T], error) { return q.add(v, done, true) }

// Reserve queues a value that is not ready. The worker does not handle it, or any letter behind
// it, before Release or Withdraw.
func (q *queue[T]) Reserve(v T, done func(error)) (*Letter[T], error) { return q.add(v, done, false) }

func (q *queue[T]) add(v T, done func(error), ready bool) (*Letter[T], error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isClosing() {
		return nil, ErrClosed
	}
	if len(q.letters) >= q.limit {
		return nil, ErrFull
	}
	l := &Letter[T]{Value: v, queue: q, done: done, ready: ready}
	q.letters = append(q.letters, l)
	q.wake()
	return l, nil
}

// First returns the value of the first letter, ready or not. The result ok is false if there is no
// letter.
func (q *queue[T]) First() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.letters) == 0 {
		return v, false
	}
	return q.letters[0].Value, true
}

// Len returns how many letters there are, including those being handled.
func (q *queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.letters)
}

// IsIdle reports whether the mailbox is empty and its worker has ended.
func (q *queue[T]) IsIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.letters) == 0 && !q.running
}

// Release lets the worker handle the letter.
func (l *Letter[T]) Release() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.ready = true
	l.queue.wake()
}

// Withhold makes a letter not ready again, as if it were reserved; the letter keeps its place.
// Only the worker calls it.
func (l *Letter[T]) Withhold() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.ready = false
}

// Withdraw removes a letter from the queue without an answer.
func (l *Letter[T]) Withdraw() { l.queue.remove(l) }

// Answer removes a letter from the queue, and calls the letter's function done with the answer.
// Further answers have no effect.
func (l *Letter[T]) Answer(err error) {
	if l.queue.remove(l) {
		l.done(err)
	}
}

// answerReady answers the letters of a batch that have no answer and were not withheld.
func answerReady[T any](batch []*Letter[T], err error) {
	for _, l := range batch {
		l.queue.mu.Lock()
		ready := l.ready
		l.queue.mu.Unlock()
		if ready {
			l.Answer(err)
		}
	}
}

// remove removes a letter from the queue, and reports whether it was there.
func (q *queue[T]) remove(l *Letter[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.gone {
		return false
	}
	l.gone = true
	if q.letters[0] == l {
		q.letters[0], q.letters = nil, q.letters[1:]
	} else {
		at := slices.Index(q.letters, l)
		q.letters = slices.Delete(q.letters, at, at+1)
	}
	q.wake()
	return true
}

// take returns up to n letters from the front of the queue. It stops before the first letter that
// is not ready. The letters stay in the queue.
func (q *queue[T]) take(n int) []*Letter[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := make([]*Letter[T], 0, min(n, len(q.letters)))
	for _, l := range q.letters[:min(n, len(q.letters))] {
		if !l.ready {
			break
		}
		batch = append(batch, l)
	}
	return batch
}

// wake starts the worker if the first letter is ready. If the queue is closed and empty, it closes
// the channel ended. The caller holds mu.
func (q *queue[T]) wake() {
	if q.running {
		return
	}
	switch {
	case len(q.letters) > 0 && q.letters[0].ready:
		q.running = true
		q.start()
	case len(q.letters) == 0 && q.isClosing() && !isDone(q.ended):
		close(q.ended)
	}
}

// goOn reports whether the worker has a letter to handle. If there is none, the worker has to end.
func (q *queue[T]) goOn() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.letters) > 0 && q.letters[0].ready {
		return true
	}
	q.running = false
	q.wake()
	return false
}

func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isClosing() {
		close(q.closing)
	}
	q.wake()
}

func (q *queue[T]) isClosing() bool { return isDone(q.closing) }

func isDone(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
