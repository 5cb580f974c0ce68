package user

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Request is a private message of a stranger. The activity and the object of a request are
// stored, and only the feed of requests shows them. A request that its sender takes back is shown
// nowhere, but it counts for as long as the others, so that nobody can send requests without end.
type Request struct {
	Activity vocab.ID
	Actor    vocab.ID
	Host     string // the sender's registrable domain
}

// RequestCounts has the numbers of requests that wait.
type RequestCounts struct {
	Accepted bool // the user has accepted requests of the actor
	OfActor  int
	OfHost   int
	All      int
}

// keptRequest limits how long a request waits for the user.
const keptRequest = 30 * 24 * time.Hour

// Count counts the requests of an actor, those of all actors of a domain, and all requests.
func (t Requests) Count(ctx context.Context, actor vocab.ID, host string) (RequestCounts, error) {
	n, err := one[RequestCounts](ctx, t.tx, "count requests", `SELECT EXISTS (SELECT FROM correspondents WHERE actor_uri = $1) AS accepted,
		count(*) FILTER (WHERE actor_uri = $1) AS of_actor, count(*) FILTER (WHERE host = $2) AS of_host, count(*) AS all FROM requests`, actor, host)
	if err != nil {
		return RequestCounts{}, err
	}
	return *n, nil
}

// Add makes a stored activity a request.
func (t Requests) Add(ctx context.Context, r Request, now time.Time) error {
	t.touched.touch(RequestsFeed|NotificationsFeed, r.Activity)
	_, err := t.execBeside(ctx, "store request", `INSERT INTO requests (activity_uri, actor_uri, host, requested_at) VALUES (@activity, @actor, @host, @now)
		ON CONFLICT DO NOTHING`, named{"activity": r.Activity, "actor": r.Actor, "host": r.Host, "now": now})
	return err
}

// FindSenders returns the senders of the requests whose activity or object has this uri. There
// are several if actors of one server use the same uri.
func (t Requests) FindSenders(ctx context.Context, uri vocab.ID) (senders []vocab.ID, err error) {
	err = t.query(ctx, "read request", column(&senders), `SELECT actor_uri FROM requests WHERE activity_uri = $1
		UNION SELECT q.actor_uri FROM requests q JOIN activities a ON a.uri = q.activity_uri AND a.actor_uri = q.actor_uri WHERE a.object_uri = $1
		ORDER BY actor_uri`, uri)
	return senders, err
}

// IsAbout reports whether an object waits among the requests.
func (t Requests) IsAbout(ctx context.Context, object vocab.ID) (waits bool, err error) {
	err = t.row(ctx, "look for request", `SELECT EXISTS (SELECT FROM objects o WHERE o.uri = $1 AND EXISTS (SELECT `+itsRequests+`))`, []any{string(object)}, &waits)
	return waits, err
}

// AreAllOf reports whether the database holds an actor only by requests (see Actors.IsHeld). It
// must have requests of the actor, or objects of the actor that wait among the requests. It must
// have nothing else by which the actor is held.
func (t Requests) AreAllOf(ctx context.Context, actor vocab.ID) (only bool, err error) {
	its := `FROM objects o WHERE ` + schema.WrittenBy("o.raw", "$1::text")
	err = t.row(ctx, "look for what is no request", `SELECT (EXISTS (SELECT FROM requests WHERE actor_uri = $1) OR EXISTS (SELECT `+its+` AND EXISTS (SELECT `+itsRequests+`)))
		AND NOT EXISTS (SELECT FROM relationships WHERE actor_uri = $1)
		AND NOT EXISTS (SELECT FROM activities a WHERE a.actor_uri = $1 AND NOT `+isRequest+`)
		AND NOT EXISTS (SELECT `+its+` AND NOT EXISTS (SELECT `+itsRequests+`))`, []any{string(actor)}, &only)
	return only, err
}

