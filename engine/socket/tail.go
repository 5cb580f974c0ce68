package socket

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// readTime bounds one read of a user's events.
const readTime = 10 * time.Second

// tail is the end of a user's events, followed for all sockets of the user. A socket is live once
// it has everything up to the end: from then on the tail hands it what comes.
type tail struct {
	hub     *Hub
	user    vocab.Username
	signals *rate.Limiter // of the user's programs

	mu      sync.Mutex
	sockets map[*Socket]struct{}
	last    int64      // live sockets have everything up to this number
	told    int64      // the highest number that is known to be committed
	pending []db.Event // that were told and do not follow on last
	behind  bool       // there may be events after last that were not told
	reading bool

	// The last events that were handed out, all after a number: a socket that has almost
	// everything need not read.
	recent     []Frame
	recentFrom int64
}

// maxRecent bounds the events that a tail remembers.
const maxRecent = 32

// knownEnd returns the highest number that is known to be committed.
func (t *tail) knownEnd() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.told, t.last)
}

// addSocket reports whether the user may have one more socket, and adds it.
func (t *tail) addSocket(s *Socket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sockets) >= t.hub.OfUser {
		return false
	}
	t.sockets[s] = struct{}{}
	return true
}

// removeSocket returns how many sockets are left.
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
		if s.live {
			return true
		}
	}
	return false
}

// tell takes events that were committed, in no order.
func (t *tail) tell(events []db.Event, unknown bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		t.told = max(t.told, e.Seq)
	}
	if !t.isFollowed() {
		return // the next socket that is live has the tail read up to told
	}
	t.pending = append(t.pending, events...)
	t.behind = t.behind || unknown
	t.handOut()
	t.readMore()
}

// compare takes the last id of the user's stream.
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

// handOut gives live sockets the pending events that follow on last. The caller holds mu.
func (t *tail) handOut() {
	slices.SortFunc(t.pending, func(a, b db.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	n := 0
	for _, e := range t.pending {
		if e.Seq > t.last {
			if e.Seq != t.last+1 || e.Type == withheldType {
				break
			}
			t.push(e)
		}
		n++
	}
	t.pending = slices.Delete(t.pending, 0, n)
	if len(t.pending) > maxBuffered { // the database has them
		t.pending, t.behind = nil, true
	}
}

// push gives live sockets the event after last. The caller holds mu.
func (t *tail) push(e db.Event) {
	t.last = e.Seq
	t.told = max(t.told, e.Seq)
	f := frameOf(eventOfRow(e))
	if len(t.recent) == maxRecent {
		t.recentFrom = int64(t.recent[0].ID.Seq)
		t.recent = append(t.recent[:0], t.recent[1:]...)
	}
	t.recent = append(t.recent, f)
	for s := range t.sockets {
		s.push(f)
	}
}

// readMore has the events read that follow on last, if some are known to be missing. The caller
// holds mu.
func (t *tail) readMore() {
	if t.reading || !t.behind && len(t.pending) == 0 {
		return
	}
	t.reading = true
	t.hub.open.Add(1) // a live socket counts already
	go t.catchUp()
}

// catchUp reads events until none is known to be missing. After a failure they are read again when
// streams are compared.
func (t *tail) catchUp() {
	defer t.hub.open.Done()
	t.hub.slots <- struct{}{}
	defer func() { <-t.hub.slots }()
	for {
		last, told, more := t.beginRead()
		if !more {
			return
		}
		ctx, cancel := context.WithTimeout(t.hub.reading, readTime)
		events, all, err := t.hub.readRows(ctx, t.user, last)
		cancel()
		if !t.endRead(told, events, all, err) {
			return
		}
	}
}

// beginRead returns after which number is to be read, and up to which at least.
func (t *tail) beginRead() (last, told int64, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handOut()
	if !t.isFollowed() || !t.behind && len(t.pending) == 0 {
		t.pending, t.behind, t.reading = nil, false, false
		return 0, 0, false
	}
	t.behind = false
	return t.last, t.told, true
}

// endRead hands out what was read, with all that there was or not, and reports whether to go on.
func (t *tail) endRead(told int64, events []db.Event, all bool, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.pending, t.behind, t.reading = nil, true, false
		if t.hub.reading.Err() == nil {
			t.hub.Log.Warn("events for sockets not read", "user", t.user, "err", err)
		}
		return false
	}
	for _, e := range events {
		if e.Seq > t.last {
			t.push(e)
		}
	}
	if all {
		t.last = max(t.last, told) // numbers up to there that were not read are no events
	} else {
		t.behind = true
	}
	return true
}
