package user

import "context"

// GroupMark is the number up to which a consumer group of the user's stream has acknowledged
// events.
type GroupMark struct {
	Name         string
	Acknowledged int64
}

// ListGroupMarks returns the marks of all groups that have acknowledged events.
func (t Events) ListGroupMarks(ctx context.Context) ([]GroupMark, error) {
	return collect[GroupMark](ctx, t.tx, "read marks of groups", `SELECT name, acknowledged FROM event_groups`)
}

// RaiseGroupMark stores that a group has acknowledged events up to a number. A mark never
// falls, and never exceeds the highest number that was assigned.
func (t Events) RaiseGroupMark(ctx context.Context, m GroupMark) error {
	_, err := t.execBeside(ctx, "raise the mark of a group", `INSERT INTO event_groups AS g (name, acknowledged)
		SELECT $1, least($2, CASE WHEN is_called THEN last_value ELSE 0 END) FROM event_outbox_seq_seq
		ON CONFLICT (name) DO UPDATE SET acknowledged = excluded.acknowledged, updated_at = now() WHERE g.acknowledged < excluded.acknowledged`, m.Name, m.Acknowledged)
	return err
}

// FindEdge returns the sequence number and the milliseconds of a stream id. No event with a
// number up to the parameter "number" has a higher id, and every later event has a higher id. The
// result is nil if there are no events.
func (t Events) FindEdge(ctx context.Context, number int64) (*Edge, error) {
	return one[Edge](ctx, t.tx, "find the edge of events", `(SELECT seq - 1 AS seq, ms AS milli FROM event_outbox WHERE seq > $1 ORDER BY event_outbox.seq LIMIT 1)
		UNION ALL (SELECT seq, ms FROM event_outbox WHERE seq <= $1 ORDER BY seq DESC LIMIT 1) ORDER BY seq DESC LIMIT 1`, number)
}

// Edge is a place between two events.
type Edge struct{ Seq, Milli int64 }
