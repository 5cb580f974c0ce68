package user

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// EventWindow describes which of a user's events exist.
type EventWindow struct {
	Given      int64      // the highest number that was ever assigned
	Oldest     int64      // the lowest number of an event other than Withheld; above Given when there is none
	Withheld   *int64     // the number of the event that still counts withheld events (see Events.Withhold); nil: there is none
	WithheldAt *time.Time // when the event Withheld was made
}

// FindWindow returns the window of the user's events.
func (t Events) FindWindow(ctx context.Context) (EventWindow, error) {
	w, err := one[EventWindow](ctx, t.tx, "read the window of events", `SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END AS given,
			coalesce((SELECT min(o.seq) FROM event_outbox o WHERE o.seq IS DISTINCT FROM w.withheld), s.last_value + 1) AS oldest, e.seq AS withheld, e.created_at AS withheld_at
		FROM event_outbox_seq_seq s LEFT JOIN event_window w ON true LEFT JOIN event_outbox e ON e.seq = w.withheld`)
	if err != nil {
		return EventWindow{}, err
	}
	return *w, nil
}

// eventBatch limits the events that a transaction changes under the lock for which each commit with
// events waits.
const eventBatch = 10_000

// Raise raises the milliseconds in the ids of the events after a number. They become at least the
// parameter milli, which is the time that the stream has reached. Raise changes at most eventBatch
// events, the newest first, so that ids never fall. It reports in the result more whether there may
// be more to raise.
func (t Events) Raise(ctx context.Context, after, milli int64) (more bool, err error) {
	if err := t.lockEvents(ctx); err != nil {
		return false, err
	}
	n, err := t.execBeside(ctx, "raise the ids of events", `UPDATE event_outbox SET ms = $2
		WHERE seq IN (SELECT seq FROM event_outbox WHERE seq > $1 AND ms < $2 ORDER BY seq DESC LIMIT $3)`, after, milli, eventBatch)
	return n == eventBatch, err
}

// CloseWithheld looks for an event that has counted withheld events for an hour. It replaces that
// event by a copy that has a new number, and in which the count does not change any more.
func (t Events) CloseWithheld(ctx context.Context, now time.Time) error {
	if err := t.lockEvents(ctx); err != nil {
		return err
	}
	e, err := one[Event](ctx, t.tx, "close withheld events", `DELETE FROM event_outbox WHERE seq = (SELECT withheld FROM event_window) AND created_at <= $1
		RETURNING `+eventColumns, now.Add(-WithheldFor))
	if err != nil || e == nil {
		return err
	}
	if _, err := t.execBeside(ctx, "close withheld events", `UPDATE event_window SET withheld = NULL, kept = kept - (up_to >= $1)::integer`, e.Seq); err != nil {
		return err
	}
	return t.Add(ctx, *e)
}

// lockEvents makes every other transaction that adds events wait until the caller's transaction
// ends.
func (t *tx) lockEvents(ctx context.Context) error {
	_, err := t.execBeside(ctx, "lock events", `SELECT pg_advisory_xact_lock($1)`, eventLock)
	return err
}

// EventLimits limit how many events a user's database stores, emitted or not.
type EventLimits struct {
	Waiting int   // how many events may be stored
	Bytes   int64 // how many bytes all events may have
}

