package user

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// DeliveryDelivering is the reported state of a pending delivery while a process has a lease on
// it.
const DeliveryDelivering = "delivering"

// The states of a job are computed from its deliveries. DeliveryDelivering says that a delivery
// is being attempted now; the other states say that none is. DeliveryPending says that no
// delivery has succeeded yet and some are pending or parked. DeliveryDelivered says that all
// deliveries succeeded except skipped ones.
const (
	JobPartial = "partial" // some inboxes have it; other deliveries are pending, parked or failed
	JobError   = "error"   // no inbox has it, and none is tried again
)

// JobStatuses returns the possible states of a job.
func JobStatuses() []string {
	return []string{DeliveryPending, DeliveryDelivering, JobPartial, DeliveryDelivered, JobError}
}

// DeliveryFilter selects deliveries or jobs. All conditions must hold.
type DeliveryFilter struct {
	Job      uuid.UUID // zero: every job
	Activity vocab.ID  // the Activity or the Object of the job; empty: every activity
	Hosts    []string  // empty: every one
	Since    time.Time // created since then; zero: at any time
}

// terms are the conditions of a query and their arguments.
type terms struct {
	where []string
	args  named
}

// and adds a condition and its argument.
func (t *terms) and(condition, name string, arg any) {
	t.where = append(t.where, condition)
	t.args[name] = arg
}

func (t *terms) String() string { return strings.Join(t.where, " AND ") }

// ofJob adds the conditions of f on a job j.
func (f DeliveryFilter) ofJob(t *terms) {
	if f.Job != (uuid.UUID{}) {
		t.and(`j.id = @job`, "job", f.Job)
	}
	if f.Activity != "" { // without this array the planner would scan jobs from the newest on
		t.and(`j.id = ANY(ARRAY(SELECT id FROM delivery_jobs WHERE activity_uri = @activity UNION SELECT id FROM delivery_jobs WHERE object_uri = @activity))`, "activity", f.Activity)
	}
}

// DeliveryJob is the fan-out of an activity and its state.
type DeliveryJob struct {
	ID        uuid.UUID `json:"job"`
	Activity  vocab.ID  `json:"activity"`
	Object    vocab.ID  `json:"object,omitempty"` // the Object of its Job
	Type      string    `json:"type"`
	Status    string    `json:"status"` // one of JobStatuses
	JobCounts `json:"counts"`
	CreatedAt time.Time  `json:"created_at"`
	FirstAt   *time.Time `json:"first_delivered_at,omitempty"` // when the first delivery succeeded
	Instance  bool       `json:"-"`                            // the instance actor sends it
}

// leased holds for a delivery d on which a process has a lease at the time @now.
const leased = `d.status = 'pending' AND d.lease_owner IS NOT NULL AND d.next_at > @now`

// jobColumns are the columns of DeliveryJob. j is the job, c its tally.
const jobColumns = `j.id, j.activity_uri AS activity, coalesce(j.object_uri, '') AS object, j.type, c.status, c.total, c.pending, c.delivered, c.failed, c.skipped, j.created_at, j.first_at, j.signer = 'instance' AS instance`

// tally counts the deliveries of job j. @now is the current time.
const tally = `LATERAL (SELECT CASE WHEN leased > 0 THEN 'delivering' WHEN delivered > 0 AND pending + failed > 0 THEN 'partial' WHEN pending > 0 THEN 'pending'
		WHEN delivered > 0 THEN 'delivered' ELSE 'error' END AS status, t.* FROM (
	SELECT count(*) + jsonb_array_length(j.reached) AS total, count(*) FILTER (WHERE d.status IN ('pending', 'parked')) AS pending,
		count(*) FILTER (WHERE d.status = 'delivered') + jsonb_array_length(j.reached) AS delivered, count(*) FILTER (WHERE d.status = 'failed') AS failed,
		count(*) FILTER (WHERE d.status = 'skipped') AS skipped, count(*) FILTER (WHERE ` + leased + `) AS leased
	FROM deliveries d WHERE d.job_id = j.id) t) c`

