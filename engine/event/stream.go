package event

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// batch limits the events that are read and appended to a stream in one step.
	batch = 200

	// trimEvery is the number of new events after which old ones are dropped from the database.
	trimEvery = 1000

	// maxWaiting and maxBytes are the limits on the events in a user's database that are not
	// emitted.
	maxWaiting = 1_000_000
	maxBytes   = 1 << 30

	// maxRecent limits the ids of emitted events that are remembered.
	maxRecent = 64

	// withheldType is the type of an event that counts other events, the withheld ones, which are
	// not stored one by one. The event counts for user.WithheldFor. Then another row replaces
	// it, with a new number, and only that row is emitted.
	withheldType = "events.withheld"
)

// stream is the known state of a user's stream. The emitter's mutex guards its fields, except mark,
// isKnown and recent. While a worker handles the stream, only that worker uses these three.
type stream struct {
	user      vocab.Username
	told      []user.Event // committed and not emitted, in no order
	behind    bool         // the database may have further events
	waiting   int          // the number of events that are known to wait to be emitted
	taken     int          // the value of waiting when the last task began
	queued    bool
	busy      bool
	since     time.Time // since when events wait to be emitted; zero: none wait
	retryAt   time.Time // when a failed task is tried again
	failures  int
	isRefused bool      // Redis refused the events at the last try
	closeAt   time.Time // when the counting of withheld events ends; zero: none are counted
	closing   bool      // the counting has to end now
	highest   int64     // the highest number of a committed event
	trimmed   int64     // the value of highest when the last task began
	used      time.Time // when events were last emitted

	mark    keyspace.ID // the last id of the stream
	isKnown bool        // mark was read from the stream
	// recent has the ids that were emitted last. An event that is told again has one of these
	// ids. An event of a database that was set back has the number of an earlier event and
	// another time.
	recent []keyspace.ID
}

// task is the work on a stream that a worker has to do.
type task struct {
	told                   []user.Event
	behind, closing, trims bool
}

// beginTask returns the work on the stream, and clears it from the stream. The caller holds the
// emitter's mutex.
func (s *stream) beginTask() task {
	t := task{told: s.told, behind: s.behind || s.closing, closing: s.closing, trims: s.highest/trimEvery > s.trimmed/trimEvery}
	s.told, s.behind, s.closing, s.trimmed, s.taken = nil, false, false, s.highest, s.waiting
	return t
}

// noteFailure sets when the stream is tried again. If Redis is away, that is as soon as Redis
// answers. Otherwise it is after a wait that doubles with each failure, up to a minute. The
// caller holds the emitter's mutex.
func (s *stream) noteFailure(now time.Time, away bool) {
	s.failures++
	s.retryAt = now
	if !away {
		s.retryAt = now.Add(min(time.Second<<min(s.failures-1, 6), time.Minute))
	}
}

// doTask does a task. Old events are dropped even if new ones cannot be emitted.
func (e *Emitter) doTask(ctx context.Context, s *stream, t task) error {
	if t.closing {
		if err := e.Store.Write(ctx, s.user, func(ctx context.Context, tx *user.Tx) error { return tx.Events.CloseWithheld(ctx, e.Now()) }); err != nil {
			return err
		}
	}
	err := e.emitTold(ctx, s, t)
	if t.trims {
		err = errors.Join(err, e.trimTable(ctx, s))
	}
	return err
}

