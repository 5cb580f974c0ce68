package mailbox

import (
	"slices"
	"sync"
)

// queue holds letters in their order.
type queue[T any] struct {
	limit   int
	start   func() // runs the worker
	closing chan struct{}
	ended   chan struct{} // closed once the queue is closed and empty, and the worker has ended

	mu      sync.Mutex
	letters []*Letter[T]
	running bool // the worker
}

// Letter is what a mailbox holds in one place of its order.
type Letter[T any] struct {
	Value T

	queue *queue[T]
	ready bool        // for the worker
	gone  bool        // out of the queue
	done  func(error) // is told the answer
}

func newQueue[T any](limit int, start func()) *queue[T] {
	return &queue[T]{limit: limit, start: start, closing: make(chan struct{}), ended: make(chan struct{})}
}

// Put queues a value; done is told the answer.
func (q *queue[T]) Put(v T, done func(error)) (*Letter[T], error) { return q.add(v, done, true) }

// Reserve takes a place for a value that is not ready. The worker handles neither it nor any
// letter behind it before Release or Withdraw.
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

// First returns the value of the first letter, ready or not.
func (q *queue[T]) First() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.letters) == 0 {
		return v, false
	}
	return q.letters[0].Value, true
}

// IsIdle reports whether there is no letter and no worker.
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

// Withhold takes a letter back from the worker, which calls it: the letter keeps its place as if
// it were reserved.
func (l *Letter[T]) Withhold() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.ready = false
}

// Withdraw gives up the place of a letter without an answer.
func (l *Letter[T]) Withdraw() { l.queue.remove(l) }

// Answer ends a letter, and reports the answer to who put it there. Further answers have no effect.
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

// remove takes a letter out of the queue, and reports whether it was there.
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

// take returns the first letters as far as they are ready, n at most. They keep their places.
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

// wake starts the worker when the first letter is ready, and ends a closed queue that is empty.
// The caller holds mu.
func (q *queue[T]) wake() {
	if q.running {
		return
	}
	switch {
	case len(q.letters) > 0 && q.letters[0].ready:
		q.running = true
		q.start()
	case len(q.letters) == 0 && q.isClosing() && !isClosed(q.ended):
		close(q.ended)
	}
}

// goOn reports whether the worker has something to handle; when not, the worker ends.
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

func (q *queue[T]) isClosing() bool { return isClosed(q.closing) }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
