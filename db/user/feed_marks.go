package user

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Unread is the number of entries of a feed that the user has not read (see Mark).
type Unread struct {
	Count int  `json:"count"`
	More  bool `json:"more,omitempty"` // there are more than Count, or there may be more
}

// mostUnread is the highest count of unread entries.
const mostUnread = 1000

// Mark says how far the user has read a feed. The user has read the entries up to the Place that
// had arrived by the Moment.
type Mark struct {
	Place
	Moment time.Time
}

// markRow is a Mark as a row.
type markRow struct {
	At     time.Time
	ID     uuid.UUID
	Moment time.Time
}

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

// FindMark returns how far the user has read a feed, nil when that is not stored.
func (t Feed) FindMark(ctx context.Context, feed string) (*Mark, error) {
	m, err := one[markRow](ctx, t.tx, "read feed mark", `SELECT published AS at, id, marked_at AS moment FROM feed_marks WHERE feed = $1`, feed)
	if m == nil {
		return nil, err
	}
	return &Mark{Place{At: m.At, ID: m.ID}, m.Moment}, err
}

// MoveMark stores that the user has by now read a feed up to a place. The mark never goes back.
// MoveMark reports whether the mark moved to another place.
func (t Feed) MoveMark(ctx context.Context, feed string, p Place) (bool, error) {
	before, err := t.FindMark(ctx, feed)
	if err != nil {
		return false, err
	}
	n, err := t.execBeside(ctx, "move feed mark", `INSERT INTO feed_marks AS m (feed, published, id) VALUES ($1, $2, $3)
		ON CONFLICT (feed) DO UPDATE SET published = excluded.published, id = excluded.id, marked_at = now() WHERE (m.published, m.id) <= (excluded.published, excluded.id)`,
		feed, p.At, p.ID)
	return n == 1 && (before == nil || before.ID != p.ID || !before.At.Equal(p.At)), err
}

// FindPlace returns the place of an entry in the main feed, nil when there is no such entry.
func (t Feed) FindPlace(ctx context.Context, id uuid.UUID) (*Place, error) {
	p, err := one[entryPlace](ctx, t.tx, "read feed entry", `SELECT published AS at, id FROM feed WHERE id = $1`, id)
	return p.place(), err
}

// FindActivityPlace returns the place of a received activity, nil when there is none. If
// requests is true, the activity must be one of the requests, otherwise it must not be one.
func (t Feed) FindActivityPlace(ctx context.Context, id uuid.UUID, requests bool) (*Place, error) {
	p, err := one[entryPlace](ctx, t.tx, "read activity", `SELECT a.published AS at, a.id FROM activities a WHERE a.id = $1 AND a.direction = 'inbound' AND $2 = `+isRequest, id, requests)
	return p.place(), err
}

// UnreadQuery asks for the entries of a feed that the user has not read.
type UnreadQuery struct {
	Feed Pages    // MainFeed, NotificationsFeed or RequestsFeed
	User vocab.ID // the user's actor
	Mark *Mark    // nil: the user has not marked the feed
}

// mark returns the mark. If there is none, it returns one before all entries.
func (q UnreadQuery) mark() Mark {
	if q.Mark == nil {
		return Mark{Moment: first.At}
	}
	return *q.Mark
}

// UnreadEntry is an unread entry without its documents.
type UnreadEntry struct {
	FeedEntry
	Authors json.RawMessage // attributedTo of the object; nil if there is none
}

// unreadRows selects up to n unread entries after a place, the newest first. In the main feed it
// leaves out the user's own entries, and among the requests those of actors that the user blocks.
// In the main feed and the notifications it looks at no more than two sets of rows: the newest
// MaxScanned rows after the mark, and the MaxScanned rows that arrived last since the mark's
// moment.
func (t Feed) unreadRows(q UnreadQuery, after *Place, n int) feedRows {
	p, mark := after.orFirst(), q.mark()
	args := named{"at": p.At, "id": p.ID, "n": n, "mark_at": mark.At, "mark_id": mark.ID, "moment": mark.Moment}
	switch q.Feed {
	case NotificationsFeed:
		args["scanned"] = MaxScanned
		return feedRows{"read notifications", activityItem, itemTables, ` WHERE (a.published, a.id) < (@at, @id) AND a.id IN ` + unreadIDs(receivedActivities) + `
			AND ` + notifications + ` ORDER BY a.published DESC, a.id DESC LIMIT @n`, t.notificationArgs(q.User, args)}
	case RequestsFeed:
		return feedRows{"read unread requests", activityItem, itemTables, ` WHERE (a.published, a.id) < (@at, @id)
			AND ((a.published, a.id) > (@mark_at, @mark_id) OR a.created_at > @moment) AND ` + shownRequests + ` ORDER BY a.published DESC, a.id DESC LIMIT @n`, args}
	}
	args["user"], args["scanned"] = string(q.User), MaxScanned
	return feedRows{"read unread entries", feedEntry, feedTables, ` WHERE (f.published, f.id) < (@at, @id)
		AND f.id IN ` + unreadIDs(`FROM feed WHERE actor_uri <> @user`) + ` ORDER BY f.published DESC, f.id DESC LIMIT @n`, args}
}

const receivedActivities = `FROM activities WHERE direction = 'inbound'`

// unreadIDs selects the ids of rows that are after a mark, and of rows that arrived after the
// mark's @moment. Each of these two parts has an index, and reads at most @scanned rows. The mark's
// place is @mark_at and @mark_id.
func unreadIDs(rows string) string {
	return `(SELECT id FROM (SELECT id ` + rows + ` AND (published, id) > (@mark_at, @mark_id) ORDER BY published DESC, id DESC LIMIT @scanned) AS later
		UNION ALL SELECT id FROM (SELECT id, published ` + rows + ` AND created_at > @moment ORDER BY created_at DESC LIMIT @scanned) AS arrived
			WHERE (published, id) <= (@mark_at, @mark_id))`
}

// ListUnread returns up to 1,000 unread entries, the newest first. The result "more" reports
// whether there may be other unread entries.
func (t Feed) ListUnread(ctx context.Context, q UnreadQuery) (entries []UnreadEntry, more bool, err error) {
	r := t.unreadRows(q, nil, mostUnread+1)
	entries, err = collect[UnreadEntry](ctx, t.tx, "list unread entries", `SELECT `+r.entry+`, o.raw -> 'attributedTo' AS authors`+r.tables+r.which, r.args)
	if err != nil || len(entries) > mostUnread {
		return entries[:min(len(entries), mostUnread)], true, err
	}
	if q.Feed == NotificationsFeed {
		mark := q.mark()
		looked, err := t.count(ctx, `SELECT greatest((SELECT count(*) FROM (SELECT `+receivedActivities+` AND (published, id) > (@mark_at, @mark_id) LIMIT @scanned) AS later),
			(SELECT count(*) FROM (SELECT `+receivedActivities+` AND created_at > @moment LIMIT @scanned) AS arrived))`,
			named{"mark_at": mark.At, "mark_id": mark.ID, "moment": mark.Moment, "scanned": MaxScanned})
		return entries, looked == MaxScanned, err
	}
	return entries, false, nil
}

// ListUnreadItems returns up to n of the unread entries after a place, the newest first, with
// their documents. It stops after the entry with which the documents exceed MaxFeed bytes.
func (t Feed) ListUnreadItems(ctx context.Context, q UnreadQuery, after *Place, n int) ([]FeedItem, error) {
	return t.items(ctx, t.unreadRows(q, after, n))
}
