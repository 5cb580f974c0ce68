package user

import "context"

// EventBounds says which events of a user are stored. Without events the numbers are 0.
type EventBounds struct {
	First      int64  // the lowest number of an event
	FirstMilli int64  // the milliseconds of the first event's id
	Last       int64  // the highest number
	LastMilli  int64  // the milliseconds of the last event's id
	Milli      *int64 // the milliseconds of the requested event's id; nil when it is not stored
}

// FindBounds returns the first and the last stored event, and the milliseconds of the event
// with the number seq. The event that still counts withheld events (see Withhold) is neither
// the first nor the last.
func (t Events) FindBounds(ctx context.Context, seq int64) (EventBounds, error) {
	b, err := one[EventBounds](ctx, t.tx, "read the bounds of events", `WITH kept AS (
			SELECT seq, ms FROM event_outbox WHERE seq IS DISTINCT FROM (SELECT withheld FROM event_window)
		), first AS (SELECT seq, ms FROM kept ORDER BY seq LIMIT 1), last AS (SELECT seq, ms FROM kept ORDER BY seq DESC LIMIT 1)
		SELECT coalesce((SELECT seq FROM first), 0) AS first, coalesce((SELECT ms FROM first), 0) AS first_milli,
			coalesce((SELECT seq FROM last), 0) AS last, coalesce((SELECT ms FROM last), 0) AS last_milli, (SELECT ms FROM event_outbox WHERE seq = $1) AS milli`, seq)
	if err != nil {
		return EventBounds{}, err
	}
	return *b, nil
}
