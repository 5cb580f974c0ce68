package delivery

import "sync"

// mail is the queue of messages to a dispatcher's loop. Each message is a function that the loop
// calls. Posting never waits. The queue stays short, because the loop does not wait either.
type mail struct {
	arrived chan struct{}

	mu     sync.Mutex
	list   []func()
	isOpen bool // the loop has started, so ask may be used
	isOver bool // no more messages are accepted
}

func newMail() *mail { return &mail{arrived: make(chan struct{}, 1)} }

// post queues a message, and reports whether the loop will call it. A message that is posted
// before the loop starts waits until then.
func (m *mail) post(message func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.add(message)
}

func (m *mail) add(message func()) bool {
	if m.isOver {
		return false
	}
	m.list = append(m.list, message)
	select {
	case m.arrived <- struct{}{}:
	default: // a signal is pending already
	}
	return true
}

// ask has the loop call the function question, waits for the call to end, and returns the answer.
// Before the loop starts and after it has ended, nothing is called, and the result ok is false.
func ask[T any](m *mail, question func() T) (answer T, ok bool) {
	reply := make(chan T, 1)
	m.mu.Lock()
	ok = m.isOpen && m.add(func() { reply <- question() })
	m.mu.Unlock()
	if ok {
		answer = <-reply
	}
	return answer, ok
}

// open lets ask be used.
func (m *mail) open() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isOpen = true
}

// deliver calls the queued messages.
func (m *mail) deliver() {
	m.mu.Lock()
	list := m.list
	m.list = nil
	m.mu.Unlock()
	for _, message := range list {
		message()
	}
}

// close accepts no more messages, and calls the queued ones.
func (m *mail) close() {
	m.mu.Lock()
	m.isOver = true
	m.mu.Unlock()
	m.deliver()
}
