package delivery

import (
	"container/heap"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxTurns      = 8               // turns at the same time; each holds a database connection
	firstTurnWait = 5 * time.Second // the wait after a failed turn, doubled after each further one
	maxTurnWait   = 5 * time.Minute // the longest such wait

	// settleTime is the age from which a lease without a delivery in memory counts as lost.
	// The transaction that took the lease is shorter than settleTime, even with its wait for a
	// connection.
	settleTime = 40 * time.Second
)

// atOnce is a due time before every other, for a turn that is due immediately.
var atOnce = time.Unix(0, 0)

// schedule decides which user has a turn next. A turn is a transaction of the user's database
// that writes outcomes and claims deliveries that are due. A user has one turn at a time.
type schedule struct {
	users   map[vocab.Username]*scheduledUser
	due     turnHeap // users who wait for a turn
	running int      // turns in progress
}

type scheduledUser struct {
	name      vocab.Username
	due       time.Time // when the next turn is due; zero if none is needed
	place     int       // the index in schedule.due; -1 if the user is not in it
	isRunning bool      // a turn is in progress
	again     bool      // another turn is needed right after the one in progress
	failures  int       // consecutive turns that failed
	hadTurn   bool      // a turn has succeeded
	doubted   time.Time // when a transaction last ended in an unknown way, so that it may have leased deliveries that are not in memory; zero for none
}

func newSchedule() schedule { return schedule{users: map[vocab.Username]*scheduledUser{}} }

func (s *schedule) user(name vocab.Username) *scheduledUser {
	u := s.users[name]
	if u == nil {
		u = &scheduledUser{name: name, place: -1}
		s.users[name] = u
	}
	return u
}

// requestTurn makes sure that a user has a turn no later than the time "at".
func (s *schedule) requestTurn(name vocab.Username, at time.Time) {
	u := s.user(name)
	switch {
	case u.isRunning:
		u.again = true
	case u.place < 0:
		u.due = at
		heap.Push(&s.due, u)
	case at.Before(u.due):
		u.due = at
		heap.Fix(&s.due, u.place)
	}
}

// beginTurn returns the user whose turn begins, or nil if no turn may begin now.
func (s *schedule) beginTurn(now time.Time) *scheduledUser {
	if s.running >= maxTurns || len(s.due) == 0 || s.due[0].due.After(now) {
		return nil
	}
	u := heap.Pop(&s.due).(*scheduledUser)
	u.isRunning, u.again, u.due = true, false, time.Time{}
	s.running++
	return u
}

// beginWriting begins a turn of the user with this name before it is due, and leaves the time at
// which it is due. It returns nil if no turn of the user may begin now, or the last one has failed.
func (s *schedule) beginWriting(name vocab.Username) *scheduledUser {
	u := s.user(name)
	if s.running >= maxTurns || u.isRunning || u.failures > 0 {
		return nil
	}
	if u.place >= 0 {
		heap.Remove(&s.due, u.place)
	}
	u.isRunning, u.again = true, false
	s.running++
	return u
}

// dueBy makes sure that u, whose turn is in progress, has another turn no later than the time in
// at.
func (u *scheduledUser) dueBy(at time.Time) {
	if u.due.IsZero() || at.Before(u.due) {
		u.due = at
	}
}

// endTurn ends a turn that succeeded. If more is true, the user needs another turn immediately.
func (s *schedule) endTurn(u *scheduledUser, more bool) {
	u.failures, u.hadTurn = 0, true
	if u.again || more {
		u.due = atOnce
	}
	s.leaveTurn(u)
}

// failTurn ends a turn that failed.
func (s *schedule) failTurn(u *scheduledUser, now time.Time) {
	u.due = now.Add(min(maxTurnWait, firstTurnWait<<min(u.failures, 10)))
	u.failures++
	s.leaveTurn(u)
}

func (s *schedule) leaveTurn(u *scheduledUser) {
	s.running--
	if u.isRunning = false; !u.due.IsZero() {
		heap.Push(&s.due, u)
	}
}

// doubt records that a transaction may have leased deliveries of the user which are not in memory.
func (u *scheduledUser) doubt(now time.Time) { u.doubted = now }

// settleDoubt ends the doubt (see doubt) if a turn that began at the time "at" has released the
// leases in doubt. Otherwise it makes another turn due. A lease that is younger than settleTime is
// not released, because its transaction may be in progress.
func (u *scheduledUser) settleDoubt(at time.Time) {
	switch {
	case u.doubted.IsZero():
	case at.Sub(u.doubted) >= settleTime:
		u.doubted = time.Time{}
	default:
		u.dueBy(u.doubted.Add(settleTime))
	}
}

// untilNext returns the time until the next turn becomes due by itself.
func (s *schedule) untilNext(now time.Time) time.Duration {
	if s.running == maxTurns || len(s.due) == 0 {
		return time.Hour // a message wakes the loop when a turn ends or is requested
	}
	return s.due[0].due.Sub(now)
}

// turnHeap is a heap of users; the user whose turn is due first is on top.
type turnHeap []*scheduledUser

func (q turnHeap) Len() int           { return len(q) }
func (q turnHeap) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q turnHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements heap.Interface.
func (q *turnHeap) Push(x any) {
	u := x.(*scheduledUser)
	u.place = len(*q)
	*q = append(*q, u)
}

// Pop implements heap.Interface.
func (q *turnHeap) Pop() any {
	last := len(*q) - 1
	u := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	u.place = -1
	return u
}
