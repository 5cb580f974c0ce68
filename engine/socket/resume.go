package socket

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Reasons of a reset.
const (
	trimmed = "trimmed" // the events after the cursor are no longer all stored
	// ahead says that the server has no event with the id of the cursor, because it was set back
	// to an older state.
	ahead = "ahead"
)

// start finds out where the socket begins, and returns the first frames.
func (s *Socket) start(ctx context.Context) ([]Frame, error) {
	cursor, reason, err := s.hub.findStart(ctx, s.request.User, s.request.After)
	if err != nil {
		return nil, err
	}
	s.started, s.cursor, s.seen = true, cursor, int64(cursor.Seq)
	frames := []Frame{helloFrame(cursor, s.hub.findDelivered(ctx, s.request.User))}
	if reason != "" {
		frames = append(frames, resetFrame(reason, cursor))
	}
	return append(frames, s.presentFrames(ctx)...), nil
}

// findStart returns the cursor after which a socket begins. That is the client's own cursor in the
// parameter after, or the last event if the client has none. If the events after the client's
// cursor cannot all be read, reason says why, and the socket also begins after the last event.
func (h *Hub) findStart(ctx context.Context, u vocab.Username, after *keyspace.ID) (cursor keyspace.ID, reason string, err error) {
	first, last, known := h.streamBounds(ctx, u)
	switch {
	case after == nil && known:
		return last, "", nil
	case after != nil && known && first.Seq <= after.Seq+1 && after.Seq <= last.Seq && !last.Less(*after):
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