// Accept moves an actor's requests to the feed, except those about deleted objects, and lets later
// private messages of the actor in without a request. It returns the objects of the requests, the
// oldest first.
func (t Requests) Accept(ctx context.Context, actor vocab.ID, now time.Time) (about []vocab.ID, err error) {
	if _, err := t.execBeside(ctx, "remember correspondent", `INSERT INTO correspondents VALUES ($1, $2) ON CONFLICT DO NOTHING`, actor, now); err != nil {
		return nil, err
	}
	t.touched.touchActor(feeds, actor)
	err = t.query(ctx, "accept requests", column(&about), `WITH accepted AS (DELETE FROM requests WHERE actor_uri = $1 RETURNING activity_uri, actor_uri),
		placed AS (INSERT INTO feed (id, activity_uri, actor_uri, published) SELECT gen_random_uuid(), a.uri, a.actor_uri, a.published
			FROM accepted JOIN activities a ON a.uri = accepted.activity_uri AND a.actor_uri = accepted.actor_uri WHERE `+isLiving+` ON CONFLICT DO NOTHING)
		SELECT a.object_uri FROM accepted JOIN activities a ON a.uri = accepted.activity_uri AND a.actor_uri = accepted.actor_uri
			WHERE a.object_uri IS NOT NULL AND `+isLiving+` ORDER BY a.published, a.id`, actor)
	return about, err
}

// removed is the end of a query. The query's beginning, WITH gone, removes requests. The end
// removes the activities and objects of these requests, and returns how many requests and objects
// were removed.
var removed = `, acts AS (DELETE FROM activities a USING gone WHERE a.uri = gone.activity_uri AND a.actor_uri = gone.actor_uri RETURNING a.object_uri, a.actor_uri),
	words AS (DELETE FROM objects o USING acts WHERE o.uri = acts.object_uri AND ` + schema.WrittenBy("o.raw", "acts.actor_uri") + ` RETURNING o.uri)
	SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM words)`

// Remove removes an actor's requests, with their activities and objects.
func (t Requests) Remove(ctx context.Context, actor vocab.ID) error {
	_, err := t.exec(ctx, "remove requests", `WITH gone AS (DELETE FROM requests WHERE actor_uri = $1 RETURNING activity_uri, actor_uri)`+removed, actor)
	return err
}

// pruneRequests removes one batch of the requests that waited too long, with their activities
// and objects.
func pruneRequests(ctx context.Context, t *tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	var requests, objects int
	err = t.row(ctx, "prune requests", `WITH gone AS (DELETE FROM requests WHERE (activity_uri, actor_uri) IN
		(SELECT activity_uri, actor_uri FROM requests WHERE requested_at < $1 ORDER BY requested_at LIMIT $2) RETURNING activity_uri, actor_uri)`+removed,
		[]any{p.Deliveries.Now.Add(-keptRequest), pruneBatch}, &requests, &objects)
	if requests == pruneBatch && !p.DryRun {
		next = &reached{}
	}
	return Pruned{Objects: objects}, next, err
}

// isRequest holds for an activity a that waits among the requests.
const isRequest = `EXISTS (SELECT FROM requests q WHERE q.activity_uri = a.uri AND q.actor_uri = a.actor_uri)`

// isLiving holds for an activity a whose object was not deleted.
const isLiving = `NOT EXISTS (SELECT FROM objects d WHERE d.uri = a.object_uri AND d.deleted_at IS NOT NULL)`

// shownRequests holds for a request a if the user does not block its actor, and its object was
// not deleted.
const shownRequests = isRequest + ` AND ` + isLiving + ` AND NOT EXISTS (SELECT FROM blocks b WHERE b.actor_uri = a.actor_uri AND b.direction = 'outbound')`

func requestRows(after *Place, n int) feedRows {
	p := after.orFirst()
	return feedRows{"read requests", activityItem, itemTables, `
		WHERE (a.published, a.id) < (@at, @id) AND ` + shownRequests + `
		ORDER BY a.published DESC, a.id DESC LIMIT @n`, named{"at": p.At, "id": p.ID, "n": n}}
}

// List returns up to n requests after a place, the newest first, except those of actors that the
// user blocks. It stops after the request with which the documents exceed MaxFeed bytes.
func (t Requests) List(ctx context.Context, after *Place, n int) ([]FeedItem, error) {
	return t.all.Feed.items(ctx, requestRows(after, n))
}

// ListLines is List without documents.
func (t Requests) ListLines(ctx context.Context, after *Place, n int) ([]FeedLine, error) {
	return t.all.Feed.lines(ctx, requestRows(after, n))
}
