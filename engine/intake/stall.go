package intake

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// stall is the state of a user whose database cannot be used now, or while older activities wait
// in the journal. The order of arrival holds, so a new activity waits there too.
//
// Under steady traffic that would never end. So once less than a page waits, the drain catches
// up: new activities are held back in memory while the drain applies the rest of the journal.
// Fields are guarded by the intake's mu.
type stall struct {
	since    time.Time
	reported bool          // to the operator
	wake     chan struct{} // ends the pause of the drain
	arrivals int           // changes of what waits in the journal

	usableSince time.Time // of the database; zero while it cannot be used
	oldest      time.Time // arrival of the oldest activity that the drain saw waiting; zero for none

	catchingUp bool
	from       int64    // number of the first arrival that is held back
	behind     []*entry // that are held back, in order
}

// maxAge is the age of the oldest waiting activity, and the time for which the database has been
// usable, above which a user takes nothing more.
const maxAge = time.Minute

// beginStall stalls the user, unless that has happened: a drain looks after the user, first after
// a while. The caller holds the intake's mu.
func (w *writer) beginStall(after time.Duration) {
	if w.stall != nil {
		return
	}
	w.stall = &stall{since: time.Now(), wake: make(chan struct{}, 1)}
	if !w.intake.closed {
		d := &drain{intake: w.intake, writer: w, stall: w.stall, limit: maxBatch}
		w.intake.work.Go(func() { d.run(after) })
	}
}

// isDeferring reports whether what comes for the user waits in the journal. The caller holds the
// intake's mu.
func (w *writer) isDeferring() bool { return w.stall != nil && !w.stall.catchingUp }

// isOverdue reports whether the drain does not keep up: the database can be used, and old
// activities still wait. The caller holds the intake's mu.
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

// holdBack holds an entry back, if the drain catches up and the entry came after it began to.
func (s *stall) holdBack(e *entry) bool {
	if !s.catchingUp || e.number < s.from {
		return false
	}
	s.behind = append(s.behind, e)
	return true
}

// releaseHeldBack releases what is held back, in order: to be committed, or when the user stays
// stalled, to be brought to the journal.
func (s *stall) releaseHeldBack() {
	for _, e := range s.behind {
		e.letter.Release()
	}
	s.behind, s.catchingUp = nil, false
}

// Revisit lets a drain look into the journal for what waits for a user.
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
	default: // it will be ended already
	}
}

// Stalled returns the users who are stalled.
func (i *Intake) Stalled() (users []vocab.Username) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for u, w := range i.writers {
		if w.stall != nil {
			users = append(users, u)
		}
	}
	return users
}

// outage says whether the instance database could not be used the last time.
type outage struct{ atomic.Bool }

// noteInstance notes how a use of the instance database ended. With the first that succeeds after
// an outage PostgreSQL is back, most likely for all users: no drain waits any longer to try
// again.
func (i *Intake) noteInstance(err error) {
	if err != nil {
		i.outage.Store(isPassing(err))
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
