package user

import (
	"context"
	"time"
)

// superseded holds for a delivery d of job j that was given up and must not be retried, because a
// later activity of one of the types @take_back took its content back. A retry would make
// recipients show that content again.
const superseded = `d.status = 'failed' AND EXISTS (SELECT FROM delivery_jobs k WHERE k.object_uri = j.object_uri AND k.type = ANY(@take_back)
	AND k.created_at >= j.created_at AND k.id <> j.id)`

// DeliveryChoice selects the deliveries to retry now, or to drop. It never selects deliveries
// that a process has leased, nor failed ones whose content was taken back (see superseded).
type DeliveryChoice struct {
	DeliveryFilter
	States []string // any of DeliveryPending, DeliveryParked and DeliveryFailed
	Except []string // hosts whose deliveries are left as they are
	But    []int64  // deliveries that are left as they are
}

// of adds the conditions of c on deliveries d of jobs j.
func (c DeliveryChoice) of(t *terms, types Types, now time.Time) {
	t.and(`d.status = ANY(@states)`, "states", c.States)
	t.and(`NOT (`+leased+`)`, "now", now)
	c.ofJob(t)
	if len(c.Hosts) > 0 {
		t.and(`d.host = ANY(@hosts)`, "hosts", c.Hosts)
	}
	if len(c.Except) > 0 {
		t.and(`d.host <> ALL(@except)`, "except", c.Except)
	}
	if !c.Since.IsZero() {
		t.and(`d.created_at >= @since`, "since", c.Since)
	}
	if len(c.But) > 0 {
		t.and(`d.id <> ALL(@but)`, "but", c.But)
	}
	t.and(`NOT (`+superseded+`)`, "take_back", types.TakeBack)
}

// ChosenHost says how many of the chosen deliveries go to a host.
type ChosenHost struct {
	Host   string
	Count  int
	Parked int
	Error  string // the last error of one of them
}

// CountChosen counts the chosen deliveries by host.
func (t Deliveries) CountChosen(ctx context.Context, c DeliveryChoice, now time.Time) ([]ChosenHost, error) {
	q := terms{args: named{}}
	c.of(&q, t.types, now)
	return collect[ChosenHost](ctx, t.tx, "count deliveries", `SELECT d.host, count(*), count(*) FILTER (WHERE d.status = 'parked') AS parked, coalesce(max(d.last_error), '') AS error
		FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE `+q.String()+` GROUP BY d.host ORDER BY d.host`, q.args)
}

// Requeued is a delivery that is due again.
type Requeued struct {
	ID   int64
	Host string
}

// Requeue makes up to n of the chosen deliveries due now, the oldest first. It considers only
// deliveries whose id is greater than after, and passes over those that another transaction has
// locked. If reset is true, the deliveries count as created now and have no attempts. Requeue
// locks the jobs of these deliveries, so that no job is pruned meanwhile.
func (t Deliveries) Requeue(ctx context.Context, c DeliveryChoice, reset bool, after int64, n int, now time.Time) ([]Requeued, error) {
	q := terms{args: named{"reset": reset, "after": after, "n": n}}
	c.of(&q, t.types, now)
	return collect[Requeued](ctx, t.tx, "retry deliveries", `
		WITH due AS (
			SELECT d.id FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE d.id > @after AND `+q.String()+` ORDER BY d.id LIMIT @n
			FOR UPDATE OF d SKIP LOCKED FOR KEY SHARE OF j SKIP LOCKED
		), done AS (
			UPDATE deliveries d SET `+requeue+`, next_at = @now, lease_owner = NULL FROM due WHERE d.id = due.id RETURNING d.id, d.host
		)
		SELECT id, host FROM done ORDER BY id`, q.args)
}

// requeue makes a delivery pending at the time @now. If @reset is true, the delivery also counts as
// created at that time, and has no attempts.
const requeue = `status = 'pending', attempts = CASE WHEN @reset THEN 0 ELSE attempts END, created_at = CASE WHEN @reset THEN @now ELSE d.created_at END, updated_at = @now, ` + leaseLost

