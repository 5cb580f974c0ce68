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

// Reasons of a reset.
const (
	trimmed = "trimmed" // the events after the cursor are no longer all stored
	ahead   = "ahead"   // the cursor is not of this stream: the server was set back to an older state
)

// findStart returns the cursor after which a socket begins: its client's own, or the last event.
// A reason says why no events can be read from the client's cursor on; then the cursor is the
// last event.
func (h *Hub) findStart(ctx context.Context, u vocab.Username, after *keyspace.ID) (cursor keyspace.ID, reason string, err error) {
	first, last, known := h.streamBounds(ctx, u)
	switch {
	case after == nil && known:
		return last, "", nil
	case after != nil && known && first.Seq <= after.Seq+1 && !last.Less(*after):
		return *after, "", nil
	}
	var bounds user.EventBounds
	seq := int64(0)
	if after != nil {
		seq = int64(after.Seq)
	}
	err = h.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		bounds, err = tx.Events.FindBounds(ctx, seq)
		return err
	})
	if err != nil {
		return cursor, "", fmt.Errorf("read where the events of %s begin and end: %w", u, err)
	}
	end := keyspace.ID{Milli: uint64(bounds.LastMilli), Seq: uint64(bounds.Last)}
	switch {
	case after == nil:
		return end, "", nil
	case after.Seq > end.Seq || bounds.Milli != nil && uint64(*bounds.Milli) < after.Milli:
		return end, ahead, nil
	case bounds.First > seq+1:
		return end, trimmed, nil
	}
	return *after, "", nil
}

// streamBounds returns the first and the last id of the user's stream. They are not known if
// Redis does not answer, or has lost the stream.
func (h *Hub) streamBounds(ctx context.Context, u vocab.Username) (first, last keyspace.ID, known bool) {
	space := h.Streams.Of(u)
	oldest, err := space.Range(ctx, stream, keyspace.ID{}, 1)
	if err != nil || len(oldest) == 0 {
		return first, last, false
	}
	last, err = space.LastID(ctx, stream)
	return oldest[0].ID, last, err == nil
}

// readStream returns the next entries of the user's stream. leads is false if the stream may
// lack some.
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

// readRows returns the next events of the user's database after a number. all reports whether no
// others follow. It leaves out an event whose count still grows.
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
