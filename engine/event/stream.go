package event

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// batch is how many events are read, and put on a stream, at once.
	batch = 200

	// trimEvery is how many numbers go by until old events are dropped.
	trimEvery = 1000

	// maxWaiting and maxBytes bound the events that wait in a user's database.
	maxWaiting = 1_000_000
	maxBytes   = 1 << 30

	// withheldType is the event that counts others, in its place until its hour is over.
	withheldType = "events.withheld"
)

// stream is what is known of a user's stream. Its fields are under the emitter's mutex, but for
// mark and isKnown while a worker is at the stream: these are the worker's.
type stream struct {
	user     vocab.Username
	told     []db.Event // that were committed and are not emitted, in no order
	behind   bool       // there may be others: the database knows
	queued   bool
	busy     bool
	since    time.Time // when what is not emitted was told
	retryAt  time.Time // of what failed; zero: when Redis answers
	failures int
	closeAt  time.Time // when the counting of withheld events is over; zero: nothing is counted
	closing  bool      // it is
	highest  int64     // the highest number that was told
	trimmed  int64     // the one at which old events were dropped
	used     time.Time // when something was emitted

	mark    keyspace.ID // the last id of the stream
	isKnown bool        // mark was read from the stream
}

// task is what is to be done about a stream.
type task struct {
	told                   []db.Event
	behind, closing, trims bool
}

// begin takes what has to be done. The caller holds the emitter's mutex.
func (s *stream) begin() task {
	t := task{told: s.told, behind: s.behind || s.closing, closing: s.closing, trims: s.highest/trimEvery > s.trimmed/trimEvery}
	s.told, s.behind, s.closing, s.trimmed = nil, false, false, s.highest
	return t
}

// failed notes when the stream is tried again: as soon as Redis answers, or later each time where
// it is not Redis that failed. The caller holds the emitter's mutex.
func (s *stream) failed(now time.Time, away bool) {
	s.failures++
	s.retryAt = now
	if !away {
		s.retryAt = now.Add(min(time.Second<<min(s.failures-1, 6), time.Minute))
	}
}

// do does what there is to do. Old events are dropped whether or not new ones can be emitted.
func (e *Emitter) do(ctx context.Context, s *stream, t task) error {
	if t.closing {
		if err := e.Store.Write(ctx, s.user, func(ctx context.Context, tx *db.Tx) error { return tx.CloseWithheld(ctx, e.Now()) }); err != nil {
			return err
		}
	}
	err := e.emit(ctx, s, t)
	if t.trims {
		err = errors.Join(err, e.trim(ctx, s))
	}
	return err
}

// emit puts on the stream what is not on it: what was told where that follows on what is there,
// else what the database has.
func (e *Emitter) emit(ctx context.Context, s *stream, t task) error {
	slices.SortFunc(t.told, func(a, b db.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	told := slices.DeleteFunc(t.told, func(ev db.Event) bool { return s.isKnown && ev.Seq <= int64(s.mark.Seq) })
	if t.behind || !s.isKnown || !follows(s.mark, told) {
		return e.catchUp(ctx, s)
	}
	err := e.put(ctx, s, told)
	if errors.Is(err, errMoved) {
		return e.catchUp(ctx, s)
	}
	return err
}

// follows reports whether events are the next ones after mark, without a gap. A gap may be a
// number that was never given, or an event that was not told yet: the database knows which.
func follows(mark keyspace.ID, told []db.Event) bool {
	for n, ev := range told {
		if ev.Seq != int64(mark.Seq)+int64(n)+1 || ev.Milli < int64(mark.Milli) || ev.Type == withheldType {
			return false
		}
	}
	return true
}

// errMoved is that the stream has another last id than was known.
var errMoved = errors.New("the stream has another last id than was known")

// put puts events on the stream, behind mark.
func (e *Emitter) put(ctx context.Context, s *stream, events []db.Event) error {
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
	e.metrics.emitted.Add(float64(len(events)))
	e.note(s)
	return nil
}

func (e *Emitter) note(s *stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.used = e.Now()
}

// catchUp reads on from the last id of the stream until the database has no more.
func (e *Emitter) catchUp(ctx context.Context, s *stream) error {
	if !s.isKnown {
		last, err := e.Streams.Of(s.user).LastID(ctx, Stream)
		if err != nil {
			return err
		}
		s.mark, s.isKnown = last, true
	}
	for moved := 0; ; {
		events, window, err := e.read(ctx, s)
		if err != nil {
			return err
		}
		if window.Given < int64(s.mark.Seq) {
			if err := e.startAfresh(ctx, s, window.Given); err != nil {
				return err
			}
			continue
		}
		if len(events) == 0 {
			return nil
		}
		if events[0].Milli < int64(s.mark.Milli) {
			if err := e.raise(ctx, s); err != nil {
				return err
			}
			continue
		}
		if err = e.put(ctx, s, events); err == nil {
			continue
		}
		if moved++; !errors.Is(err, errMoved) || moved > 10 {
			return err
		}
	}
}

// read reads the next events that are not on the stream.
func (e *Emitter) read(ctx context.Context, s *stream) (events []db.Event, w db.EventWindow, err error) {
	events, w, err = readRows(ctx, e.Store, s.user, int64(s.mark.Seq), batch)
	if err != nil {
		return nil, w, fmt.Errorf("read events of %s: %w", s.user, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.closeAt = time.Time{}
	if w.Withheld != nil {
		s.closeAt = w.WithheldAt.Add(withheldFor)
	}
	return events, w, nil
}

// withoutOpen leaves out the event that still counts withheld ones.
func withoutOpen(events []db.Event, w db.EventWindow) []db.Event {
	return slices.DeleteFunc(events, func(ev db.Event) bool { return w.Withheld != nil && ev.Seq == *w.Withheld })
}

// startAfresh empties a stream that has events which the database never gave out, as when its
// server was set back to an earlier state without a restore: readers see that they are ahead, and
// begin anew.
func (e *Emitter) startAfresh(ctx context.Context, s *stream, given int64) error {
	e.Log.WarnContext(ctx, "stream was ahead of its database, and starts anew", "user", s.user, "stream", s.mark.Seq, "database", given)
	if err := e.Streams.Of(s.user).Forget(ctx, Stream); err != nil {
		return err
	}
	e.metrics.repaired.Inc()
	s.mark = keyspace.ID{}
	return nil
}

// raise gives the events after mark ids that the stream takes: it has seen a later time.
func (e *Emitter) raise(ctx context.Context, s *stream) error {
	return e.Store.Write(ctx, s.user, func(ctx context.Context, tx *db.Tx) error {
		return tx.RaiseEvents(ctx, int64(s.mark.Seq), int64(s.mark.Milli))
	})
}

// trim drops old events from the database.
func (e *Emitter) trim(ctx context.Context, s *stream) error {
	var emitted int64
	if s.isKnown {
		emitted = int64(s.mark.Seq)
	}
	return e.Store.Write(ctx, s.user, func(ctx context.Context, tx *db.Tx) error {
		return tx.TrimEvents(ctx, emitted, db.EventLimits{Keep: e.Keep, Waiting: maxWaiting, Bytes: maxBytes})
	})
}
