package db

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// DeliveryDelivering is shown of a pending delivery while a process holds a lease on it.
const DeliveryDelivering = "delivering"

// The state of a job, computed from its deliveries. DeliveryPending says that none got through
// yet and some are tried again, DeliveryDelivering that one is under way, DeliveryDelivered that
// every inbox has it that is not skipped.
const (
	JobPartial = "partial" // some inboxes have it, and others are tried again or were given up
	JobError   = "error"   // no inbox has it, and none is tried again
)

// JobStatuses are what a job can amount to.
func JobStatuses() []string {
	return []string{DeliveryPending, DeliveryDelivering, JobPartial, DeliveryDelivered, JobError}
}

// DeliveryFilter says which deliveries are meant, or which jobs: those of which everything is true
// that it says.
type DeliveryFilter struct {
	Job      uuid.UUID // zero: every job
	Activity vocab.ID  // the job's, or the object that it is about; empty: every one
	Hosts    []string  // empty: every one
	Since    time.Time // owed since then; zero: whenever
}

// terms are the conditions of a query, with their arguments.
type terms struct {
	where []string
	args  []any
}

// and adds a condition. ? in it stands for the argument.
func (t *terms) and(condition string, arg any) {
	t.args = append(t.args, arg)
	t.where = append(t.where, strings.ReplaceAll(condition, "?", fmt.Sprintf("$%d", len(t.args))))
}

func (t *terms) String() string { return strings.Join(t.where, " AND ") }

// ofJob adds what f says of a job j.
func (f DeliveryFilter) ofJob(t *terms) {
	if f.Job != (uuid.UUID{}) {
		t.and(`j.id = ?`, f.Job)
	}
	if f.Activity != "" { // an array: the planner would rather read on from the newest job than believe that there are few
		t.and(`j.id = ANY(ARRAY(SELECT id FROM delivery_jobs WHERE activity_uri = ? UNION SELECT id FROM delivery_jobs WHERE object_uri = ?))`, f.Activity)
	}
}

// DeliveryJob is the fan-out of an activity, with what became of it.
type DeliveryJob struct {
	ID        uuid.UUID
	Activity  vocab.ID
	Object    vocab.ID // empty when it is about nothing that has an id
	Type      string
	Instance  bool // the instance actor sends it
	CreatedAt time.Time
	FirstAt   *time.Time // when the first inbox took it
	Status    string     // one of JobStatuses
	JobCounts
}

// leased holds for a delivery d on which a process has a lease now, which is the time ?.
const leased = `d.status = 'pending' AND d.lease_owner IS NOT NULL AND d.next_at > ?`

// jobColumns are those of DeliveryJob, of a job j with its tally c.
const jobColumns = `j.id, j.activity_uri, coalesce(j.object_uri, ''), j.type, j.signer = 'instance', j.created_at, j.first_at, c.status, c.total, c.pending, c.delivered, c.failed, c.skipped`

// tally counts the deliveries of job j, $1 being now.
var tally = `LATERAL (SELECT CASE WHEN leased > 0 THEN 'delivering' WHEN delivered > 0 AND pending + failed > 0 THEN 'partial' WHEN pending > 0 THEN 'pending'
		WHEN delivered > 0 THEN 'delivered' ELSE 'error' END AS status, t.* FROM (
	SELECT count(*) + jsonb_array_length(j.reached) AS total, count(*) FILTER (WHERE d.status IN ('pending', 'parked')) AS pending,
		count(*) FILTER (WHERE d.status = 'delivered') + jsonb_array_length(j.reached) AS delivered, count(*) FILTER (WHERE d.status = 'failed') AS failed,
		count(*) FILTER (WHERE d.status = 'skipped') AS skipped, count(*) FILTER (WHERE ` + strings.ReplaceAll(leased, "?", "$1") + `) AS leased
	FROM deliveries d WHERE d.job_id = j.id) t) c`

