package user

import (
	"context"
	"encoding/json"
	"maps"
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

// FeedItem is an entry with its activity, and with its object if the object is stored.
type FeedItem struct {
	FeedEntry
	Type      string
	Raw       json.RawMessage // without the object if the object is stored
	ObjectURI vocab.ID        // empty when the object is not stored
	Object    json.RawMessage // nil when the object is not stored
	Readable  json.RawMessage // the result of vocab.Readable for the object; nil: not made yet

	Revision, ObjectRevision string // see FeedLine

	// The forms that KeepForms stored for these revisions and for the reader that ReadFor sets.
	// If these forms are set, the documents are not read.
	Form, ObjectForm string
}

// FeedLine is an entry without its documents.
type FeedLine struct {
	FeedEntry
	ObjectURI vocab.ID // empty when the object is not stored
	// Author is the attributedTo of an announced object, not checked to be a valid id. It is empty
	// for activities other than Announce. It is also empty if attributedTo is not one id; then the
	// caller must parse the object to find the author.
	Author string

	// A revision is the number of the transaction that wrote the row of the activity or object,
	// so it changes with every change of the row.
	Revision, ObjectRevision string
}

// Bytes returns the size of the documents and forms of i.
func (i FeedItem) Bytes() int {
	return len(i.Raw) + len(i.Object) + len(i.Readable) + len(i.Form) + len(i.ObjectForm)
}

// MaxFeed limits the bytes of documents that one query of a feed reads. The query stops after the
// row that exceeds the limit, but reads at least two rows if there are two.
const MaxFeed = 4 << 20

const (
	documents = `a.type, CASE WHEN af.form IS NOT NULL THEN NULL WHEN o.uri IS NULL THEN a.raw ELSE a.raw - 'object' END AS raw, coalesce(o.uri, '') AS object_uri,
		CASE WHEN af.form IS NULL THEN o.raw END AS object, CASE WHEN af.form IS NULL THEN o.readable END AS readable, ` + revisions + `,
		coalesce(af.form, '') AS form, CASE WHEN af.form IS NOT NULL THEN coalesce(obf.form, '') ELSE '' END AS object_form`
	noDocuments = `coalesce(o.uri, '') AS object_uri, CASE WHEN a.type = '` + vocab.Announce + `' AND jsonb_typeof(o.raw -> 'attributedTo') = 'string'
		THEN o.raw ->> 'attributedTo' ELSE '' END AS author, ` + revisions
	revisions = `a.xmin::text AS revision, coalesce(o.xmin::text, '') AS object_revision`
)

// feedRows describes a query of feed rows. The field "entry" has the columns of FeedEntry. The
// field "tables" joins activities as a and objects as o, and for the main feed also feed as f.
// The field "which" selects and sorts the rows. The field "attempt" names the query in errors.
type feedRows struct {
	attempt, entry, tables, which string
	args                          named
}

// query returns the statement that reads the rows with their documents, or with the stored
// forms for a reader.
func (r feedRows) query(reader string) (query string, args named) {
	args = maps.Clone(r.args)
	args["reader"] = reader
	return `SELECT ` + r.entry + `, ` + documents + r.tables + keptForms + r.which, args
}

const (
	feedEntry    = `f.id, f.activity_uri AS activity, f.actor_uri AS actor, f.published`
	feedTables   = ` FROM feed f JOIN activities a ON a.uri = f.activity_uri AND a.actor_uri = f.actor_uri LEFT JOIN objects o ON o.uri = a.object_uri`
	activityItem = `a.id, a.uri AS activity, a.actor_uri AS actor, a.published`
	itemTables   = ` FROM activities a LEFT JOIN objects o ON o.uri = a.object_uri`
)

// Add gives an activity an entry in the feed, unless it has one.
func (t Feed) Add(ctx context.Context, e FeedEntry) error {
	t.unsent.feed = append(t.unsent.feed, e)
	t.touched.touch(MainFeed)
	return t.countRow(ctx, 0)
}

// items reads rows with their documents. It stops after the row with which the documents exceed
// MaxFeed bytes.
func (t Feed) items(ctx context.Context, r feedRows) (out []FeedItem, err error) {
	query, args := r.query(t.reader)
	err = t.query(ctx, r.attempt, upTo(MaxFeed, FeedItem.Bytes, &out), query, args)
	return out, err
}

// item reads one row with its documents, or returns nil if there is none.
func (t Feed) item(ctx context.Context, r feedRows) (*FeedItem, error) {
	query, args := r.query(t.reader)
	return one[FeedItem](ctx, t.tx, r.attempt, query, args)
}

// lines reads rows without their documents.
func (t Feed) lines(ctx context.Context, r feedRows) ([]FeedLine, error) {
	return collect[FeedLine](ctx, t.tx, r.attempt, `SELECT `+r.entry+`, `+noDocuments+r.tables+r.which, r.args)
}

func mainRows(after *Place, n int) feedRows {
	p := after.orFirst()
	return feedRows{"read feed", feedEntry, feedTables, ` WHERE (f.published, f.id) < (@at, @id) ORDER BY f.published DESC, f.id DESC LIMIT @n`,
		named{"at": p.At, "id": p.ID, "n": n}}
}

// List returns up to n entries after a place, the newest first. It stops after the entry with
// which the documents exceed MaxFeed bytes.
func (t Feed) List(ctx context.Context, after *Place, n int) ([]FeedItem, error) {
	return t.items(ctx, mainRows(after, n))
}

// ListLines is List without documents.
func (t Feed) ListLines(ctx context.Context, after *Place, n int) ([]FeedLine, error) {
	return t.lines(ctx, mainRows(after, n))
}

// Find returns one entry, nil when there is none.
func (t Feed) Find(ctx context.Context, id uuid.UUID) (*FeedItem, error) {
	return t.item(ctx, feedRows{"read feed entry", feedEntry, feedTables, ` WHERE f.id = @id`, named{"id": id}})
}

// FindActivity returns one of the user's notifications as a feed item, by the id of its
// activity's row. The parameter user is the user's actor. If requests is true, it also returns an
// activity that Requests.List shows. It returns nil for all other activities.
func (t Feed) FindActivity(ctx context.Context, user vocab.ID, id uuid.UUID, requests bool) (*FeedItem, error) {
	return t.item(ctx, feedRows{"read activity", activityItem, itemTables, ` WHERE a.id = @id AND (@requests AND ` + shownRequests + ` OR ` + notifications + `) LIMIT 1`,
		t.notificationArgs(user, named{"id": id, "requests": requests})})
}

// notifications selects the activities that tell the user something: the acts of others towards
// the user or the user's objects, and every answer to a Follow. It leaves out activities about
// deleted objects, activities of actors that the user blocks, requests, activities whose object
// has one of the types @sealed, and the second activity of one quote. @me is the user's actor, @own
// the prefix of the ids of the user's objects, @sealed the types of objects that are in no feed.
// @notify, @notify_owner and @notify_named are the types of Types.Notify, NotifyOwner and
// NotifyNamed.
var notifications = `a.direction = 'inbound' AND NOT EXISTS (SELECT FROM blocks b WHERE b.actor_uri = a.actor_uri AND b.direction = 'outbound')
	AND o.deleted_at IS NULL AND NOT ` + isRequest + ` AND NOT coalesce(a.raw -> 'object' -> 'type' ?| @sealed, false) AND NOT coalesce(o.raw -> 'type' ?| @sealed, false)
	AND (a.type = ANY(@notify)
	OR a.type = ANY(@notify_owner) AND (a.object_uri IS NULL OR a.object_uri = @me OR starts_with(a.object_uri, @own))
	OR a.type = ANY(@notify_named) AND (` + namedIn("a.raw", "@me") + ` OR ` + quotesOwn + `)) AND NOT ` + toldBefore

func (t Feed) notificationRows(user vocab.ID, after *Place, n int) feedRows {
	p := after.orFirst()
	return feedRows{"read notifications", activityItem, itemTables, `
		WHERE (a.published, a.id) < (@at, @id) AND ` + notifications + ` ORDER BY a.published DESC, a.id DESC LIMIT @n`,
		t.notificationArgs(user, named{"at": p.At, "id": p.ID, "n": n})}
}

// notificationArgs adds the arguments of notifications to the other arguments of a statement.
func (t Feed) notificationArgs(user vocab.ID, others named) named {
	maps.Copy(others, named{"me": user, "own": string(user) + "/", "sealed": vocab.SealedSpellings,
		"notify": t.types.Notify, "notify_owner": t.types.NotifyOwner, "notify_named": t.types.NotifyNamed})
	return others
}

// ListNotifications returns up to n notifications after a place, the newest first. It stops after
// the entry with which the documents exceed MaxFeed bytes. The parameter user is the user's
// actor. The ids of the user's objects begin with the id of this actor.
func (t Feed) ListNotifications(ctx context.Context, user vocab.ID, after *Place, n int) ([]FeedItem, error) {
	return t.items(ctx, t.notificationRows(user, after, n))
}

// ListNotificationLines is ListNotifications without documents.
func (t Feed) ListNotificationLines(ctx context.Context, user vocab.ID, after *Place, n int) ([]FeedLine, error) {
	return t.lines(ctx, t.notificationRows(user, after, n))
}
