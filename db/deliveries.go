package db

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Job is the fan-out of one activity, with the bytes as they are sent.
type Job struct {
	ID       uuid.UUID
	Activity vocab.ID
	Object   vocab.ID // empty when it is about nothing that has an id
	Type     string
	Body     []byte
}

// Inbox is one inbox that a job must reach.
type Inbox struct {
	URL     vocab.ID
	Host    string // empty for a local inbox
	Targets []vocab.ID
}

// Delivery is one activity owed to one inbox.
type Delivery struct {
	ID       int64
	Job      uuid.UUID
	Activity vocab.ID
	Object   vocab.ID
	Type     string
	Body     []byte
	Inbox    vocab.ID
	Host     string
	Targets  []vocab.ID
	Attempts int // made before
	Created  time.Time
}

// The states of a delivery.
const (
	DeliveryPending   = "pending"
	DeliveryDelivered = "delivered"
	DeliveryFailed    = "failed"  // given up
	DeliverySkipped   = "skipped" // will not be tried: the inbox is gone, or its host blocked
)

// Enqueue owes a job to inboxes from due on. In the transaction that stores the activity it makes sure that what is
// saved will be sent.
func (t *Tx) Enqueue(ctx context.Context, j Job, inboxes []Inbox, due time.Time) error {
	if len(inboxes) == 0 {
		return nil
	}
	if _, err := t.exec(ctx, "store delivery job", `INSERT INTO delivery_jobs (id, activity_uri, object_uri, type, body, created_at)
		VALUES ($1, $2, nullif($3, ''), $4, $5, $6)`, j.ID, j.Activity, j.Object, j.Type, j.Body, due); err != nil {
		return err
	}
	urls, hosts, targets := make([]string, len(inboxes)), make([]string, len(inboxes)), make([]string, len(inboxes))
	for n, i := range inboxes {
		list, err := json.Marshal(texts(i.Targets)) // arrays of different lengths make no array
		if err != nil {
			return fmt.Errorf("store deliveries: %w", err)
		}
		urls[n], hosts[n], targets[n] = string(i.URL), i.Host, string(list)
	}
	_, err := t.exec(ctx, "store deliveries", `INSERT INTO deliveries (job_id, inbox, host, targets, next_at, created_at)
		SELECT $1, inbox, host, ARRAY(SELECT jsonb_array_elements_text(targets::jsonb)), $5, $5
		FROM unnest($2::text[], $3::text[], $4::text[]) AS i (inbox, host, targets) ON CONFLICT (job_id, inbox) DO NOTHING`,
		j.ID, urls, hosts, targets, due)
	return err
}

// unblocked holds for a delivery d of job j unless an earlier one about the same object to the same inbox is still
// pending: a Delete never overtakes its Create. The planner's statistics are from before a backlog grew; to look through
// the few that it takes to be pending would compare every one with every other. OFFSET keeps it from joining, and NOT IN
// from the index of what is pending.
const unblocked = `NOT EXISTS (SELECT FROM delivery_jobs k WHERE k.object_uri = j.object_uri AND EXISTS (SELECT FROM deliveries e
	WHERE e.job_id = k.id AND e.inbox = d.inbox AND e.status NOT IN ('delivered', 'failed', 'skipped') AND e.id < d.id OFFSET 0) OFFSET 0)`

// ClaimDeliveries leases up to n due deliveries to owner until the lease ends, the oldest first: with local only those to
// inboxes of this server, and none to the hosts in except. One waits while an earlier one about the same object to the same
// inbox is pending.
func (t *Tx) ClaimDeliveries(ctx context.Context, owner string, now time.Time, lease time.Duration, n int, local bool, except ...string) ([]Delivery, error) {
	return collect[Delivery](ctx, t, "claim deliveries", `
		WITH due AS (
			SELECT d.id FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id
			WHERE d.status = 'pending' AND d.next_at <= $2 AND d.host <> ALL(coalesce($5, '{}'::text[])) AND (d.host = '' OR NOT $6) AND `+unblocked+`
			ORDER BY d.next_at, d.id LIMIT $4 FOR UPDATE OF d SKIP LOCKED
		), taken AS (
			UPDATE deliveries d SET next_at = $3, lease_owner = $1, updated_at = $2 FROM due WHERE d.id = due.id
			RETURNING d.id, d.job_id, d.inbox, d.host, d.targets, d.attempts, d.created_at
		)
		SELECT t.id, t.job_id, j.activity_uri, coalesce(j.object_uri, ''), j.type, j.body, t.inbox, t.host, t.targets, t.attempts, t.created_at
		FROM taken t JOIN delivery_jobs j ON j.id = t.job_id ORDER BY t.id`, owner, now, now.Add(lease), n, except, local)
}