// List returns up to n jobs after a place, the newest first. Without a place it begins with the
// newest. If the status is empty, it returns jobs in all states. If the status is one of
// JobStatuses, it returns jobs in this state. If the status is DeliveryParked, DeliveryFailed
// or DeliverySkipped, it returns jobs that have a delivery in this state; if f.Hosts is not
// empty, this delivery must go to one of these hosts.
func (t Jobs) List(ctx context.Context, f DeliveryFilter, status string, after *Place, n int, now time.Time) ([]DeliveryJob, error) {
	q := terms{args: named{"now": now, "n": n}}
	q.and(`j.id < @before`, "before", uuid.UUID(after.orFirst().ID))
	f.ofJob(&q)
	if !f.Since.IsZero() {
		q.and(`j.created_at >= @since`, "since", f.Since)
	}
	of := terms{args: q.args}
	switch status {
	case "":
	case DeliveryParked, DeliveryFailed, DeliverySkipped:
		of.and(`e.status = @status`, "status", status)
	default:
		q.and(`c.status = @status`, "status", status)
	}
	reached := ""
	if len(f.Hosts) > 0 {
		of.and(`e.host = ANY(@hosts)`, "hosts", f.Hosts)
		// The hosts are the only condition, so deliveries that have no row any more count, too.
		if len(of.where) == 1 {
			reached = ` OR EXISTS (SELECT FROM jsonb_to_recordset(j.reached) AS r (host text) WHERE r.host = ANY(@hosts))`
		}
	}
	where := q.String()
	if len(of.where) > 0 { // OFFSET makes the planner check job by job, and stop when the page is full
		where += ` AND (EXISTS (SELECT FROM deliveries e WHERE e.job_id = j.id AND ` + of.String() + ` OFFSET 0)` + reached + `)`
	}
	return collect[DeliveryJob](ctx, t.tx, "list delivery jobs", `SELECT `+jobColumns+` FROM delivery_jobs j, `+tally+`
		WHERE `+where+` ORDER BY j.id DESC LIMIT @n`, q.args)
}

// Find returns one job, nil when there is none.
func (t Jobs) Find(ctx context.Context, id uuid.UUID, now time.Time) (*DeliveryJob, error) {
	return one[DeliveryJob](ctx, t.tx, "read delivery job", `SELECT `+jobColumns+` FROM delivery_jobs j, `+tally+` WHERE j.id = @id`, named{"now": now, "id": id})
}

// SentJob is the current state of the fan-out of one of the user's activities.
type SentJob struct {
	ID         uuid.UUID
	Recipients int // actors to which its deliveries go, except skipped deliveries
	JobCounts
}

// FindSent returns the fan-out of one of the user's activities. The result is nil when the
// activity went to nobody, or when its job was already pruned.
func (t Jobs) FindSent(ctx context.Context, activity vocab.ID, now time.Time) (*SentJob, error) {
	return one[SentJob](ctx, t.tx, "read delivery job", `SELECT j.id, (SELECT count(DISTINCT target) FROM (
			SELECT unnest(d.targets) AS target FROM deliveries d WHERE d.job_id = j.id AND d.status <> 'skipped'
			UNION ALL SELECT jsonb_array_elements_text(r -> 'targets') FROM jsonb_array_elements(j.reached) r) reached) AS recipients,
		c.total, c.pending, c.delivered, c.failed, c.skipped
		FROM delivery_jobs j, `+tally+` WHERE j.activity_uri = @activity AND j.signer = 'user' ORDER BY j.id LIMIT 1`, named{"now": now, "activity": activity})
}

// DeliveryReport is the stored state of one delivery. Headers and Answer are empty if the post was
// deleted or edited since.
type DeliveryReport struct {
	// ID is below 0 if the delivery succeeded long ago and only its inbox and recipients are
	// stored.
	ID                int64
	Job               uuid.UUID
	Inbox             vocab.ID
	Host              string // empty for a local inbox
	Targets           []vocab.ID
	Status            string // DeliveryDelivering is possible, too
	Attempts          int
	NextAt            *time.Time // when the next attempt is made; nil: there is none, or it is being made now
	LastStatus        int        // the HTTP status of the answer to the last attempt; 0: no answer
	Headers           string     // of that answer, a line for each stored field
	Answer            []byte     // the first 1 KiB of that answer's body, as the host sent it
	Location          string     // the Location header of the answer to a failed attempt
	RetryAfter        int        // how many seconds the host asked to wait; 0: it did not ask
	Error             string
	RemoteID          string // the Location header of a success: the host's id of the activity
	LatencyMS         int64  // of the last attempt
	BytesOut, BytesIn int64  // of all attempts
	CreatedAt         *time.Time
	UpdatedAt         *time.Time
}

// IdempotencyKey returns the key that every attempt carried, or an empty string if the delivery
// is not stored any more.
func (r DeliveryReport) IdempotencyKey() string {
	if r.ID < 0 {
		return ""
	}
	return Delivery{ID: r.ID, Job: r.Job}.IdempotencyKey()
}

// Says returns the body of the answer as text. Printable has made it safe for a terminal.
func (r DeliveryReport) Says() string { return Printable(string(r.Answer)) }

