package intake

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// stall is the state of a user whose database cannot be used now, or whose older activities wait
// in the journal. The order of arrival must be kept, so new activities wait there too.
//
// Under steady traffic, the stall would never end. So once less than a page waits, the drain
// catches up, which means that new activities are held back in memory while the drain applies the
// rest of the journal. Fields are guarded by the intake's mu.
type stall struct {
	since       time.Time
	reported    bool          // whether the operator was told
	isSuspended bool          // the user is suspended, and the database may well be usable
	wake        chan struct{} // ends the pause of the drain
	arrivals    int           // counts changes of the waiting rows in the journal

	usableSince time.Time // since when the database can be used; zero while it cannot be used
	oldest      time.Time // arrival of the oldest activity that the drain saw waiting; zero for none

	catchingUp bool
	from       int64    // number of the first arrival that is held back
	behind     []*entry // the entries that are held back, in order
}

// maxAge is a limit on the age of the oldest waiting activity, and also on the time for which the
// database has been usable. When both exceed maxAge, new activities for the user are refused.
const maxAge = time.Minute

// beginStall stalls the user if the user is not stalled yet, and starts a drain. The drain first
// waits for the duration "after". The caller holds the intake's mu.
func (w *writer) beginStall(after time.Duration) {
	if w.stall != nil {
		return
	}
	w.endWait()
	w.stall = &stall{since: time.Now(), wake: make(chan struct{}, 1)}
	if !w.intake.closed {
		d := &drain{intake: w.intake, writer: w, stall: w.stall, limit: maxBatch}
		w.intake.work.Loop(func() { d.run(after) })
	}
}

// isDeferring reports whether new activities for the user must wait in the journal. The caller
// holds the intake's mu.
func (w *writer) isDeferring() bool { return w.stall != nil && !w.stall.catchingUp }

// isOverdue reports whether the drain cannot keep up, because the database has been usable for a
// while and old activities still wait. The caller holds the intake's mu.
func (w *writer) isOverdue() bool {
	s := w.stall
	return s != nil && !s.usableSince.IsZero() && time.Since(s.usableSince) > maxAge && !s.oldest.IsZero() && w.intake.Now().Sub(s.oldest) > maxAge
}

// reportStall tells the operator once why the user is stalled. The caller holds the intake's mu.
func (w *writer) reportStall(cause error) {
	if !w.stall.reported {
		w.stall.reported = true
		w.intake.Log.Warn("user stalled", "user", w.user, "err", cause, "hint", cmp.Or(fault.Hint(cause), "lightweb db status"))
	}
}

// holdBack holds an entry back if the drain is catching up and the entry arrived after the drain
// had begun to do so. It reports whether it holds the entry back.
func (s *stall) holdBack(e *entry) bool {
	if !s.catchingUp || e.number < s.from {
		return false
	}
	s.behind = append(s.behind, e)
	return true
}

// releaseHeldBack releases the entries that are held back, in order, and ends the catching up. The
// writer then commits the entries, or moves them to the journal if the user stays stalled.
func (s *stall) releaseHeldBack() {
	for _, e := range s.behind {
		e.letter.Release()
	}
	s.behind, s.catchingUp = nil, false
}

// Revisit makes a drain read the rows that wait for a user in the journal.
func (i *Intake) Revisit(u vocab.Username) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := i.writer(u)
	w.beginStall(0)
	w.stall.arrivals++
	w.stall.hurryDrain()
}

// hurryDrain ends the pause of the drain.
func (s *stall) hurryDrain() {
	select {
	case s.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// Stalled returns the users who are stalled. Suspended users, whose activities wait until they are
// active again, do not count.
func (i *Intake) Stalled() (users []vocab.Username) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for u, w := range i.writers {
		if w.stall != nil && !w.stall.isSuspended {
			users = append(users, u)
		}
	}
	return users
}

// outage is true when the last use of the instance database failed with a temporary error.
type outage struct{ atomic.Bool }

// noteInstance records how a use of the instance database ended. The first success after an
// outage means that PostgreSQL is back, most likely for all users, so every waiting drain tries
// again immediately.
func (i *Intake) noteInstance(err error) {
	if err != nil {
		i.outage.Store(isOwnTrouble(err))
		return
	}
	if !i.outage.CompareAndSwap(true, false) {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, w := range i.writers {
		if w.stall != nil {
			w.stall.hurryDrain()
		}
	}
}
