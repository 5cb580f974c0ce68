package socket

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// replay returns frames of the events after the cursor. It reads them from the stream, or from
// the database if the stream lacks some. If there are no such events, replay makes the socket
// live, and returns no frames.
func (s *Socket) replay(ctx context.Context) ([]Frame, error) {
	for {
		s.hub.metrics.reads.Inc()
		var reset []Frame
		events, leads := s.hub.readStream(ctx, s.request.User, s.cursor)
		if leads && len(events) == 0 && s.join() {
			return nil, nil
		}
		if len(events) == 0 {
			var err error
			if events, reset, err = s.readDatabase(ctx); err != nil {
				return nil, err
			}
			if len(events) == 0 && s.join() {
				return nil, nil
			}
		}
		if frames := append(reset, s.passOver(events)...); len(frames) > 0 {
			return frames, nil
		}
	}
}

// readDatabase returns the next events of the database. If earlier events were trimmed, the
// result "reset" has the frame that tells the client about the loss.
func (s *Socket) readDatabase(ctx context.Context) (events []event.Event, reset []Frame, err error) {
	known := s.tail.knownEnd()
	found, err := s.hub.readRows(ctx, s.request.User, s.cursor, s.seen)
	switch {
	case err != nil:
		return nil, nil, err
	case found.isSetBack:
		s.End(SetBack)
		return nil, nil, SetBack
	}
	for _, row := range found.events {
		events = append(events, eventOfRow(row))
	}
	switch {
	case len(events) > 0 && found.oldest > s.seen+1:
		first := events[0].ID
		reset = []Frame{resetFrame(trimmed, keyspace.ID{Milli: first.Milli, Seq: first.Seq - 1})}
	case len(events) == 0 && found.isAll:
		s.seen = max(s.seen, min(known, found.given)) // a number up to known that has no row belongs to no event
	}
	return events, reset, nil
}

// passOver moves the cursor past events, and returns frames for those that the client may see.
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

// readStream returns the next events of the user's stream. If the result "leads" is false, the
// stream may lack some of these events, and readStream returns none.
func (h *Hub) readStream(ctx context.Context, u vocab.Username, after keyspace.ID) (events []event.Event, leads bool) {
	space := h.Streams.Of(u)
	oldest, err := space.Range(ctx, stream, keyspace.ID{}, 1)
	if err != nil || len(oldest) == 0 || oldest[0].ID.Seq > after.Seq+1 {
		return nil, false
	}
	entries, err := space.Range(ctx, stream, after, batch)
	if err != nil {
		return nil, false
	}
	for _, e := range entries {
		if e.ID.Seq <= after.Seq { // the emitter raised the time of e, or began a new stream
			return nil, false
		}
		events = append(events, event.Of(e))
	}
	return events, true
}

// rows are the next events of a user's database.
type rows struct {
	events []user.Event
	isAll  bool  // no others follow
	given  int64 // the highest number that the database has given out
	oldest int64 // the lowest number of an event
	// isSetBack says that the database was set back to an earlier state: it lacks an event
	// that a client was given, or has another event with the same number.
	isSetBack bool
}

// readRows returns the next events of the user's database, that is, the events with numbers
// higher than the parameter seen. The parameter edge is the id of the last event that was given
// to a client. readRows leaves out an event of withheldType whose count still grows.
func (h *Hub) readRows(ctx context.Context, u vocab.Username, edge keyspace.ID, seen int64) (found rows, err error) {
	err = h.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		events, err := tx.Events.List(ctx, int64(edge.Seq)-1, batch+1)
		if err != nil {
			return err
		}
		w, err := tx.Events.FindWindow(ctx)
		found = rows{isAll: len(events) <= batch, given: w.Given, oldest: w.Oldest, isSetBack: w.Given < seen}
		for _, e := range events {
			switch {
			case e.Seq == int64(edge.Seq):
				found.isSetBack = e.Milli != int64(edge.Milli)
			case e.Seq > seen && (w.Withheld == nil || e.Seq != *w.Withheld):
				found.events = append(found.events, e)
			}
		}
		return err
	})
	if err != nil {
		return rows{}, fmt.Errorf("read events of %s: %w", u, err)
	}
	return found, nil
}