// Fields returns the stored header fields of the answer, each made safe by Printable. It returns
// nil when there are none.
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

// Printable returns a peer's text with every character that controls a terminal replaced by
// U+FFFD, except line breaks and tabs.
func Printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
			return unicode.ReplacementChar
		}
		return c
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// deliveryColumns are the columns of DeliveryReport. d is the delivery, @now the current time.
const deliveryColumns = `d.id, d.job_id AS job, d.inbox, d.host, d.targets, CASE WHEN ` + leased + ` THEN 'delivering' ELSE d.status END AS status, d.attempts,
	CASE WHEN d.status = 'pending' AND NOT (` + leased + `) THEN d.next_at END AS next_at, coalesce(d.last_status, 0) AS last_status,
	coalesce(d.last_headers, '') AS headers, d.last_answer AS answer, coalesce(d.last_location, '') AS location,
	coalesce(d.retry_after_s, 0) AS retry_after, coalesce(d.last_error, '') AS error, coalesce(d.remote_id, '') AS remote_id, coalesce(d.latency_ms, 0) AS latency_ms,
	d.bytes_out, d.bytes_in, d.created_at, d.updated_at`

// ListDeliveries returns up to n deliveries of a job, sorted by id. It returns only deliveries
// whose id is greater than after. Ids below 0 come first. They are ids of old deliveries that
// succeeded.
func (t Jobs) ListDeliveries(ctx context.Context, job uuid.UUID, after int64, n int, now time.Time) ([]DeliveryReport, error) {
	return collect[DeliveryReport](ctx, t.tx, "list deliveries", `
		(SELECT -r.place AS id, j.id AS job, r.inbox, r.host, r.targets, 'delivered' AS status, 0 AS attempts, NULL::timestamptz AS next_at, 0 AS last_status, '' AS headers, NULL::bytea AS answer,
			'' AS location, 0 AS retry_after, '' AS error, '' AS remote_id, 0 AS latency_ms, 0 AS bytes_out, 0 AS bytes_in, j.created_at, NULL::timestamptz AS updated_at
		FROM delivery_jobs j, ROWS FROM (jsonb_to_recordset(j.reached) AS (inbox text, host text, targets text[])) WITH ORDINALITY AS r (inbox, host, targets, place)
		WHERE j.id = @job AND -r.place > @after ORDER BY 1 LIMIT @n)
		UNION ALL (SELECT `+deliveryColumns+` FROM deliveries d WHERE d.job_id = @job AND d.id > @after ORDER BY d.id LIMIT @n)
		ORDER BY 1 LIMIT @n`, named{"now": now, "job": job, "after": after, "n": n})
}

// ListOpenFirst returns up to n deliveries of a job. Deliveries that have not succeeded come
// first.
func (t Jobs) ListOpenFirst(ctx context.Context, job uuid.UUID, n int, now time.Time) ([]DeliveryReport, error) {
	return collect[DeliveryReport](ctx, t.tx, "list deliveries", `SELECT `+deliveryColumns+` FROM deliveries d WHERE d.job_id = @job ORDER BY d.status = 'delivered', d.id LIMIT @n`,
		named{"now": now, "job": job, "n": n})
}

// DeliveryState counts the deliveries to a host that are in one state.
type DeliveryState struct {
	Host   string    `json:"host"`   // empty: this server
	Status string    `json:"status"` // DeliveryDelivering is possible, too
	Count  int       `json:"count"`
	Oldest time.Time `json:"oldest_at"` // when the oldest was created
	// NextAt is the time of the first planned attempt at one of these deliveries; nil: no
	// attempt is planned.
	NextAt *time.Time `json:"next_attempt_at,omitempty"`
	Error  string     `json:"last_error,omitempty"` // the latest error
}

// CountStates counts deliveries by host and state. Deliveries that succeeded long ago are not
// counted, since they have no row any more.
func (t Jobs) CountStates(ctx context.Context, now time.Time) ([]DeliveryState, error) {
	return collect[DeliveryState](ctx, t.tx, "count deliveries", `SELECT host, state AS status, count(*), min(created_at) AS oldest, min(next) AS next_at,
			coalesce((max(ARRAY[at, last_error]) FILTER (WHERE last_error IS NOT NULL))[2], '') AS error
		FROM (SELECT d.host, d.created_at, d.last_error, to_char(d.updated_at AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS') AS at,
			CASE WHEN `+leased+` THEN 'delivering' ELSE d.status END AS state, CASE WHEN d.status = 'pending' AND NOT (`+leased+`) THEN d.next_at END AS next FROM deliveries d) s
		GROUP BY host, state ORDER BY host, state`, named{"now": now})
}