// DropEmitted drops emitted events, the oldest first, until at most keep events are stored, emitted
// or not. If necessary, it drops all emitted events. The parameter emitted is the number up to
// which events were emitted. DropEmitted drops at most eventBatch events, and reports in the result
// more whether there may be more to drop.
//
// The numbers of events have gaps, a huge one after a restore, so numbers do not tell how many
// events there are. DropEmitted stores the count of events. The next call adds the number of new
// events to this count.
func (t Events) DropEmitted(ctx context.Context, emitted int64, keep int) (more bool, err error) {
	if err := t.lockEvents(ctx); err != nil {
		return false, err
	}
	var dropped int64
	err = t.row(ctx, "drop old events", `WITH total AS (
			SELECT coalesce((SELECT kept FROM event_window), 0) + count(*) AS n FROM event_outbox WHERE seq > coalesce((SELECT up_to FROM event_window), 0)
		), gone AS (
			DELETE FROM event_outbox WHERE (SELECT n FROM total) > $1 AND seq <= greatest($2, (SELECT emitted FROM event_window))
				AND seq <= (SELECT seq FROM event_outbox ORDER BY seq OFFSET least(greatest((SELECT n FROM total) - $1, 1), $3) - 1 LIMIT 1)
				AND seq IS DISTINCT FROM (SELECT withheld FROM event_window) RETURNING seq
		)
		INSERT INTO event_window (up_to, kept, emitted) SELECT coalesce((SELECT max(seq) FROM event_outbox), 0), n - (SELECT count(*) FROM gone), $2 FROM total
		ON CONFLICT (one) DO UPDATE SET up_to = excluded.up_to, kept = excluded.kept, emitted = greatest(event_window.emitted, excluded.emitted)
		RETURNING (SELECT count(*) FROM gone)`, []any{int64(keep), emitted, int64(eventBatch)}, &dropped)
	return dropped >= eventBatch-1, err // the event that counts withheld events may be among the oldest
}

// DropWaiting is called once DropEmitted has nothing more to drop. It drops the oldest events,
// emitted or not, until l.Waiting are left. If the events exceed only l.Bytes, it drops the oldest
// tenth. An event of the type stream.gap then stands for the dropped events that were not emitted,
// and says how many they are. DropWaiting drops at most eventBatch events. The result more
// is true if it has dropped some, and more than l.Waiting are left.
func (t Events) DropWaiting(ctx context.Context, l EventLimits) (more bool, err error) {
	excess, err := t.countExcess(ctx, l)
	if err != nil || excess <= 0 {
		return false, err
	}
	if err := t.lockEvents(ctx); err != nil {
		return false, err
	}
	dropped, err := t.execBeside(ctx, "drop events that wait", `WITH cut AS (
			SELECT seq FROM event_outbox ORDER BY seq OFFSET $1 LIMIT 1
		), gone AS (
			DELETE FROM event_outbox e USING cut WHERE e.seq < cut.seq RETURNING e.seq, CASE e.type WHEN 'stream.gap' THEN (e.payload ->> 'missing')::bigint ELSE 1 END AS missing
		), gap AS (
			UPDATE event_outbox e SET type = 'stream.gap', payload = jsonb_build_object('eventId', $2::text, 'trust', 'self', 'missing',
				(SELECT coalesce(sum(missing), 0) FROM gone WHERE seq > w.emitted) + CASE e.type WHEN 'stream.gap' THEN (e.payload ->> 'missing')::bigint ELSE 1 END)
			FROM cut, event_window w WHERE e.seq = cut.seq AND e.seq > w.emitted
		)
		UPDATE event_window SET kept = kept - (SELECT count(*) FROM gone) WHERE EXISTS (SELECT FROM gone)`, min(excess, eventBatch), uuid.Must(uuid.NewV7()).String())
	return excess > eventBatch && dropped > 0, err
}

// countExcess returns the number of events that DropWaiting has to drop. It takes no lock, because
// it may read all events.
func (t Events) countExcess(ctx context.Context, l EventLimits) (int64, error) {
	w, err := one[struct{ Kept, Size int64 }](ctx, t.tx, "count events", `SELECT kept, pg_table_size('event_outbox') AS size FROM event_window`)
	if err != nil || w == nil {
		return 0, err
	}
	excess := w.Kept - int64(l.Waiting)
	if excess > 0 || w.Size <= l.Bytes { // the size of the table may include rows that were dropped
		return excess, nil
	}
	var size int64
	err = t.row(ctx, "measure events", `SELECT coalesce(sum(pg_column_size(e.*)), 0)::bigint FROM event_outbox e`, nil, &size)
	if err != nil || size <= l.Bytes {
		return 0, err
	}
	return min(w.Kept/10, eventBatch), nil
}
