package user

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// maxTraced limits how many rows of each kind a Trace has.
const maxTraced = 50

// Trace has the rows of one user's database that show what became of the id of an activity or
// object. Reactions, votes, pins, streams and requests are not among them.
type Trace struct {
	// Activities has first the activities with the id, then the activities about the id. The
	// newest come first in both parts.
	Activities []TracedActivity
	Object     *TracedObject
	SeenAt     *time.Time // when the id was claimed, by its activity or an Undo of it
	DeletedAt  *time.Time // when the id was stored as deleted
	Poison     *TracedPoison
	Jobs       []TracedJob
	Follows    []vocab.ID // actors on the id's server that the user follows or asked to follow
	Blocks     []vocab.ID // actors on the id's server that the user blocks
}

// TracedActivity is a stored activity.
type TracedActivity struct {
	URI       vocab.ID  `json:"uri"`
	Type      string    `json:"type"`
	Direction string    `json:"direction"`
	Actor     vocab.ID  `json:"actor"`
	StoredAt  time.Time `json:"stored_at"`
	InFeed    bool      `json:"in_feed"`
	Names     bool      `json:"names_user"` // it contains the id of the user or of one of the user's objects
}

// TracedObject is a stored object.
type TracedObject struct {
	Author    vocab.ID // empty unless attributedTo is one id
	StoredAt  time.Time
	DeletedAt *time.Time
}

// TracedPoison is an activity that was set aside.
type TracedPoison struct {
	At     time.Time
	Reason string
}

// TracedJob is the fan-out of an activity.
type TracedJob struct {
	DeliveryJob
	Deliveries []DeliveryReport // those first that have not succeeded
}

// Trace returns the Trace of an id. The parameter me is the user's actor.
func (t Activities) Trace(ctx context.Context, id, me vocab.ID) (r Trace, err error) {
	r.Activities, err = collect[TracedActivity](ctx, t.tx, "trace activity", `SELECT a.uri, a.type, a.direction, a.actor_uri AS actor, a.created_at AS stored_at, f.id IS NOT NULL AS in_feed, `+involves("a.raw")+` AS names
		FROM activities a LEFT JOIN feed f ON f.activity_uri = a.uri AND f.actor_uri = a.actor_uri WHERE a.uri = @id OR a.object_uri = @id ORDER BY a.uri = @id DESC, a.id DESC LIMIT @n`,
		named{"id": id, "me": me, "n": maxTraced})
	if err != nil {
		return r, err
	}
	if r.Object, err = one[TracedObject](ctx, t.tx, "trace object", `SELECT coalesce(CASE jsonb_typeof(raw -> 'attributedTo') WHEN 'string' THEN raw ->> 'attributedTo' END, '') AS author, created_at AS stored_at, deleted_at
		FROM objects WHERE uri = $1`, id); err != nil {
		return r, err
	}
	if r.Poison, err = one[TracedPoison](ctx, t.tx, "trace poison", `SELECT created_at AS at, reason FROM poison WHERE uri = $1`, id); err != nil {
		return r, err
	}
	from, to := keysOf(id)
	err = t.row(ctx, "trace id", `SELECT (SELECT min(seen_at) FROM seen WHERE digest BETWEEN $1 AND $2), (SELECT min(deleted_at) FROM tombstones WHERE digest BETWEEN $1 AND $2)`,
		[]any{from, to}, &r.SeenAt, &r.DeletedAt)
	if err != nil {
		return r, err
	}
	if r.Follows, err = t.traceActors(ctx, id, `relationships WHERE type = 'following' AND status <> 'rejected'`); err != nil {
		return r, err
	}
	if r.Blocks, err = t.traceActors(ctx, id, `blocks WHERE direction = 'outbound'`); err != nil {
		return r, err
	}
	r.Jobs, err = t.traceJobs(ctx, id)
	return r, err
}

// traceActors returns the actors that a query finds and whose server issued the id. The
// parameter rows is the SQL of the query after FROM.
func (t Activities) traceActors(ctx context.Context, id vocab.ID, rows string) (actors []vocab.ID, err error) {
	from, to := within(id)
	err = t.query(ctx, "list actors", column(&actors), `SELECT actor_uri FROM `+rows+` AND actor_uri >= $1 AND actor_uri < $2 ORDER BY actor_uri LIMIT $3`, from, to, maxTraced)
	return actors, err
}

func (t Activities) traceJobs(ctx context.Context, id vocab.ID) ([]TracedJob, error) {
	now := time.Now()
	found, err := t.all.Jobs.List(ctx, DeliveryFilter{Activity: id}, "", nil, maxTraced, now)
	if err != nil {
		return nil, err
	}
	jobs := make([]TracedJob, len(found))
	for i, j := range found {
		jobs[i].DeliveryJob = j
		if jobs[i].Deliveries, err = t.all.Jobs.ListOpenFirst(ctx, j.ID, maxTraced, now); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// within returns the bounds between which all ids of one server lie. That server issued the
// parameter id.
func within(id vocab.ID) (from, to string) {
	origin := id.Origin()
	return origin + "/", origin + "0" // 0 is the character after the slash
}
