package delivery

import "sync"

// mail is the messages to a dispatcher's loop, each a function that the loop calls. Posting never
// waits. The list stays short, since the loop does not wait either.
type mail struct {
	arrived chan struct{}

	mu     sync.Mutex
	list   []func()
	isOpen bool // questions are answered
	isOver bool // nothing is taken in any more
}

func newMail() *mail { return &mail{arrived: make(chan struct{}, 1)} }

// post leaves a message, and reports whether the loop will call it, now or when it begins.
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
	default: // the loop knows that there is mail
	}
	return true
}

// ask has the loop answer a question, and reports whether it does: not before it begins, nor after
// its end.
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

// open lets questions in.
func (m *mail) open() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isOpen = true
}

// deliver calls the messages that have come.
func (m *mail) deliver() {
	m.mu.Lock()
	list := m.list
	m.list = nil
	m.mu.Unlock()
	for _, message := range list {
		message()
	}
}

// close takes in no more, and calls the last messages.
func (m *mail) close() {
	m.mu.Lock()
	m.isOver = true
	m.mu.Unlock()
	m.deliver()
}
