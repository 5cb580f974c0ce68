package socket

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// replay returns frames of the events after the cursor. It reads them from the stream, or from the
// database if the stream lacks some. If there are none, it makes the socket live, and returns no
// frames.
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
		s.seen = max(s.seen, known) // a number up to known that has no row belongs to no event
	}
	return events, nil
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

// readStream returns the next events of the user's stream. If leads is false, the stream may lack
// some of them, and none are returned.
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
		if e.ID.Seq > after.Seq { // an event whose time was raised since appears again, with the same number
			events = append(events, event.Of(e))
		}
	}
	return events, true
}

// readRows returns the next events of the user's database, that is, those with numbers higher
// than the parameter after. The result all reports whether no others follow. readRows leaves out
// an event of withheldType whose count still grows.
func (h *Hub) readRows(ctx context.Context, u vocab.Username, after int64) (events []user.Event, all bool, err error) {
	err = h.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		if events, err = tx.Events.List(ctx, after, batch); err != nil {
			return err
		}
		all = len(events) < batch
		w, err := tx.Events.FindWindow(ctx)
		if err == nil && w.Withheld != nil {
			events = slices.DeleteFunc(events, func(e user.Event) bool { return e.Seq == *w.Withheld })
		}
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("read events of %s: %w", u, err)
	}
	return events, all, nil
}
