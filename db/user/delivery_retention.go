package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// shrinkBatch limits how many deliveries one transaction of shrinkDeliveries removes. It is
// larger than pruneBatch because each transaction rewrites the row of the job. This row is long
// if the job has many recipients.
const shrinkBatch = 5000

// DeliveryRetention says how long deliveries and their outcomes are stored.
type DeliveryRetention struct {
	Now       time.Time
	Delivered time.Duration // after this time a delivery that succeeded is reduced to its recipients
	Jobs      time.Duration // after this time a job is removed with its deliveries, unless one of them is open
	Parked    time.Duration // after this time a parked delivery is given up
	Lasting   time.Duration // applies instead of Parked to activities that take something back
	// Types are the types of the activities that take something back.
	Types []string
	// Failed makes the event that tells the user that a delivery is given up.
	Failed func(d Delivery, why string, now time.Time) Event
}

// lapsed is the error of a parked delivery that is given up.
const lapsed = "the host stayed away for too long"

// lapseDeliveries gives up deliveries that were parked for too long.
func lapseDeliveries(ctx context.Context, t *tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
	r := p.Deliveries
	type row struct {
		ID        int64
		Activity  vocab.ID
		Type      string
		Inbox     vocab.ID
		Forwarded bool
		Body      []byte
	}
	rows, err := collect[row](ctx, t, "give up deliveries", `
		WITH old AS (
			SELECT d.id FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE d.status = 'parked' AND d.id > @after
				AND d.created_at <= CASE WHEN j.type = ANY(@types) THEN @lasting::timestamptz ELSE @parked::timestamptz END ORDER BY d.id LIMIT @n FOR UPDATE OF d SKIP LOCKED
		), gone AS (
			UPDATE deliveries d SET status = 'failed', last_error = @why, updated_at = @now FROM old WHERE d.id = old.id RETURNING d.id, d.job_id, d.inbox, d.forwarded
		)
		SELECT gone.id, j.activity_uri AS activity, j.type, gone.inbox, gone.forwarded, CASE WHEN j.type = ANY(@answers) THEN j.body END AS body FROM gone JOIN delivery_jobs j ON j.id = gone.job_id ORDER BY gone.id`,
		named{"after": at.delivery, "answers": t.types.Answer, "types": r.Types, "lasting": r.Now.Add(-r.Lasting), "parked": r.Now.Add(-r.Parked), "n": pruneBatch, "why": lapsed, "now": r.Now})
	if err != nil {
		return did, nil, err
	}
	for _, d := range rows {
		gone := Delivery{ID: d.ID, Activity: d.Activity, Type: d.Type, Inbox: d.Inbox, Forwarded: d.Forwarded, Body: d.Body}
		if !t.all.Deliveries.IsUsersOwn(gone) {
			continue
		}
		if err := t.all.Events.Add(ctx, r.Failed(gone, lapsed, r.Now)); err != nil {
			return did, nil, err
		}
	}
	if len(rows) == pruneBatch {
		next = &reached{delivery: rows[len(rows)-1].ID}
	}
	return Pruned{Lapsed: len(rows)}, next, nil
}

// shrinkDeliveries removes deliveries that succeeded long ago, and stores their recipients in
// their jobs.
func shrinkDeliveries(ctx context.Context, t *tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
	var last int64
	err = t.row(ctx, "shrink deliveries", `
		WITH old AS (
			SELECT id FROM deliveries WHERE status = 'delivered' AND updated_at <= $1 AND id > $2 ORDER BY id LIMIT $3 FOR UPDATE
		), gone AS (
			DELETE FROM deliveries d USING old WHERE d.id = old.id RETURNING d.id, d.job_id, d.inbox, d.host, d.targets
		), kept AS (
			UPDATE delivery_jobs j SET reached = j.reached || g.list FROM (
				SELECT job_id, jsonb_agg(jsonb_build_object('inbox', inbox, 'host', host, 'targets', targets) ORDER BY id) AS list FROM gone GROUP BY job_id) g
			WHERE j.id = g.job_id
		)
		SELECT count(*), coalesce(max(id), 0) FROM gone`, []any{p.Deliveries.Now.Add(-p.Deliveries.Delivered), at.delivery, shrinkBatch}, &did.Deliveries, &last)
	if did.Deliveries == shrinkBatch {
		next = &reached{delivery: last}
	}
	return did, next, err
}

// forgetJobs removes old jobs without open deliveries, and the deliveries of these jobs.
func forgetJobs(ctx context.Context, t *tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
	var gone []uuid.UUID
	err = t.query(ctx, "forget delivery jobs", column(&gone), `
		WITH old AS (
			SELECT j.id FROM delivery_jobs j WHERE j.created_at <= $1 AND j.id > $2
				AND NOT EXISTS (SELECT FROM deliveries d WHERE d.job_id = j.id AND d.status IN ('pending', 'parked')) ORDER BY j.id LIMIT $3 FOR UPDATE SKIP LOCKED
		), gone AS (DELETE FROM delivery_jobs j USING old WHERE j.id = old.id RETURNING j.id)
		SELECT id FROM gone ORDER BY id`, p.Deliveries.Now.Add(-p.Deliveries.Jobs), at.job, pruneBatch)
	if len(gone) == pruneBatch {
		next = &reached{job: gone[len(gone)-1]}
	}
	return Pruned{Jobs: len(gone)}, next, err
}
