package user

import (
	"context"
	"encoding/json"
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

// UnreadQuery asks for the entries of a feed that the user has not read.
type UnreadQuery struct {
	Feed Pages    // MainFeed, NotificationsFeed or RequestsFeed
	User vocab.ID // the user's actor
	Mark *Place   // nil: the user has not marked the feed
}

// UnreadEntry is an unread entry without its documents.
type UnreadEntry struct {
	FeedEntry
	Authors json.RawMessage // attributedTo of the object; nil if there is none
}

// unreadRows selects up to n unread entries after a place, the newest first. Of the main feed it
// leaves out the user's own entries, and of the requests those of actors that the user blocks. Of
// the notifications it takes those among the MaxScanned newest activities.
func (t Feed) unreadRows(q UnreadQuery, after *Place, n int) feedRows {
	p, mark := after.orFirst(), q.Mark.orOldest()
	switch q.Feed {
	case NotificationsFeed:
		r := t.notificationRows(q.User, after, n)
		r.which = ` WHERE (a.published, a.id) < ($1, $2) AND a.id IN (SELECT id FROM (` + newActivities + ` ORDER BY published DESC, id DESC LIMIT $12) AS looked)
			AND ` + notifications + ` ORDER BY a.published DESC, a.id DESC LIMIT $3`
		r.args = append(r.args, mark.At, mark.ID, MaxScanned)
		return r
	case RequestsFeed:
		return feedRows{"read unread requests", activityItem, itemTables, ` WHERE (a.published, a.id) < ($1, $2) AND (a.published, a.id) > ($3, $4)
			AND ` + shownRequests + ` ORDER BY a.published DESC, a.id DESC LIMIT $5`, []any{p.At, p.ID, mark.At, mark.ID, n}}
	}
	return feedRows{"read unread entries", feedEntry, feedTables, ` WHERE (f.published, f.id) < ($1, $2) AND (f.published, f.id) > ($3, $4)
		AND f.actor_uri <> $5 ORDER BY f.published DESC, f.id DESC LIMIT $6`, []any{p.At, p.ID, mark.At, mark.ID, string(q.User), n}}
}

// newActivities selects the received activities after the place $10, $11.
const newActivities = `SELECT id FROM activities WHERE direction = 'inbound' AND (published, id) > ($10, $11)`

// ListUnread returns the unread entries, up to 1,000 and the newest first. If more is true, there
// are others, or there may be.
func (t Feed) ListUnread(ctx context.Context, q UnreadQuery) (entries []UnreadEntry, more bool, err error) {
	r := t.unreadRows(q, nil, mostUnread+1)
	entries, err = collect[UnreadEntry](ctx, t.tx, "list unread entries", `SELECT `+r.entry+`, o.raw -> 'attributedTo'`+r.tables+r.which, r.args...)
	if err != nil || len(entries) > mostUnread {
		return entries[:min(len(entries), mostUnread)], true, err
	}
	if q.Feed == NotificationsFeed {
		mark := q.Mark.orOldest()
		looked, err := t.count(ctx, `SELECT count(*) FROM (SELECT FROM activities WHERE direction = 'inbound' AND (published, id) > ($1, $2) LIMIT $3) AS looked`, mark.At, mark.ID, MaxScanned)
		return entries, looked == MaxScanned, err
	}
	return entries, false, nil
}

// ListUnreadItems returns up to n of the unread entries after a place, with their documents. It
// stops by size as List does.
func (t Feed) ListUnreadItems(ctx context.Context, q UnreadQuery, after *Place, n int) ([]FeedItem, error) {
	return t.items(ctx, t.unreadRows(q, after, n))
}
