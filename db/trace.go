package db

import (
	"context"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// maxTraced bounds what a Trace holds of each kind.
const maxTraced = 50

// Trace is what one user's database knows of an id, of an activity or an object.
type Trace struct {
	Activities []TracedActivity // with this id, then those about it, the newest first
	Object     *TracedObject
	SeenAt     *time.Time // the id was taken for an activity, or is undone
	DeletedAt  *time.Time // it is remembered as deleted
	Poison     *TracedPoison
	Jobs       []TracedJob
	Follows    []vocab.ID // actors of the server that issued the id that the user follows, or asked to
	Blocks     []vocab.ID // and those that the user blocks
}

// TracedActivity is a stored activity.
type TracedActivity struct {
	URI       vocab.ID
	Type      string
	Direction string
	Actor     vocab.ID
	StoredAt  time.Time
	InFeed    bool
	Names     bool // the id of the user, or of something of the user's, is in it
}

// TracedObject is a stored object.
type TracedObject struct {
	Author    vocab.ID // empty when it is not one
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
	Deliveries []DeliveryReport // those that are not delivered first
}

// Trace returns what is known of an id to the user whose actor is me.
func (t *Tx) Trace(ctx context.Context, id, me vocab.ID) (r Trace, err error) {
	r.Activities, err = collect[TracedActivity](ctx, t, "trace activity", `SELECT a.uri, a.type, a.direction, a.actor_uri, a.created_at, f.id IS NOT NULL, `+
		strings.ReplaceAll(involves("a.raw"), "$1", "$2")+`
		FROM activities a LEFT JOIN feed f ON f.activity_uri = a.uri AND f.actor_uri = a.actor_uri WHERE a.uri = $1 OR a.object_uri = $1 ORDER BY a.uri = $1 DESC, a.id DESC LIMIT $3`, id, me, maxTraced)
	if err != nil {
		return r, err
	}
	if r.Object, err = one[TracedObject](ctx, t, "trace object", `SELECT coalesce(CASE jsonb_typeof(raw -> 'attributedTo') WHEN 'string' THEN raw ->> 'attributedTo' END, ''), created_at, deleted_at
		FROM objects WHERE uri = $1`, id); err != nil {
		return r, err
	}
	if r.Poison, err = one[TracedPoison](ctx, t, "trace poison", `SELECT created_at, reason FROM poison WHERE uri = $1`, id); err != nil {
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

// traceActors returns those of the rows' actors who are on the server that issued the id.
func (t *Tx) traceActors(ctx context.Context, id vocab.ID, rows string) ([]vocab.ID, error) {
	type row struct{ Actor vocab.ID }
	from, to := within(id)
	found, err := collect[row](ctx, t, "list actors", `SELECT actor_uri FROM `+rows+` AND actor_uri >= $1 AND actor_uri < $2 ORDER BY actor_uri LIMIT $3`, from, to, maxTraced)
	actors := make([]vocab.ID, len(found))
	for n, f := range found {
		actors[n] = f.Actor
	}
	return actors, err
}

func (t *Tx) traceJobs(ctx context.Context, id vocab.ID) ([]TracedJob, error) {
	now := time.Now()
	found, err := t.DeliveryJobs(ctx, DeliveryFilter{Activity: id}, "", nil, maxTraced, now)
	if err != nil {
		return nil, err
	}
	jobs := make([]TracedJob, len(found))
	for i, j := range found {
		jobs[i].DeliveryJob = j
		if jobs[i].Deliveries, err = t.OpenFirst(ctx, j.ID, maxTraced, now); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// within returns the bounds of all ids that the server issued which issued this one.
func within(id vocab.ID) (from, to string) {
	origin := id.Origin()
	return origin + "/", origin + "0" // what comes after the slash
}
