package socket

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
)

const (
	// maxBuffered is how many frames wait for a socket that takes none; beyond it the socket is
	// ended. Its program comes again with the last event that it has.
	maxBuffered = 256

	// batch is how many events are read at once.
	batch = 200
)

// Socket is one open socket. Next and Close are for one goroutine, its owner.
type Socket struct {
	hub     *Hub
	tail    *tail
	request Request
	wake    chan struct{} // there is something to look at

	started bool
	cursor  keyspace.ID // of the last event that was read, before the socket is live
	sent    keyspace.ID // of the last event that Next returned; zero: it was none
	seen    int64       // the number up to which nothing is missing, before the socket is live

	// Under the mutex of the tail.
	live   bool
	upTo   int64 // the number of the last event in the buffer, or before it
	buffer []Frame
	closed *Closing

	present bool // its program told that the user is there
}

// Next returns the next frames: hello first. It returns none when nothing came within idle. The
// error is a *Closing when the engine ends the socket.
func (s *Socket) Next(ctx context.Context, idle time.Duration) ([]Frame, error) {
	s.noteDelivered() // it is asked again once they are written
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

// take returns frames that are there, and reads while the socket is not live.
func (s *Socket) take(ctx context.Context) ([]Frame, error) {
	frames, live, err := s.drainBuffer()
	switch {
	case live || err != nil:
		return frames, err
	case !s.started:
		return s.start(ctx)
	}
	if frames, err = s.replay(ctx); len(frames) > 0 || err != nil {
		return frames, err
	}
	frames, _, err = s.drainBuffer() // it is live now, and may have got what it lacked
	return frames, err
}

// drainBuffer returns what waits for a live socket.
func (s *Socket) drainBuffer() (frames []Frame, live bool, err error) {
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	if s.closed != nil {
		return nil, true, s.closed
	}
	if s.live {
		frames, s.buffer = s.buffer, nil
	}
	return frames, s.live, nil
}

// start finds out where the socket begins.
func (s *Socket) start(ctx context.Context) ([]Frame, error) {
	cursor, reason, err := s.hub.findStart(ctx, s.request.User, s.request.After)
	if err != nil {
		return nil, err
	}
	s.started, s.cursor, s.seen = true, cursor, int64(cursor.Seq)
	frames := []Frame{helloFrame(cursor, s.hub.findDelivered(ctx, s.request.User))}
	if reason != "" {
		frames = append(frames, resetFrame(reason, cursor))
	}
	return append(frames, s.presentFrames(ctx)...), nil
}

// replay returns events after the cursor, from the stream, or from the database when the stream
// does not lead on from there. When there are none, the socket is live.
func (s *Socket) replay(ctx context.Context) ([]Frame, error) {
	for {
		s.hub.metrics.reads.Inc()
		events, leads := s.hub.readStream(ctx, s.request.User, s.cursor)
		if leads && len(events) == 0 && s.join() {
			return nil, nil
		}
		if len(events) == 0 {
			var err error
			if events, err = s.readDatabase(ctx); err != nil {
				return nil, err
			}
			if len(events) == 0 && s.join() {
				return nil, nil
			}
		}
		if frames := s.passOver(events); len(frames) > 0 {
			return frames, nil
		}
	}
}

// readDatabase returns the next events of the database.
func (s *Socket) readDatabase(ctx context.Context) ([]event.Event, error) {
	known := s.tail.knownEnd()
	rows, all, err := s.hub.readRows(ctx, s.request.User, s.seen)
	if err != nil {
		return nil, err
	}
	events := make([]event.Event, len(rows))
	for n, r := range rows {
		events[n] = eventOfRow(r)
	}
	if all && len(events) == 0 {
		s.seen = max(s.seen, known) // numbers up to there that were not read are no events
	}
	return events, nil
}

// passOver moves the cursor behind events, and returns those that the program is shown.
func (s *Socket) passOver(events []event.Event) (frames []Frame) {
	for _, e := range events {
		s.cursor, s.seen = e.ID, int64(e.ID.Seq)
		if !s.isHidden(e.Type) {
			frames = append(frames, frameOf(e))
		}
	}
	s.hub.metrics.pushed.Add(float64(len(frames)))
	return frames
}

func (s *Socket) isHidden(kind string) bool { return s.request.Assistant && isHidden(kind) }

// join makes the socket live, if the tail can give it what it lacks.
func (s *Socket) join() bool {
	t := s.tail
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isFollowed() {
		t.last, t.pending, t.recent, t.recentFrom = s.seen, nil, nil, s.seen
		t.behind = t.told > s.seen
	}
	if s.seen < t.recentFrom {
		return false
	}
	s.live, s.upTo = true, s.seen
	for _, f := range t.recent {
		s.push(f)
	}
	t.readMore()
	return true
}

// push hands a live socket an event. The caller holds the mutex of the tail.
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

// End has Next return a closing. Every goroutine may call it.
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

// Close gives the socket's place back. It is called once.
func (s *Socket) Close() {
	s.endPresence()
	s.hub.detach(s)
}
