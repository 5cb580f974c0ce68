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

// findStart returns the cursor after which a socket begins. That is the client's own cursor if it
// has one, or else the last event. If there is no event with the client's cursor, the result
// "reason" is "ahead", and the socket begins after the last event. If not all events after the
// cursor are kept, "reason" is "trimmed", and the socket begins with the first one that is kept.
func (h *Hub) findStart(ctx context.Context, u vocab.Username, after *keyspace.ID) (cursor keyspace.ID, reason string, err error) {
	if after == nil {
		if last, known := h.streamEnd(ctx, u); known {
			return last, "", nil
		}
	} else if h.isOnStream(ctx, u, *after) {
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
	case after.Seq > end.Seq || bounds.Milli != nil && uint64(*bounds.Milli) != after.Milli:
		return end, ahead, nil
	case bounds.First > seq+1:
		return keyspace.ID{Milli: uint64(bounds.FirstMilli), Seq: uint64(bounds.First) - 1}, trimmed, nil
	}
	return *after, "", nil
}

// streamEnd returns the last id of the user's stream. The result "known" is false if Redis does
// not answer, or has lost the stream.
func (h *Hub) streamEnd(ctx context.Context, u vocab.Username) (last keyspace.ID, known bool) {
	last, err := h.Streams.Of(u).LastID(ctx, stream)
	return last, err == nil && last != keyspace.ID{}
}

// isOnStream reports whether the user's stream has the entry with this id. If so, the stream also
// has all later entries.
func (h *Hub) isOnStream(ctx context.Context, u vocab.Username, id keyspace.ID) bool {
	if id.Seq == 0 {
		return false
	}
	found, err := h.Streams.Of(u).Range(ctx, stream, keyspace.ID{Milli: id.Milli, Seq: id.Seq - 1}, 1)
	return err == nil && len(found) > 0 && found[0].ID == id
}