// Outcome is how an attempt at a delivery ended.
type Outcome struct {
	Delivery          int64
	Status            string    // Pending: try again at NextAt
	NextAt            time.Time // when Status is pending
	Spent             bool      // an attempt was made
	HTTPStatus        int       // 0: no answer
	Answer            []byte    // the first 1 KiB of it, for failures
	Error             string
	Latency           time.Duration
	BytesOut, BytesIn int64
}

// FinishDelivery records an outcome, unless the lease was lost to another process meanwhile, and tells whether it did.
func (t *Tx) FinishDelivery(ctx context.Context, owner string, o Outcome, now time.Time) (bool, error) {
	spent := 0
	if o.Spent {
		spent = 1
	}
	n, err := t.exec(ctx, "finish delivery", `UPDATE deliveries SET status = $3, next_at = CASE WHEN $3 = 'pending' THEN $4 ELSE next_at END,
			attempts = attempts + $5, last_status = nullif($6, 0), last_answer = $7, last_error = nullif($8, ''), latency_ms = $9,
			bytes_out = bytes_out + $10, bytes_in = bytes_in + $11, lease_owner = NULL, updated_at = $12
		WHERE id = $1 AND lease_owner = $2 AND status = 'pending'`,
		o.Delivery, owner, o.Status, o.NextAt, spent, o.HTTPStatus, o.Answer, o.Error, o.Latency.Milliseconds(), o.BytesOut, o.BytesIn, now)
	return n == 1, err
}

// ReleaseDeliveries gives back what owner holds, due at once; with an empty owner what anybody holds, which is right
// only while no other process delivers.
func (t *Tx) ReleaseDeliveries(ctx context.Context, owner string, now time.Time) error {
	_, err := t.exec(ctx, "release deliveries", `UPDATE deliveries SET lease_owner = NULL, next_at = $2
		WHERE status = 'pending' AND lease_owner IS NOT NULL AND ($1 = '' OR lease_owner = $1)`, owner, now)
	return err
}

// NextDeliveryAfter returns when the first pending delivery is due of those that are not due yet, nil when there is none.
// A lease is over then at the latest.
func (t *Tx) NextDeliveryAfter(ctx context.Context, now time.Time) (*time.Time, error) {
	var at *time.Time
	err := t.row(ctx, "read next delivery", `SELECT min(next_at) FROM deliveries WHERE status = 'pending' AND next_at > $1`, []any{now}, &at)
	return at, err
}

// DueHosts returns which of the hosts something is due for.
func (t *Tx) DueHosts(ctx context.Context, now time.Time, hosts []string) ([]string, error) {
	type row struct{ Host string }
	rows, err := collect[row](ctx, t, "list hosts", `SELECT DISTINCT host FROM deliveries
		WHERE status = 'pending' AND next_at <= $1 AND host = ANY($2) ORDER BY host`, now, hosts)
	due := make([]string, len(rows))
	for i, r := range rows {
		due[i] = r.Host
	}
	return due, err
}

// SentTo returns the inboxes to which posts or updates of an object went or go, or, given its own id, a reaction or Block.
func (t *Tx) SentTo(ctx context.Context, object vocab.ID) ([]Inbox, error) {
	return collect[Inbox](ctx, t, "list inboxes of object", `SELECT d.inbox, d.host, d.targets FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id
		WHERE j.object_uri = $1 AND j.type IN ('Create', 'Update', 'Like', 'Dislike', 'Announce', 'Block') ORDER BY d.id`, object)
}

// JobCounts is the state of a job, computed from its rows.
type JobCounts struct {
	Total     int `json:"total"`
	Pending   int `json:"pending"`
	Delivered int `json:"delivered"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
}
