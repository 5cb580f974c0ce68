package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Unread is the number of entries of a feed after the place up to which the user has read it.
type Unread struct {
	Count int  `json:"count"`
	More  bool `json:"more,omitempty"` // there are more than Count, or there may be more
}

// mostUnread is the highest count of unread entries.
const mostUnread = 1000

// entryPlace is a Place as a row.
type entryPlace struct {
	At time.Time
	ID uuid.UUID
}

func (p *entryPlace) place() *Place {
	if p == nil {
		return nil
	}
	return &Place{At: p.At, ID: p.ID}
}

// FindMark returns the place up to which the user has read a feed, nil when none is stored.
func (t Feed) FindMark(ctx context.Context, feed string) (*Place, error) {
	p, err := one[entryPlace](ctx, t.tx, "read feed mark", `SELECT published, id FROM feed_marks WHERE feed = $1`, feed)
	return p.place(), err
}

// MoveMark stores that the user has read a feed up to a place. The mark never goes back.
// MoveMark reports whether the mark moved.
func (t Feed) MoveMark(ctx context.Context, feed string, p Place) (bool, error) {
	n, err := t.execBeside(ctx, "move feed mark", `INSERT INTO feed_marks AS m VALUES ($1, $2, $3)
		ON CONFLICT (feed) DO UPDATE SET published = excluded.published, id = excluded.id WHERE (m.published, m.id) < (excluded.published, excluded.id)`,
		feed, p.At, p.ID)
	return n == 1, err
}

// FindPlace returns the place of an entry in the main feed, nil when there is no such entry.
func (t Feed) FindPlace(ctx context.Context, id uuid.UUID) (*Place, error) {
	p, err := one[entryPlace](ctx, t.tx, "read feed entry", `SELECT published, id FROM feed WHERE id = $1`, id)
	return p.place(), err
}

// FindActivityPlace returns the place of a received activity, nil when there is none. If
// requests is true, the activity must be one of the requests, otherwise it must not be one.
func (t Feed) FindActivityPlace(ctx context.Context, id uuid.UUID, requests bool) (*Place, error) {
	p, err := one[entryPlace](ctx, t.tx, "read activity", `SELECT a.published, a.id FROM activities a WHERE a.id = $1 AND a.direction = 'inbound' AND $2 = `+isRequest, id, requests)
	return p.place(), err
}

// CountUnread counts the entries of the main feed after a mark, without the user's own. The
// parameter user is the user's actor.
func (t Feed) CountUnread(ctx context.Context, user vocab.ID, mark *Place) (Unread, error) {
	p := mark.orOldest()
	n, err := t.count(ctx, `SELECT count(*) FROM (SELECT FROM feed WHERE (published, id) > ($1, $2) AND actor_uri <> $3 LIMIT $4) AS unread`,
		p.At, p.ID, string(user), mostUnread+1)
	return capUnread(n), err
}

// CountUnreadRequests counts the requests after a mark, without those of actors that the user
// blocks.
func (t Feed) CountUnreadRequests(ctx context.Context, mark *Place) (Unread, error) {
	p := mark.orOldest()
	n, err := t.count(ctx, `SELECT count(*) FROM (SELECT FROM requests q JOIN activities a ON a.uri = q.activity_uri AND a.actor_uri = q.actor_uri
		WHERE (a.published, a.id) > ($1, $2) AND NOT EXISTS (SELECT FROM blocks b WHERE b.actor_uri = a.actor_uri AND b.direction = 'outbound') LIMIT $3) AS unread`,
		p.At, p.ID, mostUnread+1)
	return capUnread(n), err
}

// CountUnreadNotifications counts the notifications after a mark, among the MaxScanned newest
// activities. The parameter user is the user's actor.
func (t Feed) CountUnreadNotifications(ctx context.Context, user vocab.ID, mark *Place) (Unread, error) {
	r := t.notificationRows(user, mark, MaxScanned)
	p := mark.orOldest()
	r.args[0], r.args[1] = p.At, p.ID
	var found, looked int
	err := t.row(ctx, "count notifications", `SELECT count(*) FILTER (WHERE `+notifications+`), count(*) FROM (
			SELECT * FROM activities WHERE direction = 'inbound' AND (published, id) > ($1, $2) ORDER BY published DESC, id DESC LIMIT $3) AS a
		LEFT JOIN objects o ON o.uri = a.object_uri`, r.args, &found, &looked)
	u := capUnread(found)
	u.More = u.More || looked == MaxScanned
	return u, err
}

func capUnread(n int) Unread { return Unread{min(n, mostUnread), n > mostUnread} }