// ClaimChosen leases up to n of the chosen deliveries to owner for the given time, the oldest
// first. It passes over deliveries that must wait for an earlier delivery (see unblocked). If
// reset is true, the leased deliveries count as created now and have no attempts.
func (t Deliveries) ClaimChosen(ctx context.Context, c DeliveryChoice, reset bool, owner string, lease time.Duration, n int, now time.Time) ([]Delivery, error) {
	q := terms{args: named{"reset": reset, "owner": owner, "until": now.Add(lease), "n": n}}
	c.of(&q, t.types, now)
	return collect[Delivery](ctx, t.tx, "claim deliveries", `
		WITH due AS (
			SELECT d.id FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE `+q.String()+` AND `+unblocked+` ORDER BY d.id LIMIT @n
			FOR UPDATE OF d SKIP LOCKED FOR KEY SHARE OF j SKIP LOCKED
		), taken AS (
			UPDATE deliveries d SET `+requeue+`, next_at = @until, lease_owner = @owner FROM due WHERE d.id = due.id
			RETURNING d.id, d.job_id, d.inbox, d.host, d.targets, d.followers_digest, d.attempts, d.created_at, d.forwarded
		)
		SELECT `+takenColumns+` FROM taken t JOIN delivery_jobs j ON j.id = t.job_id ORDER BY t.id`, q.args)
}

// Drop skips up to n of the chosen deliveries, the oldest first, and stores the reason in them.
// It considers only deliveries whose id is greater than after. It returns the id of the last
// skipped delivery, and how many it skipped.
func (t Deliveries) Drop(ctx context.Context, c DeliveryChoice, why string, after int64, n int, now time.Time) (last int64, dropped int, err error) {
	q := terms{args: named{"why": why, "after": after, "n": n}}
	c.of(&q, t.types, now)
	err = t.row(ctx, "drop deliveries", `
		WITH due AS (
			SELECT d.id FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE d.id > @after AND `+q.String()+` ORDER BY d.id LIMIT @n FOR UPDATE OF d SKIP LOCKED
		), done AS (
			UPDATE deliveries d SET status = 'skipped', last_error = @why, `+leaseLost+`, lease_owner = NULL, updated_at = @now FROM due WHERE d.id = due.id RETURNING d.id
		)
		SELECT coalesce(max(id), 0), count(*) FROM done`, []any{q.args}, &last, &dropped)
	return last, dropped, err
}

// IsOwing reports whether any delivery of a job that was created before a time is still open.
func (t Deliveries) IsOwing(ctx context.Context, then time.Time) (owes bool, err error) {
	err = t.row(ctx, "look for old deliveries", `SELECT EXISTS (SELECT FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id
		WHERE d.status IN ('pending', 'parked') AND j.created_at < $1)`, []any{then}, &owes)
	return owes, err
}

// SkipOpen skips all open deliveries, and stores the reason in them. An attempt that is being
// made now is completed, but not repeated.
func (t Deliveries) SkipOpen(ctx context.Context, why string, now time.Time) error {
	_, err := t.execBeside(ctx, "skip deliveries", `UPDATE deliveries d SET status = 'skipped', last_error = $1, updated_at = $2, `+leaseLost+`, lease_owner = NULL
		WHERE d.status IN ('pending', 'parked')`, why, now)
	return err
}

// CountLeased counts the deliveries on which a process has a lease now.
func (t Deliveries) CountLeased(ctx context.Context, f DeliveryFilter, now time.Time) (n int, err error) {
	q := terms{args: named{}}
	q.and(leased, "now", now)
	f.ofJob(&q)
	if len(f.Hosts) > 0 {
		q.and(`d.host = ANY(@hosts)`, "hosts", f.Hosts)
	}
	err = t.row(ctx, "count leases", `SELECT count(*) FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE `+q.String(), []any{q.args}, &n)
	return n, err
}