// DeliveryJobs returns up to n jobs after a place, the newest first; at the beginning with none.
// With a status only those that amount to it; or, for DeliveryParked, DeliveryFailed and
// DeliverySkipped, those with a delivery in that state: to one of the hosts, when the filter names
// any.
func (t *Tx) DeliveryJobs(ctx context.Context, f DeliveryFilter, status string, after *Place, n int, now time.Time) ([]DeliveryJob, error) {
	q := terms{args: []any{now}}
	q.and(`j.id < ?`, uuid.UUID(after.orFirst().ID))
	f.ofJob(&q)
	if !f.Since.IsZero() {
		q.and(`j.created_at >= ?`, f.Since)
	}
	of := terms{args: q.args}
	switch status {
	case "":
	case DeliveryParked, DeliveryFailed, DeliverySkipped:
		of.and(`e.status = ?`, status)
	default:
		q.and(`c.status = ?`, status)
		of.args = q.args
	}
	reached := ""
	if len(f.Hosts) > 0 {
		of.and(`e.host = ANY(?)`, f.Hosts)
		if len(of.where) == 1 { // whatever its state
			reached = fmt.Sprintf(` OR EXISTS (SELECT FROM jsonb_to_recordset(j.reached) AS r (host text) WHERE r.host = ANY($%d))`, len(of.args))
		}
	}
	where := q.String()
	if len(of.where) > 0 { // OFFSET: looked up for one job after the other, and no more of them than the page needs
		where += ` AND (EXISTS (SELECT FROM deliveries e WHERE e.job_id = j.id AND ` + of.String() + ` OFFSET 0)` + reached + `)`
	}
	args := append(of.args, n)
	return collect[DeliveryJob](ctx, t, "list delivery jobs", `SELECT `+jobColumns+` FROM delivery_jobs j, `+tally+`
		WHERE `+where+fmt.Sprintf(` ORDER BY j.id DESC LIMIT $%d`, len(args)), args...)
}

// DeliveryJob returns one job, nil when there is none.
func (t *Tx) DeliveryJob(ctx context.Context, id uuid.UUID, now time.Time) (*DeliveryJob, error) {
	return one[DeliveryJob](ctx, t, "read delivery job", `SELECT `+jobColumns+` FROM delivery_jobs j, `+tally+` WHERE j.id = $2`, now, id)
}

// SentJob is the fan-out of an activity of the user's, as it stands.
type SentJob struct {
	ID         uuid.UUID
	Recipients int // actors that it reaches, or is to
	JobCounts
}

// SentJob returns the fan-out of an activity of the user's, nil when nothing left for it, or that
// was long ago.
func (t *Tx) SentJob(ctx context.Context, activity vocab.ID, now time.Time) (*SentJob, error) {
	return one[SentJob](ctx, t, "read delivery job", `SELECT j.id, (SELECT count(DISTINCT target) FROM (
			SELECT unnest(d.targets) AS target FROM deliveries d WHERE d.job_id = j.id AND d.status <> 'skipped'
			UNION ALL SELECT jsonb_array_elements_text(r -> 'targets') FROM jsonb_array_elements(j.reached) r) reached),
		c.total, c.pending, c.delivered, c.failed, c.skipped
		FROM delivery_jobs j, `+tally+` WHERE j.activity_uri = $2 AND j.signer = 'user' ORDER BY j.id LIMIT 1`, now, activity)
}

// DeliveryReport is what is known of one delivery.
type DeliveryReport struct {
	ID                int64 // below 0: done long ago, and no more is known than its recipients
	Job               uuid.UUID
	Inbox             vocab.ID
	Host              string // empty for a local inbox
	Targets           []vocab.ID
	Status            string // DeliveryDelivering too
	Attempts          int
	NextAt            *time.Time // when it is tried again; nil when it is not, or is being tried
	LastStatus        int        // of the last answer; 0: none
	Headers           string     // of it, a line for each field that is kept
	Answer            []byte     // the first 1 KiB of it: as the host sent it
	Location          string     // where a failure pointed to
	RetryAfter        int        // seconds that the host asked for; 0: it did not
	Error             string
	RemoteID          string // what the host calls what it made of it
	LatencyMS         int64  // of the last attempt
	BytesOut, BytesIn int64  // of all attempts
	CreatedAt         *time.Time
	UpdatedAt         *time.Time
}

// IdempotencyKey is what every attempt carried; empty when that is not known any more.
func (r DeliveryReport) IdempotencyKey() string {
	if r.ID < 0 {
		return ""
	}
	return Delivery{ID: r.ID, Job: r.Job}.IdempotencyKey()
}

// Says is the answer as text, without anything that a terminal would obey.
func (r DeliveryReport) Says() string { return Printable(string(r.Answer)) }

