package socket

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/keyspace"
)

const (
	// maxBuffered limits the frames that wait for a socket whose client does not read. One
	// more frame ends the socket. The client then reconnects with the last event that it has.
	maxBuffered = 256

	// batch limits the events of one read.
	batch = 200
)

// Socket is one open socket. Only the goroutine that opened it calls Next and Close. The socket
// is live once it has caught up with the stored events; from then on its tail pushes new events
// to it.
type Socket struct {
	hub     *Hub
	tail    *tail
	request Request
	wake    chan struct{} // makes Next look again

	started bool
	cursor  keyspace.ID // the last event that was read; used until the socket is live
	sent    keyspace.ID // the last event that Next returned; zero if there is none
	seen    int64       // no event up to this number is missing; used until the socket is live

	// The mutex of the tail protects these fields.
	live   bool
	upTo   int64 // no event up to this number is missing, once the socket is live
	buffer []Frame
	closed *Closing

	state string // the presence that the client says; empty if it says none
}

// Next returns the next frames, first of all the hello frame. It returns none if nothing came
// within the duration idle. The error is a *Closing if the engine ends the socket.
func (s *Socket) Next(ctx context.Context, idle time.Duration) ([]Frame, error) {
	s.noteDelivered() // the caller has written the frames of the last call
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		frames, err := s.take(ctx)
		if len(frames) > 0 || err != nil {
			s.sent = lastID(frames)
			return frames, err
		}
		select {
		case <-s.wake:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns the frames that were pushed to the socket. Until the socket has caught up with the
// stored events, take also returns the frames of the next stored events.
func (s *Socket) take(ctx context.Context) ([]Frame, error) {
	frames, live, err := s.drainBuffer()
	switch {
	case live || err != nil:
		return frames, err
	case !s.started:
		return s.start(ctx)
	}
	events, err := s.replay(ctx)
	if len(events) == 0 && err == nil {
		events, _, err = s.drainBuffer() // the socket is live now, and join may have pushed frames
	}
	return append(frames, events...), err
}

// drainBuffer returns the frames that were pushed to the socket. Until the socket has started,
// the pushed frames wait for the socket's first frames.
func (s *Socket) drainBuffer() (frames []Frame, live bool, err error) {
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	if s.closed != nil {
		return nil, true, s.closed
	}
	if s.started {
		frames, s.buffer = s.buffer, nil
	}
	return frames, s.live, nil
}

// join makes the socket live if the tail has every event that the socket lacks. It reports
// whether it did.
func (s *Socket) join() bool {
	t := s.tail
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isFollowed() {
		t.last, t.edge, t.pending, t.recent, t.recentFrom = s.seen, s.cursor, nil, nil, s.seen
		t.behind = t.told > s.seen
	}
	if s.seen < t.recentFrom {
		t.behind = true // if the database was set back, the tail's read finds that out
		t.readMore()
		return false
	}
	s.live, s.upTo = true, s.seen
	for _, f := range t.recent {
		s.push(f)
	}
	t.readMore()
	return true
}

// push gives an event to a live socket. The caller holds the mutex of the tail.
func (s *Socket) push(f Frame) {
	if !s.live || s.closed != nil || int64(f.ID.Seq) <= s.upTo {
		return
	}
	s.upTo = int64(f.ID.Seq)
	if s.isHidden(f.Type) {
		return
	}
	if len(s.buffer) >= maxBuffered {
		s.endLocked(TooSlow)
		return
	}
	s.hub.metrics.pushed.Inc()
	s.buffer = append(s.buffer, f)
	s.wakeUp()
}

// End makes Next return c, unless the socket has ended before. Any goroutine may call it.
func (s *Socket) End(c *Closing) {
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	s.endLocked(c)
}

func (s *Socket) endLocked(c *Closing) {
	if s.closed != nil {
		return
	}
	s.closed, s.buffer = c, nil
	s.hub.metrics.closed.WithLabelValues(c.Reason).Inc()
	s.wakeUp()
}

func (s *Socket) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close frees the socket's place in the hub. It is called once.
func (s *Socket) Close() {
	s.endPresence()
	s.hub.detach(s)
}
