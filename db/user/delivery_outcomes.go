package user

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Outcome is the result of an attempt at a delivery.
type Outcome struct {
	Delivery          int64
	Status            string    // the new status; DeliveryPending: try again at NextAt
	NextAt            time.Time // set when Status is DeliveryPending
	Spent             bool      // an attempt was made
	HTTPStatus        int       // 0: no answer
	Headers           string    // of the answer, at most 1 KiB: a line for each stored field
	Answer            []byte    // the first 1 KiB of the answer's body
	Location          string    // the Location header of the answer to a failed attempt
	RetryAfter        time.Duration
	RemoteID          string // the Location header of a success: the host's id of the activity
	Error             string
	Latency           time.Duration
	BytesOut, BytesIn int64
	Inbox             vocab.ID // the new inbox of its targets; empty: unchanged
}

// Finished is a delivery for which Finish has recorded an outcome.
type Finished struct {
	Delivery int64
	Waited   *time.Time // when the job was created; set only for the first success of a job
}

// Finish records outcomes, and returns the recorded ones. It ignores outcomes of deliveries
// that owner no longer leases. A delivery that would be tried again becomes skipped if its post
// was deleted or edited since (see withdrawn). Finish finds the rows by their ids, because the
// planner must not scan all pending deliveries (see unblocked).
func (t Deliveries) Finish(ctx context.Context, owner string, all []Outcome, now time.Time) (finished []Finished, err error) {
	for some := range slices.Chunk(all, finishedAtOnce) {
		f, err := t.finishFew(ctx, owner, some, now)
		if err != nil {
			return nil, err
		}
		finished = append(finished, f...)
	}
	return finished, nil
}

// finishedAtOnce limits how many outcomes one statement records. More outcomes would be slow,
// because the planner assumes that an array has ten elements, and chooses a plan that compares
// each row with each element.
const finishedAtOnce = 100