// emitTold emits the events that are not on the stream. It appends the events in the task if they
// follow directly on the last event of the stream. Else it reads the events from the database.
func (e *Emitter) emitTold(ctx context.Context, s *stream, t task) error {
	slices.SortFunc(t.told, func(a, b user.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	told := slices.DeleteFunc(t.told, func(ev user.Event) bool { return s.isEmitted(ev) })
	if t.behind || !s.isKnown || !follows(s.mark, told) {
		return e.catchUp(ctx, s)
	}
	err := e.appendEvents(ctx, s, told)
	if errors.Is(err, errMoved) {
		return e.catchUp(ctx, s)
	}
	return err
}

// isEmitted reports whether the event is known to be on the stream. The number alone does not
// show this, because a database that was set back gives the same numbers to other events.
func (s *stream) isEmitted(ev user.Event) bool {
	return s.isKnown && ev.Seq <= int64(s.mark.Seq) && slices.Contains(s.recent, idOf(ev))
}

// noteEmitted remembers the ids of entries that were appended to the stream.
func (s *stream) noteEmitted(entries []keyspace.Entry) {
	for _, entry := range entries[max(len(entries)-maxRecent, 0):] {
		s.recent = append(s.recent, entry.ID)
	}
	s.recent = slices.Delete(s.recent, 0, max(len(s.recent)-maxRecent, 0))
}

// follows reports whether the events in told are the next ones after the id mark, without a gap.
// A gap may be an unused number, or an event that the emitter has not been told of yet; only the
// database can tell.
func follows(mark keyspace.ID, told []user.Event) bool {
	for n, ev := range told {
		if ev.Seq != int64(mark.Seq)+int64(n)+1 || ev.Milli < int64(mark.Milli) || ev.Type == withheldType {
			return false
		}
	}
	return true
}

// errMoved says that the last id of the stream is not the expected one.
var errMoved = errors.New("the stream has another last id than was known")

// appendEvents appends events to the stream. If the last id of the stream is not s.mark, it
// appends none, sets s.mark to that id and returns errMoved.
func (e *Emitter) appendEvents(ctx context.Context, s *stream, events []user.Event) error {
	if len(events) == 0 {
		return nil
	}
	entries := make([]keyspace.Entry, len(events))
	for n, ev := range events {
		entries[n] = entryOf(ev)
	}
	last, err := e.Streams.Of(s.user).Append(ctx, Stream, s.mark, e.Keep, entries)
	if err != nil {
		return err
	}
	moved := last != entries[len(entries)-1].ID
	s.mark, s.isKnown = last, true
	if moved {
		e.metrics.repaired.Inc()
		return errMoved
	}
	s.noteEmitted(entries)
	e.metrics.emitted.Add(float64(len(events)))
	e.noteUse(s)
	return nil
}

func (e *Emitter) noteUse(s *stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.used = e.Now()
}

// catchUp emits the events of the database after the last id of the stream, until there are no
// more.
func (e *Emitter) catchUp(ctx context.Context, s *stream) error {
	if !s.isKnown {
		last, err := e.Streams.Of(s.user).LastID(ctx, Stream)
		if err != nil {
			return err
		}
		s.mark, s.isKnown = last, true
	}
	for moved := 0; ; {
		events, isSetBack, err := e.readNext(ctx, s)
		if err != nil {
			return err
		}
		if isSetBack {
			if err := e.startAfresh(ctx, s); err != nil {
				return err
			}
			continue
		}
		if len(events) == 0 {
			return nil
		}
		if events[0].Milli < int64(s.mark.Milli) {
			if err := e.raiseTimes(ctx, s); err != nil {
				return err
			}
			continue
		}
		if err = e.appendEvents(ctx, s, events); err == nil {
			continue
		}
		if moved++; !errors.Is(err, errMoved) || moved > 10 {
			return err
		}
	}
}

// readNext reads the next events from the database that are not on the stream. The result
// "isSetBack" is true if the database has not given out the number of the stream's last event, or
// has given that number to another event.
func (e *Emitter) readNext(ctx context.Context, s *stream) (events []user.Event, isSetBack bool, err error) {
	last := int64(s.mark.Seq)
	events, w, err := readRows(ctx, e.Store, s.user, last-1, batch+1)
	if err != nil {
		return nil, false, fmt.Errorf("read events of %s: %w", s.user, err)
	}
	isSetBack = w.Given < last
	if len(events) > 0 && events[0].Seq == last {
		isSetBack = idOf(events[0]) != s.mark
		events = events[1:]
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.waiting, s.taken = max(s.waiting, len(events)), max(s.taken, len(events))
	s.closeAt = time.Time{}
	if w.Withheld != nil {
		s.closeAt = w.WithheldAt.Add(user.WithheldFor)
	}
	return events, isSetBack, nil
}

// withoutOpen removes the event that still counts withheld events (see withheldType).
func withoutOpen(events []user.Event, w user.EventWindow) []user.Event {
	return slices.DeleteFunc(events, func(ev user.Event) bool { return w.Withheld != nil && ev.Seq == *w.Withheld })
}

// startAfresh removes a stream that has events which the database does not have. This happens
// when the database server was set back to an earlier state without Lightweb's restore. Readers
// then find that their ids are higher than those of the new stream, and begin anew.
func (e *Emitter) startAfresh(ctx context.Context, s *stream) error {
	e.Log.WarnContext(ctx, "stream was ahead of its database, and starts anew", "user", s.user, "last", s.mark)
	if err := e.Streams.Of(s.user).Forget(ctx, Stream); err != nil {
		return err
	}
	e.metrics.repaired.Inc()
	s.mark, s.recent = keyspace.ID{}, nil
	return nil
}

// raiseTimes raises the times of the events after s.mark to the time of s.mark. Otherwise their
// ids would be lower than the last id of the stream, and Redis would refuse them.
func (e *Emitter) raiseTimes(ctx context.Context, s *stream) error {
	return e.repairAll(ctx, s.user, func(ctx context.Context, tx *user.Tx) (more bool, err error) {
		return tx.Events.Raise(ctx, int64(s.mark.Seq), int64(s.mark.Milli))
	})
}

// trimTable drops old events from the database.
func (e *Emitter) trimTable(ctx context.Context, s *stream) error {
	var emitted int64
	if s.isKnown {
		emitted = int64(s.mark.Seq)
	}
	err := e.repairAll(ctx, s.user, func(ctx context.Context, tx *user.Tx) (more bool, err error) {
		return tx.Events.DropEmitted(ctx, emitted, e.Keep)
	})
	if err != nil {
		return err
	}
	return e.repairAll(ctx, s.user, func(ctx context.Context, tx *user.Tx) (more bool, err error) {
		return tx.Events.DropWaiting(ctx, user.EventLimits{Waiting: maxWaiting, Bytes: maxBytes})
	})
}
