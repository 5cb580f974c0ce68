package db

import (
	"context"
	"time"
)

// superseded holds for a delivery d of job j that was given up and must not be made up for: what
// it says was taken back since, by one of the types ?, and who was told so would show it again.
const superseded = `d.status = 'failed' AND EXISTS (SELECT FROM delivery_jobs k WHERE k.object_uri = j.object_uri AND k.type = ANY(?)
	AND k.created_at >= j.created_at AND k.id <> j.id)`

// DeliveryChoice says which deliveries are to be tried now, or dropped. Deliveries that another
// process has leased are left to it.
type DeliveryChoice struct {
	DeliveryFilter
	States []string  // DeliveryPending, DeliveryParked and DeliveryFailed
	Except []string  // hosts whose deliveries are left as they are
	Before time.Time // only what was not touched since then; zero: everything
}

// of adds what c says of deliveries d of jobs j.
func (c DeliveryChoice) of(t *terms, types Types, now time.Time) {
	t.and(`d.status = ANY(?)`, c.States)
	t.and(`NOT (`+leased+`)`, now)
	c.ofJob(t)
	if len(c.Hosts) > 0 {
		t.and(`d.host = ANY(?)`, c.Hosts)
	}
	if len(c.Except) > 0 {
		t.and(`d.host <> ALL(?)`, c.Except)
	}
	if !c.Since.IsZero() {
		t.and(`d.created_at >= ?`, c.Since)
	}
	if !c.Before.IsZero() {
		t.and(`d.updated_at < ?`, c.Before)
	}
	t.and(`NOT (`+superseded+`)`, types.TakeBack)
}

// ChosenHost says how many of the chosen deliveries go to a host.
type ChosenHost struct {
	Host   string
	Count  int
	Parked int
	Error  string // of one of them
}

// ChosenDeliveries counts the deliveries that are chosen, by host.
func (t *Tx) ChosenDeliveries(ctx context.Context, c DeliveryChoice, now time.Time) ([]ChosenHost, error) {
	var q terms
	c.of(&q, t.types, now)
	return collect[ChosenHost](ctx, t, "count deliveries", `SELECT d.host, count(*), count(*) FILTER (WHERE d.status = 'parked'), coalesce(max(d.last_error), '')
		FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE `+q.String()+` GROUP BY d.host ORDER BY d.host`, q.args...)
}

// Requeued is a delivery that is due again.
type Requeued struct {
	ID   int64
	Host string
}

// RequeueDeliveries makes up to n of the chosen deliveries whose ids are above after due now, the
// oldest first. With reset they begin anew, as if they were owed from now on and never tried.
// Their jobs are locked: they are not forgotten meanwhile.
func (t *Tx) RequeueDeliveries(ctx context.Context, c DeliveryChoice, reset bool, after int64, n int, now time.Time) ([]Requeued, error) {
	q := terms{args: []any{now, reset, after, n}}
	c.of(&q, t.types, now)
	return collect[Requeued](ctx, t, "retry deliveries", `
		WITH due AS (
			SELECT d.id FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE d.id > $3 AND `+q.String()+` ORDER BY d.id LIMIT $4
			FOR UPDATE OF d SKIP LOCKED FOR KEY SHARE OF j SKIP LOCKED
		), done AS (
			UPDATE deliveries d SET `+requeue+`, next_at = $1, lease_owner = NULL FROM due WHERE d.id = due.id RETURNING d.id, d.host
		)
		SELECT id, host FROM done ORDER BY id`, q.args...)
}

// requeue makes a delivery pending at the time $1, and with $2 one that was never tried.
const requeue = `status = 'pending', attempts = CASE WHEN $2 THEN 0 ELSE attempts END, created_at = CASE WHEN $2 THEN $1 ELSE d.created_at END, updated_at = $1, ` + leaseLost

// ClaimChosen leases up to n of the chosen deliveries to owner until the lease ends, the oldest
// first; those are passed over that an earlier one must come before.
func (t *Tx) ClaimChosen(ctx context.Context, c DeliveryChoice, reset bool, owner string, lease time.Duration, n int, now time.Time) ([]Delivery, error) {
	q := terms{args: []any{now, reset, owner, now.Add(lease), n}}
	c.of(&q, t.types, now)
	return collect[Delivery](ctx, t, "claim deliveries", `
		WITH due AS (
			SELECT d.id FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE `+q.String()+` AND `+unblocked+` ORDER BY d.id LIMIT $5
			FOR UPDATE OF d SKIP LOCKED FOR KEY SHARE OF j SKIP LOCKED
		), taken AS (
			UPDATE deliveries d SET `+requeue+`, next_at = $4, lease_owner = $3 FROM due WHERE d.id = due.id
			RETURNING d.id, d.job_id, d.inbox, d.host, d.targets, d.followers_digest, d.attempts, d.created_at, d.forwarded
		)
		SELECT t.id, t.job_id, j.activity_uri, coalesce(j.object_uri, ''), j.type, j.body, j.signer = 'instance', t.inbox, t.host, t.targets, t.followers_digest, t.attempts, t.created_at, t.forwarded
		FROM taken t JOIN delivery_jobs j ON j.id = t.job_id ORDER BY t.id`, q.args...)
}

// DropDeliveries skips up to n of the chosen deliveries whose ids are above after, and says why in
// them. It returns the last one's id and how many there were.
func (t *Tx) DropDeliveries(ctx context.Context, c DeliveryChoice, why string, after int64, n int, now time.Time) (last int64, dropped int, err error) {
	q := terms{args: []any{now, why, after, n}}
	c.of(&q, t.types, now)
	err = t.row(ctx, "drop deliveries", `
		WITH due AS (
			SELECT d.id FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE d.id > $3 AND `+q.String()+` ORDER BY d.id LIMIT $4 FOR UPDATE OF d SKIP LOCKED
		), done AS (
			UPDATE deliveries d SET status = 'skipped', last_error = $2, `+leaseLost+`, lease_owner = NULL, updated_at = $1 FROM due WHERE d.id = due.id RETURNING d.id
		)
		SELECT coalesce(max(id), 0), count(*) FROM done`, q.args, &last, &dropped)
	return last, dropped, err
}

// OwesFromBefore reports whether an activity is owed to somebody that was stored before then.
func (t *Tx) OwesFromBefore(ctx context.Context, then time.Time) (owes bool, err error) {
	err = t.row(ctx, "look for old deliveries", `SELECT EXISTS (SELECT FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id
		WHERE d.status IN ('pending', 'parked') AND j.created_at < $1)`, []any{then}, &owes)
	return owes, err
}

// SkipOpenDeliveries skips everything that is still owed, and says why in it. A delivery that is
// being made this moment is the last one.
func (t *Tx) SkipOpenDeliveries(ctx context.Context, why string, now time.Time) error {
	_, err := t.execBeside(ctx, "skip deliveries", `UPDATE deliveries d SET status = 'skipped', last_error = $1, updated_at = $2, `+leaseLost+`, lease_owner = NULL
		WHERE d.status IN ('pending', 'parked')`, why, now)
	return err
}

// CountLeased counts the deliveries on which a process has a lease now.
func (t *Tx) CountLeased(ctx context.Context, f DeliveryFilter, now time.Time) (n int, err error) {
	var q terms
	q.and(leased, now)
	f.ofJob(&q)
	if len(f.Hosts) > 0 {
		q.and(`d.host = ANY(?)`, f.Hosts)
	}
	err = t.row(ctx, "count leases", `SELECT count(*) FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE `+q.String(), q.args, &n)
	return n, err
}
