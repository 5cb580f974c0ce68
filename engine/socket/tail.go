package socket

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// readTime is the time limit for one read of a user's events.
const readTime = 10 * time.Second

// tail follows the newest events of a user for all sockets of the user. A socket is live once it
// has every event up to the number in the field last. From then on the tail gives it each new
// event.
type tail struct {
	hub     *Hub
	user    vocab.Username
	signals *rate.Limiter // limits the signals of the user's clients

	showing sync.Mutex // held while presence changes, is stored and is shown: the last change is shown last
	shown   string     // the state that was last shown to all who may see it, empty for offline; the mutex showing guards it

	mu      sync.Mutex
	sockets map[*Socket]struct{}
	last    int64        // live sockets have every event up to this number
	edge    keyspace.ID  // the last event that live sockets have
	told    int64        // the highest number that is known to be committed
	pending []user.Event // committed events that do not follow directly on last
	behind  bool         // there may be events after last that have to be read
	reading bool

	// recent has the frames of all events after recentFrom. These events were given to
	// sockets last. A socket that lacks only these events need not read them.
	recent     []Frame
	recentFrom int64
}

// maxRecent limits the events that a tail keeps in recent.
const maxRecent = 32

// knownEnd returns the highest number that is known to be committed.
func (t *tail) knownEnd() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.told, t.last)
}

// addSocket adds a socket. It returns false if the user may have no more.
func (t *tail) addSocket(s *Socket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sockets) >= t.hub.OfUser || s.request.Assistant && t.countAssistants() >= t.hub.OfUser/2 {
		return false
	}
	t.sockets[s] = struct{}{}
	return true
}

// countAssistants returns how many of the sockets belong to LLM engines. The caller holds mu.
func (t *tail) countAssistants() (n int) {
	for s := range t.sockets {
		if s.request.Assistant {
			n++
		}
	}
	return n
}

// removeSocket removes a socket, and returns how many are left.
func (t *tail) removeSocket(s *Socket) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sockets, s)
	return len(t.sockets)
}

func (t *tail) listSockets() []*Socket {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*Socket, 0, len(t.sockets))
	for s := range t.sockets {
		all = append(all, s)
	}
	return all
}

// isFollowed reports whether there is a live socket. The caller holds mu.
func (t *tail) isFollowed() bool {
	for s := range t.sockets {
		if s.live && s.closed == nil {
			return true
		}
	}
	return false
}

// tell gives live sockets the events of a commit. The order of the calls may differ from the
// order of the events' numbers. If the parameter unknown is true, the commit may have added other
// events, which have to be read.
func (t *tail) tell(events []user.Event, unknown bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		t.told = max(t.told, e.Seq)
	}
	if !t.isFollowed() {
		return // join makes the tail read up to told
	}
	t.pending = append(t.pending, events...)
	t.behind = t.behind || unknown
	t.handOut()
	t.readMore()
}

// compare starts a read if events are missing. The parameter last is the last id in the user's
// stream.
func (t *tail) compare(last keyspace.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = max(t.told, int64(last.Seq))
	if !t.isFollowed() {
		return
	}
	t.behind = t.behind || t.told > t.last
	t.readMore()
}

// handOut gives live sockets those pending events that follow t.last without a gap. If a pending
// event has a number up to t.last, but is not in t.recent, the database may have been set back.
// Then handOut drops the pending events, and makes the tail read the database. The caller holds
// mu.
func (t *tail) handOut() {
	slices.SortFunc(t.pending, func(a, b user.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	n := 0
	for _, e := range t.pending {
		if e.Seq <= t.last && !t.hasGiven(e) {
			t.pending, t.behind = nil, true
			return
		}
		if e.Seq > t.last {
			if e.Seq != t.last+1 || e.Type == withheldType {
				break
			}
			t.push(e)
		}
		n++
	}
	t.pending = slices.Delete(t.pending, 0, n)
	if len(t.pending) > maxBuffered { // they are read from the database instead
		t.pending, t.behind = nil, true
	}
}

// hasGiven reports whether the event is one of the last that sockets were given. The caller holds
// mu.
func (t *tail) hasGiven(e user.Event) bool {
	return slices.ContainsFunc(t.recent, func(f Frame) bool { return f.ID == eventOfRow(e).ID })
}

// push gives live sockets the event that follows t.last. The caller holds mu.
func (t *tail) push(e user.Event) {
	f := frameOf(eventOfRow(e))
	t.last, t.edge = e.Seq, f.ID
	t.told = max(t.told, e.Seq)
	if len(t.recent) == maxRecent {
		t.recentFrom = int64(t.recent[0].ID.Seq)
		t.recent = append(t.recent[:0], t.recent[1:]...)
	}
	t.recent = append(t.recent, f)
	for s := range t.sockets {
		s.push(f)
	}
}

// readMore starts a read of the events after t.last, if some may be missing and no read is under
// way. The caller holds mu.
func (t *tail) readMore() {
	if t.reading || !t.behind && len(t.pending) == 0 {
		return
	}
	t.reading = true
	t.hub.open.Add(1) // open is not zero, because it counts the live socket
	go t.catchUp()
}

// catchUp reads events until none is known to be missing. After a failure it stops, and
// CompareStreams starts the next read.
func (t *tail) catchUp() {
	defer t.hub.open.Done()
	t.hub.slots <- struct{}{}
	defer func() { <-t.hub.slots }()
	for {
		p, more := t.beginRead()
		if !more {
			return
		}
		ctx, cancel := context.WithTimeout(t.hub.reading, readTime)
		found, err := t.hub.readRows(ctx, t.user, p.edge, p.last)
		cancel()
		if !t.endRead(p, found, err) {
			return
		}
	}
}

// place is the position of a tail at the beginning of a read.
type place struct {
	last, told int64
	edge       keyspace.ID
}

// beginRead returns the place after which to read. The result "more" is false if there is nothing
// to read.
func (t *tail) beginRead() (p place, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handOut()
	if !t.isFollowed() || !t.behind && len(t.pending) == 0 {
		t.pending, t.behind, t.reading = nil, false, false
		return place{}, false
	}
	t.behind = false
	return place{t.last, t.told, t.edge}, true
}

// endRead gives live sockets the events that were read after the place p, and reports whether to
// read on. It drops the events if a socket that lacks earlier events has joined meanwhile. If the
// database was set back, it ends the sockets, and each client gets a reset when it reconnects.
func (t *tail) endRead(p place, found rows, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		t.pending, t.behind, t.reading = nil, true, false
		if t.hub.reading.Err() == nil {
			t.hub.Log.Warn("events for sockets not read", "user", t.user, "err", err)
		}
		return false
	case t.last < p.last:
		t.behind = true
		return true
	case found.isSetBack:
		t.endLive(SetBack)
		t.told = min(t.told, found.given)
		return true
	}
	for _, e := range found.events {
		if e.Seq > t.last {
			t.push(e)
		}
	}
	if found.isAll {
		t.last = max(t.last, min(p.told, found.given)) // a number up to told that has no row belongs to no event
	} else {
		t.behind = true
	}
	return true
}

// endLive ends the live sockets. The caller holds mu.
func (t *tail) endLive(c *Closing) {
	for s := range t.sockets {
		if s.live {
			s.endLocked(c)
		}
	}
}
