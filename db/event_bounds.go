package db

import "context"

// EventBounds says which events of a user are kept.
type EventBounds struct {
	First     int64  // the lowest number
	Last      int64  // the highest, with the milliseconds of its id
	LastMilli int64  //
	Milli     *int64 // of the event with the number that was asked about; nil when it is not kept
}

// EventBounds returns which events are kept, and when the one with a number was. An event whose
// count still grows is none of them.
func (t *Tx) EventBounds(ctx context.Context, seq int64) (EventBounds, error) {
	b, err := one[EventBounds](ctx, t, "read the bounds of events", `WITH kept AS (
			SELECT seq, ms FROM event_outbox WHERE seq IS DISTINCT FROM (SELECT withheld FROM event_window)
		), last AS (SELECT seq, ms FROM kept ORDER BY seq DESC LIMIT 1)
		SELECT coalesce((SELECT seq FROM kept ORDER BY seq LIMIT 1), 0) AS first, coalesce((SELECT seq FROM last), 0) AS last,
			coalesce((SELECT ms FROM last), 0) AS last_milli, (SELECT ms FROM event_outbox WHERE seq = $1) AS milli`, seq)
	if err != nil {
		return EventBounds{}, err
	}
	return *b, nil
}
