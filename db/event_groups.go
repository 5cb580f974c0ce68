package db

import "context"

// GroupMark is up to which number a consumer group of the user's stream has acknowledged.
type GroupMark struct {
	Name         string
	Acknowledged int64
}

// GroupMarks returns the marks of the groups that have acknowledged something.
func (t *Tx) GroupMarks(ctx context.Context) ([]GroupMark, error) {
	return collect[GroupMark](ctx, t, "read marks of groups", `SELECT name, acknowledged FROM event_groups`)
}

// RaiseGroupMark notes that a group has acknowledged up to a number. A mark never falls, and never
// passes the highest number that was given out.
func (t *Tx) RaiseGroupMark(ctx context.Context, m GroupMark) error {
	_, err := t.execBeside(ctx, "raise the mark of a group", `INSERT INTO event_groups AS g (name, acknowledged)
		SELECT $1, least($2, CASE WHEN is_called THEN last_value ELSE 0 END) FROM event_outbox_seq_seq
		ON CONFLICT (name) DO UPDATE SET acknowledged = excluded.acknowledged, updated_at = now() WHERE g.acknowledged < excluded.acknowledged`, m.Name, m.Acknowledged)
	return err
}

// EventsEdge returns the sequence number and the milliseconds of an id that sorts behind every
// event up to a number, and before every later one: nil when there are no events.
func (t *Tx) EventsEdge(ctx context.Context, number int64) (*Edge, error) {
	return one[Edge](ctx, t, "find the edge of events", `(SELECT seq - 1 AS seq, ms FROM event_outbox WHERE seq > $1 ORDER BY event_outbox.seq LIMIT 1)
		UNION ALL (SELECT seq, ms FROM event_outbox WHERE seq <= $1 ORDER BY seq DESC LIMIT 1) ORDER BY seq DESC LIMIT 1`, number)
}

// Edge is a place between two events.
type Edge struct{ Seq, Milli int64 }
