package db

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// FeedEntry is an activity's place in the user's feed.
type FeedEntry struct {
	ID        uuid.UUID
	Activity  vocab.ID
	Actor     vocab.ID
	Published time.Time
}

// FeedItem is an entry with its activity and, when it is stored, its object.
type FeedItem struct {
	FeedEntry
	Type      string
	Raw       json.RawMessage // without its object when that is stored
	ObjectURI vocab.ID        // empty when the object is not stored
	Object    json.RawMessage // nil when it is not stored
	Readable  json.RawMessage // what vocab.Readable makes of the object; nil when it is yet to be made

	Revision, ObjectRevision string // of the stored activity and object: see FeedLine
}

// FeedLine is an entry without its documents.
type FeedLine struct {
	FeedEntry
	ObjectURI vocab.ID // empty when the object is not stored
	Author    string   // the claimed author of an announced object, unchecked; empty when it takes parsing to know

	// They differ whenever the stored activity or object does: the transaction that wrote its row.
	Revision, ObjectRevision string
}

// Bytes is how large its documents are.
func (i FeedItem) Bytes() int { return len(i.Raw) + len(i.Object) + len(i.Readable) }

// MaxFeed bounds what is read of a feed at once, in bytes of its documents.
const MaxFeed = 4 << 20

const (
	documents   = `a.type, CASE WHEN o.uri IS NULL THEN a.raw ELSE a.raw - 'object' END, coalesce(o.uri, ''), o.raw, o.readable, ` + revisions
	noDocuments = `coalesce(o.uri, ''), CASE WHEN a.type = '` + vocab.Announce + `' AND jsonb_typeof(o.raw -> 'attributedTo') = 'string'
		THEN o.raw ->> 'attributedTo' ELSE '' END, ` + revisions
	revisions = `a.xmin::text, coalesce(o.xmin::text, '')`
)

// feedRows are rows of a feed: the columns of their FeedEntry, and which rows of f, a and o.
type feedRows struct {
	attempt, entry, rows string
	args                 []any
}

const (
	feedEntry    = `f.id, f.activity_uri, f.actor_uri, f.published`
	feedTables   = ` FROM feed f JOIN activities a ON a.uri = f.activity_uri AND a.actor_uri = f.actor_uri LEFT JOIN objects o ON o.uri = a.object_uri`
	activityItem = `a.id, a.uri, a.actor_uri, a.published`
	itemTables   = ` FROM activities a LEFT JOIN objects o ON o.uri = a.object_uri`
)

// AddFeedEntry gives an activity its place in the feed. One that has it keeps it.
func (t *Tx) AddFeedEntry(ctx context.Context, e FeedEntry) error {
	t.unsent.feed = append(t.unsent.feed, e)
	t.touched.touch(MainFeed)
	return t.added(ctx, 0)
}

// items reads rows with their documents; when they are large, those up to the first that goes
// beyond MaxFeed.
func (t *Tx) items(ctx context.Context, r feedRows) (out []FeedItem, err error) {
	err = t.query(ctx, r.attempt, upTo(MaxFeed, FeedItem.Bytes, &out), `SELECT `+r.entry+`, `+documents+r.rows, r.args...)
	return out, err
}

// lines reads rows without their documents.
func (t *Tx) lines(ctx context.Context, r feedRows) ([]FeedLine, error) {
	return collect[FeedLine](ctx, t, r.attempt, `SELECT `+r.entry+`, `+noDocuments+r.rows, r.args...)
}

func mainRows(after *Place, n int) feedRows {
	p := after.orFirst()
	return feedRows{"read feed", feedEntry, feedTables + ` WHERE (f.published, f.id) < ($1, $2) ORDER BY f.published DESC, f.id DESC LIMIT $3`,
		[]any{p.At, p.ID, n}}
}

// Feed returns up to n entries after a place, the newest first; when they are large, those up to
// the first that goes beyond MaxFeed.
func (t *Tx) Feed(ctx context.Context, after *Place, n int) ([]FeedItem, error) {
	return t.items(ctx, mainRows(after, n))
}

// FeedLines is Feed without documents.
func (t *Tx) FeedLines(ctx context.Context, after *Place, n int) ([]FeedLine, error) {
	return t.lines(ctx, mainRows(after, n))
}

// FeedByID returns one entry, nil when there is none.
func (t *Tx) FeedByID(ctx context.Context, id uuid.UUID) (*FeedItem, error) {
	return one[FeedItem](ctx, t, "read feed entry", `SELECT `+feedEntry+`, `+documents+feedTables+` WHERE f.id = $1`, id)
}

// ActivityItem returns one activity by the id of its row, as entries of feeds are shown, nil when
// there is none, or when it waits among the requests and those are not asked for.
func (t *Tx) ActivityItem(ctx context.Context, id uuid.UUID, requests bool) (*FeedItem, error) {
	return one[FeedItem](ctx, t, "read activity", `SELECT `+activityItem+`, `+documents+itemTables+` WHERE a.id = $1 AND ($2 OR NOT `+isRequest+`)`, id, requests)
}

// notifications are the activities that tell the user something: what others do to the user or to
// something of the user's, and every answer to a Follow; but nothing about an object that was
// deleted, or of actors that the user blocks, and no quote twice. $4 is the user's actor, $5 what
// the ids of the user's objects begin with, $6 the types whose objects are in no feed, and $7 to $9
// are the types of Types.Notify, NotifyOwner and NotifyNamed.
var notifications = `a.direction = 'inbound' AND NOT EXISTS (SELECT FROM blocks b WHERE b.actor_uri = a.actor_uri AND b.direction = 'outbound')
	AND o.deleted_at IS NULL AND NOT ` + isRequest + ` AND NOT coalesce(a.raw -> 'object' -> 'type' ?| $6, false) AND NOT coalesce(o.raw -> 'type' ?| $6, false)
	AND (a.type = ANY($7)
	OR a.type = ANY($8) AND (a.object_uri IS NULL OR a.object_uri = $4 OR starts_with(a.object_uri, $5))
	OR a.type = ANY($9) AND (` + namedIn("a.raw", "$4") + ` OR ` + quotesOwn + `)) AND NOT ` + toldBefore

func (t *Tx) notificationRows(user vocab.ID, after *Place, n int) feedRows {
	p := after.orFirst()
	return feedRows{"read notifications", activityItem, itemTables + `
		WHERE (a.published, a.id) < ($1, $2) AND ` + notifications + ` ORDER BY a.published DESC, a.id DESC LIMIT $3`,
		[]any{p.At, p.ID, n, user, string(user) + "/", vocab.SealedSpellings, t.types.Notify, t.types.NotifyOwner, t.types.NotifyNamed}}
}

// Notifications returns up to n activities after a place that tell the user something, the newest
// first, and large ones as Feed does. user is the user's actor, under whose id its objects lie.
func (t *Tx) Notifications(ctx context.Context, user vocab.ID, after *Place, n int) ([]FeedItem, error) {
	return t.items(ctx, t.notificationRows(user, after, n))
}

// NotificationLines is Notifications without documents.
func (t *Tx) NotificationLines(ctx context.Context, user vocab.ID, after *Place, n int) ([]FeedLine, error) {
	return t.lines(ctx, t.notificationRows(user, after, n))
}