func (t Deliveries) finishFew(ctx context.Context, owner string, all []Outcome, now time.Time) ([]Finished, error) {
	all, err := t.withoutDoubles(ctx, owner, all)
	if err != nil {
		return nil, err
	}
	type column struct {
		ids, latencies, out, in            []int64
		status, errors, locations, remotes []string
		headers                            []string
		inboxes, hosts                     []string
		nexts                              []time.Time
		spent, codes, waits                []int
		answers                            [][]byte
	}
	var c column
	for _, o := range all {
		spent := 0
		if o.Spent {
			spent = 1
		}
		c.ids, c.status, c.nexts, c.spent, c.codes = append(c.ids, o.Delivery), append(c.status, o.Status), append(c.nexts, o.NextAt), append(c.spent, spent), append(c.codes, o.HTTPStatus)
		c.answers, c.errors, c.latencies = append(c.answers, o.Answer), append(c.errors, text(o.Error)), append(c.latencies, o.Latency.Milliseconds())
		c.out, c.in, c.locations = append(c.out, o.BytesOut), append(c.in, o.BytesIn), append(c.locations, text(o.Location))
		c.waits, c.remotes = append(c.waits, int(o.RetryAfter/time.Second)), append(c.remotes, text(o.RemoteID))
		c.headers = append(c.headers, text(o.Headers))
		c.inboxes, c.hosts = append(c.inboxes, string(o.Inbox)), append(c.hosts, o.Inbox.Host())
	}
	return collect[Finished](ctx, t.tx, "finish deliveries", `
		WITH o AS (
			SELECT * FROM unnest(@ids::bigint[], @statuses::text[], @nexts::timestamptz[], @spent::int[], @codes::int[], @answers::bytea[], @errors::text[], @latencies::bigint[],
				@out::bigint[], @in::bigint[], @locations::text[], @waits::int[], @remotes::text[], @inboxes::text[], @hosts::text[], @headers::text[])
				AS o (id, status, next_at, spent, code, answer, error, latency, bytes_out, bytes_in, location, wait, remote, inbox, host, headers)
		), done AS (
			UPDATE deliveries d SET status = CASE WHEN o.status = 'pending' AND `+withdrawn+` THEN 'skipped' ELSE o.status END,
				next_at = CASE o.status WHEN 'pending' THEN o.next_at ELSE d.next_at END, attempts = attempts + o.spent, tried = d.tried OR o.spent = 1,
				last_status = CASE o.spent WHEN 1 THEN nullif(o.code, 0) ELSE last_status END,
				last_answer = CASE WHEN o.spent = 0 THEN last_answer WHEN o.answer IS NOT NULL AND NOT `+withdrawn+` THEN o.answer END,
				last_headers = CASE WHEN o.spent = 0 THEN last_headers WHEN o.headers <> '' AND NOT `+withdrawn+` THEN o.headers END,
				last_error = nullif(o.error, ''), latency_ms = CASE o.spent WHEN 1 THEN o.latency ELSE latency_ms END,
				bytes_out = d.bytes_out + o.bytes_out, bytes_in = d.bytes_in + o.bytes_in, last_location = nullif(o.location, ''),
				retry_after_s = nullif(o.wait, 0), remote_id = nullif(o.remote, ''),
				inbox = CASE o.inbox WHEN '' THEN d.inbox ELSE o.inbox END, host = CASE o.inbox WHEN '' THEN d.host ELSE o.host END,
				lease_owner = NULL, updated_at = @now
			FROM o WHERE d.id = o.id AND `+isHeld+` RETURNING d.id, d.job_id, d.status
		), reached AS (
			UPDATE delivery_jobs j SET first_at = @now FROM (SELECT job_id, min(id) AS id FROM done WHERE status = 'delivered' GROUP BY job_id) f
			WHERE j.id = f.job_id AND j.first_at IS NULL RETURNING f.id, j.created_at
		)
		SELECT done.id AS delivery, reached.created_at AS waited FROM done LEFT JOIN reached USING (id)`,
		named{"owner": owner, "ids": c.ids, "statuses": c.status, "nexts": c.nexts, "spent": c.spent, "codes": c.codes, "answers": c.answers, "errors": c.errors,
			"latencies": c.latencies, "out": c.out, "in": c.in, "locations": c.locations, "waits": c.waits, "remotes": c.remotes, "inboxes": c.inboxes,
			"hosts": c.hosts, "now": now, "headers": c.headers})
}

// isHeld is the condition for a delivery d whose outcome @owner may record.
const isHeld = `d.lease_owner = @owner AND d.status NOT IN ('parked', 'delivered', 'failed', 'skipped')`

// withoutDoubles returns the outcomes, but changes an outcome to DeliverySkipped if its delivery
// would move to an inbox that another delivery of the same job already has, or gets by an earlier
// outcome.
func (t Deliveries) withoutDoubles(ctx context.Context, owner string, all []Outcome) ([]Outcome, error) {
	var ids []int64
	var inboxes []string
	for _, o := range all {
		if o.Inbox != "" {
			ids, inboxes = append(ids, o.Delivery), append(inboxes, string(o.Inbox))
		}
	}
	if len(ids) == 0 {
		return all, nil
	}
	var doubles []int64
	err := t.query(ctx, "find doubled deliveries", column(&doubles), `
		WITH moved AS (
			SELECT d.id, d.job_id, o.inbox, row_number() OVER (PARTITION BY d.job_id, o.inbox ORDER BY o.n) AS place
			FROM unnest(@ids::bigint[], @inboxes::text[]) WITH ORDINALITY AS o (id, inbox, n) JOIN deliveries d ON d.id = o.id WHERE `+isHeld+`
		)
		SELECT id FROM moved m WHERE place > 1 OR EXISTS (SELECT FROM deliveries e WHERE e.job_id = m.job_id AND e.inbox = m.inbox)`,
		named{"owner": owner, "ids": ids, "inboxes": inboxes})
	out := slices.Clone(all)
	for n, o := range out {
		if slices.Contains(doubles, o.Delivery) {
			out[n].Status, out[n].Inbox, out[n].Error = DeliverySkipped, "", "the inbox has it from another delivery"
		}
	}
	return out, err
}

// text replaces the characters of s that a text column refuses, because peers may send any
// characters.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