// Fields are the header fields of the answer that are kept, as text like Says; nil when there are
// none.
func (r DeliveryReport) Fields() map[string]string {
	var fields map[string]string
	for line := range strings.Lines(r.Headers) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if fields == nil {
			fields = map[string]string{}
		}
		if before, again := fields[name]; again {
			value = before + ", " + value
		}
		fields[name] = Printable(value)
	}
	return fields
}

// Printable is what another server said, as text of which a terminal obeys nothing but the ends of
// lines.
func Printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
			return unicode.ReplacementChar
		}
		return c
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// deliveryColumns are those of DeliveryReport, of a delivery d, $1 being now.
var deliveryColumns = `d.id, d.job_id, d.inbox, d.host, d.targets, CASE WHEN ` + isLeased + ` THEN 'delivering' ELSE d.status END, d.attempts,
	CASE WHEN d.status = 'pending' AND NOT (` + isLeased + `) THEN d.next_at END, coalesce(d.last_status, 0), coalesce(d.last_headers, ''), d.last_answer, coalesce(d.last_location, ''),
	coalesce(d.retry_after_s, 0), coalesce(d.last_error, ''), coalesce(d.remote_id, ''), coalesce(d.latency_ms, 0), d.bytes_out, d.bytes_in, d.created_at, d.updated_at`

var isLeased = strings.ReplaceAll(leased, "?", "$1")

// JobDeliveries returns up to n deliveries of a job whose ids are above after, in the order of
// their ids: those first that were done long ago.
func (t *Tx) JobDeliveries(ctx context.Context, job uuid.UUID, after int64, n int, now time.Time) ([]DeliveryReport, error) {
	return collect[DeliveryReport](ctx, t, "list deliveries", `
		(SELECT -r.place AS id, j.id AS job, r.inbox, r.host, r.targets, 'delivered' AS status, 0 AS attempts, NULL::timestamptz AS next, 0 AS code, '' AS headers, NULL::bytea AS answer,
			'' AS location, 0 AS wait, '' AS error, '' AS remote, 0 AS latency, 0 AS bytes_out, 0 AS bytes_in, j.created_at, NULL::timestamptz AS updated
		FROM delivery_jobs j, ROWS FROM (jsonb_to_recordset(j.reached) AS (inbox text, host text, targets text[])) WITH ORDINALITY AS r (inbox, host, targets, place)
		WHERE j.id = $2 AND -r.place > $3 ORDER BY 1 LIMIT $4)
		UNION ALL (SELECT `+deliveryColumns+` FROM deliveries d WHERE d.job_id = $2 AND d.id > $3 ORDER BY d.id LIMIT $4)
		ORDER BY 1 LIMIT $4`, now, job, after, n)
}

// OpenFirst returns up to n deliveries of a job, those first that are not delivered.
func (t *Tx) OpenFirst(ctx context.Context, job uuid.UUID, n int, now time.Time) ([]DeliveryReport, error) {
	return collect[DeliveryReport](ctx, t, "list deliveries", `SELECT `+deliveryColumns+` FROM deliveries d WHERE d.job_id = $2 ORDER BY d.status = 'delivered', d.id LIMIT $3`, now, job, n)
}

// DeliveryState says how much there is to a host in one state.
type DeliveryState struct {
	Host   string // empty: this server
	Status string // DeliveryDelivering too
	Count  int
	Oldest time.Time  // since when the oldest is owed
	NextAt *time.Time // when the first is tried again; nil when none is
	Error  string     // the last one
}

// DeliveryStates counts deliveries by host and state. Deliveries made over a week ago are not
// counted any more.
func (t *Tx) DeliveryStates(ctx context.Context, now time.Time) ([]DeliveryState, error) {
	return collect[DeliveryState](ctx, t, "count deliveries", `SELECT host, state, count(*), min(created_at), min(next), coalesce((max(ARRAY[at, last_error]) FILTER (WHERE last_error IS NOT NULL))[2], '')
		FROM (SELECT d.host, d.created_at, d.last_error, to_char(d.updated_at AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS') AS at,
			CASE WHEN `+isLeased+` THEN 'delivering' ELSE d.status END AS state, CASE WHEN d.status = 'pending' AND NOT (`+isLeased+`) THEN d.next_at END AS next FROM deliveries d) s
		GROUP BY host, state ORDER BY host, state`, now)
}
