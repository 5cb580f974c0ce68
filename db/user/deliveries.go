package user

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Job is the fan-out of one activity, with the bytes as they are sent. Deliveries to one inbox
// keep their order if their jobs have the same Object, but one of the user's own activities waits
// for no forwarded one. For the types of Types.Ordered the Object is the Activity itself.
type Job struct {
	ID       uuid.UUID
	Activity vocab.ID
	Version  vocab.ID // the id of this version of the activity; empty if there are no versions
	Actor    vocab.ID // set if the activity is forwarded, since other actors of its server may use the same id
	Object   vocab.ID // the activity's object, the Activity or a conversation; may be empty
	Type     string
	Body     []byte
	Audience []vocab.ID // the recipients that the activity addresses
	Instance bool       // the instance actor sends it, not the user

	Forwarded bool // the activity is another actor's, so it waits behind the user's own activities
}

// dedupe returns a hash of the activity and these inboxes, whose order does not matter. A
// fan-out with the same hash is stored only once.
func (j Job) dedupe(inboxes []Inbox) []byte {
	urls := make([]string, len(inboxes))
	for n, i := range inboxes {
		urls[n] = string(i.URL.Canonical())
	}
	slices.Sort(urls)
	h := sha256.New()
	names := []string{string(cmp.Or(j.Version, j.Activity).Canonical())}
	if j.Actor != "" {
		names = append(names, string(j.Actor))
	}
	for _, s := range append(names, urls...) {
		_, _ = io.WriteString(h, s+"\n") // writing to a hash never fails, and no id contains a line break
	}
	return h.Sum(nil)
}

// Inbox is one inbox that a job must reach.
type Inbox struct {
	URL             vocab.ID
	Host            string // empty for a local inbox
	Targets         []vocab.ID
	FollowersDigest []byte // of the followers on its host, when followers are addressed (FEP-8fcf)
	Skip            string // why the delivery to it is skipped; empty: the delivery is not skipped
}

// Delivery is one activity owed to one inbox.
type Delivery struct {
	ID              int64
	Job             uuid.UUID
	Activity        vocab.ID
	Object          vocab.ID
	Type            string
	Body            []byte
	Instance        bool
	Inbox           vocab.ID
	Host            string
	Targets         []vocab.ID
	FollowersDigest []byte
	Attempts        int // how many attempts were made before
	Created         time.Time
	Forwarded       bool
}

// takenColumns are the columns of Delivery. t is the delivery, j its job.
const takenColumns = `t.id, t.job_id AS job, j.activity_uri AS activity, coalesce(j.object_uri, '') AS object, j.type, j.body, j.signer = 'instance' AS instance,
	t.inbox, t.host, t.targets, t.followers_digest, t.attempts, t.created_at AS created, t.forwarded`

// IsUsersOwn reports whether the user is told when a delivery fails. The user is not told of a
// forwarded activity, or of an answer that the engine sent by itself. Otherwise a server that
// refuses the answers to its own activities could fill the window of events. Among the answers,
// only those that the user sent say when they were published.
func (t Deliveries) IsUsersOwn(d Delivery) bool {
	if d.Forwarded || !slices.Contains(t.types.Answer, d.Type) {
		return !d.Forwarded
	}
	doc, err := vocab.ParseDoc(d.Body)
	return err == nil && doc.Text("published") != ""
}

// IdempotencyKey returns a key that is the same at every attempt, and that reveals nothing about
// other deliveries.
func (d Delivery) IdempotencyKey() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s-%d", d.Job, d.ID))
	return hex.EncodeToString(sum[:16])
}

// The states of a delivery. A pending delivery is being attempted while a process holds a lease
// on it.
const (
	DeliveryPending   = "pending"
	DeliveryParked    = "parked" // waits because its host is inactive
	DeliveryDelivered = "delivered"
	DeliveryFailed    = "failed" // given up
	// DeliverySkipped means that no attempt is made any more, for instance because the inbox is
	// gone or the post was deleted.
	DeliverySkipped = "skipped"
)

// DeliveryLeases are the leases that a transaction may take when it stores a job, so that the
// first attempts can begin right after the commit.
type DeliveryLeases struct {
	Owner  string    // empty: no leases
	Until  time.Time // the end of the leases
	Most   int       // leases per job
	Except []string  // hosts to which nothing is sent now; see AllHostsOf
}

// Enqueue stores a job with a delivery to each inbox. The deliveries become due at the time in
// the parameter due. If Enqueue is called in the transaction that stores the activity, an
// activity is never stored without its deliveries. A job with the same activity and inboxes is
// stored once.
func (t Deliveries) Enqueue(ctx context.Context, j Job, inboxes []Inbox, due time.Time) error {
	return t.EnqueueLeased(ctx, j, inboxes, due, DeliveryLeases{})
}

// EnqueueLeased does what Enqueue does, and also leases deliveries that may be attempted right
// away. The Commit passes the leased deliveries to the dispatcher.
func (t Deliveries) EnqueueLeased(ctx context.Context, j Job, inboxes []Inbox, due time.Time, l DeliveryLeases) error {
	if len(inboxes) == 0 {
		return nil
	}
	signer := "user"
	if j.Instance {
		signer = "instance"
	}
	urls, hosts, targets := make([]string, len(inboxes)), make([]string, len(inboxes)), make([]string, len(inboxes))
	digests, skips := make([][]byte, len(inboxes)), make([]string, len(inboxes))
	at := make(map[vocab.ID]int, len(inboxes))
	for n, i := range inboxes {
		list, err := json.Marshal(texts(i.Targets)) // SQL has no array of arrays of different lengths
		if err != nil {
			return fmt.Errorf("store deliveries: %w", err)
		}
		urls[n], hosts[n], targets[n], digests[n], skips[n] = string(i.URL), i.Host, string(list), i.FollowersDigest, i.Skip
		at[i.URL] = n
	}
	type row struct {
		ID    int64
		Inbox vocab.ID
	}
	except, _, patterns := hostPatterns(l.Except)
	rows, err := collect[row](ctx, t.tx, "store deliveries", `
		WITH job AS (
			INSERT INTO delivery_jobs (id, activity_uri, object_uri, type, body, created_at, audience, signer, dedupe_hash)
			VALUES (@id, @activity, nullif(@object, ''), @type, @body, @due, @audience, @signer, @hash) ON CONFLICT (dedupe_hash) DO NOTHING RETURNING id, object_uri
		), stored AS (
			INSERT INTO deliveries (job_id, inbox, host, targets, followers_digest, status, last_error, lease_owner, next_at, created_at, updated_at, forwarded)
			SELECT job.id, inbox, host, ARRAY(SELECT jsonb_array_elements_text(targets::jsonb)), digest, CASE skip WHEN '' THEN 'pending' ELSE 'skipped' END, nullif(skip, ''),
				CASE WHEN leased THEN @owner END, CASE WHEN leased THEN @until ELSE @due END, @due, @due, @forwarded
			FROM job, unnest(@urls::text[], @hosts::text[], @targets::text[], @digests::bytea[], @skips::text[]) WITH ORDINALITY AS i (inbox, host, targets, digest, skip, place),
				LATERAL (SELECT skip = '' AND @owner <> '' AND place <= @most AND host <> ALL(coalesce(@except, '{}'::text[])) AND '.' || host NOT LIKE ALL(coalesce(@patterns, '{}'::text[])) AND NOT EXISTS (
					SELECT FROM delivery_jobs k WHERE k.object_uri = job.object_uri AND EXISTS (SELECT FROM deliveries e
					WHERE e.job_id = k.id AND e.host = i.host AND e.status NOT IN ('delivered', 'failed', 'skipped') AND (@forwarded OR NOT e.forwarded) OFFSET 0) OFFSET 0)) AS l (leased)
			ON CONFLICT (job_id, inbox) DO NOTHING RETURNING id, inbox, lease_owner
		)
		SELECT id, inbox FROM stored WHERE lease_owner IS NOT NULL ORDER BY id`,
		named{"id": j.ID, "activity": j.Activity, "object": j.Object, "type": j.Type, "body": j.Body, "due": due, "audience": texts(j.Audience),
			"signer": signer, "hash": j.dedupe(inboxes),
			"urls": urls, "hosts": hosts, "targets": targets, "digests": digests, "skips": skips,
			"owner": l.Owner, "until": l.Until, "most": l.Most, "except": except, "forwarded": j.Forwarded, "patterns": patterns})
	t.owes = true
	for _, r := range rows {
		t.leasedUntil = l.Until
		i := inboxes[at[r.Inbox]]
		t.leased = append(t.leased, Delivery{ID: r.ID, Job: j.ID, Activity: j.Activity, Object: j.Object, Type: j.Type, Body: j.Body, Instance: j.Instance,
			Inbox: i.URL, Host: i.Host, Targets: i.Targets, FollowersDigest: i.FollowersDigest, Created: due, Forwarded: j.Forwarded})
	}
	return err
}

// unblocked holds for a delivery d of job j unless an earlier open delivery about the same object
// must come first. The earlier one goes to the same inbox, or is an untried delivery to the same
// host. So a Delete never overtakes its Create, and a dead inbox does not delay others on its
// host. A delivery of the user's own waits for no forwarded one, because the sender of a forwarded
// activity chooses its object.
//
// The statistics of PostgreSQL's planner can be older than a backlog of deliveries. Then the
// planner would compare all pending deliveries with each other. OFFSET keeps it from joining
// the tables, and NOT IN keeps it from using the index of pending deliveries.
const unblocked = `NOT EXISTS (SELECT FROM delivery_jobs k WHERE k.object_uri = j.object_uri AND k.id <> j.id AND EXISTS (SELECT FROM deliveries e
	WHERE e.job_id = k.id AND e.host = d.host AND e.status NOT IN ('delivered', 'failed', 'skipped') AND e.id < d.id
	AND (e.inbox = d.inbox OR e.attempts = 0) AND (d.forwarded OR NOT e.forwarded) OFFSET 0) OFFSET 0)`

// leaseLost marks a delivery d as tried if a process has a lease on it, because the process may
// have made the attempt without recording the outcome.
const leaseLost = `tried = d.tried OR d.lease_owner IS NOT NULL`

// withdrawn holds for a delivery d whose job has no body any more, because the post in it was
// deleted or edited since. Such a delivery is not attempted again.
const withdrawn = `(SELECT octet_length(j.body) = 0 FROM delivery_jobs j WHERE j.id = d.job_id)`

// ClaimBounds limits which due deliveries may be claimed, and how many.
type ClaimBounds struct {
	Most      int      // at most so many deliveries of the user's own activities
	Forwarded int      // at most so many forwarded deliveries
	Local     bool     // only deliveries to inboxes of this server
	Except    []string // hosts to which nothing is sent now; see AllHostsOf
	Crowded   []string // hosts for which enough forwarded deliveries wait already
}

// Claim leases due deliveries to owner for the given time. It takes first those that have been
// due for longest, and passes over those that must wait for an earlier delivery (see unblocked).
// It leases deliveries of the user's own activities, and of forwarded ones.
func (t Deliveries) Claim(ctx context.Context, owner string, now time.Time, lease time.Duration, b ClaimBounds) ([]Delivery, error) {
	hosts, _, patterns := hostPatterns(b.Except)
	const due = `SELECT d.id FROM deliveries d
			WHERE d.status = 'pending' AND d.next_at <= @now AND d.host <> ALL(coalesce(@hosts, '{}'::text[])) AND '.' || d.host NOT LIKE ALL(coalesce(@patterns, '{}'::text[])) AND (d.host = '' OR NOT @local)
				AND EXISTS (SELECT FROM delivery_jobs j WHERE j.id = d.job_id AND ` + unblocked + ` OFFSET 0)`
	return collect[Delivery](ctx, t.tx, "claim deliveries", `
		WITH own AS (`+due+` AND NOT d.forwarded
			ORDER BY d.next_at, d.id LIMIT @most FOR UPDATE SKIP LOCKED
		), forwarded AS (`+due+` AND d.forwarded AND d.host <> ALL(coalesce(@crowded, '{}'::text[]))
			ORDER BY d.next_at, d.id LIMIT @forwarded FOR UPDATE SKIP LOCKED
		), taken AS (
			UPDATE deliveries d SET next_at = @until, `+leaseLost+`, lease_owner = @owner, updated_at = @now WHERE d.id = ANY(ARRAY(SELECT id FROM own UNION ALL SELECT id FROM forwarded))
			RETURNING d.id, d.job_id, d.inbox, d.host, d.targets, d.followers_digest, d.attempts, d.created_at, d.forwarded
		)
		SELECT `+takenColumns+` FROM taken t JOIN delivery_jobs j ON j.id = t.job_id ORDER BY t.id`,
		named{"owner": owner, "now": now, "until": now.Add(lease), "most": b.Most, "hosts": hosts, "local": b.Local, "forwarded": b.Forwarded,
			"crowded": b.Crowded, "patterns": patterns})
}

// Release ends the leases of owner, and makes the deliveries that owner had leased due now.
func (t Deliveries) Release(ctx context.Context, owner string, now time.Time) error {
	_, err := t.execBeside(ctx, "release deliveries", `UPDATE deliveries d SET `+leaseLost+`, lease_owner = NULL, next_at = $2
		WHERE status = 'pending' AND lease_owner = $1`, owner, now)
	return err
}

// TakeOver ends the leases of earlier processes of the same kind as owner, and makes the leased
// deliveries due now. The names of the processes of a kind begin with the parameter kind. Call
// TakeOver only once the earlier processes are known to be gone. The leases of processes of other
// kinds end by Release, or when their time is over.
func (t Deliveries) TakeOver(ctx context.Context, kind, owner string, now time.Time) error {
	_, err := t.execBeside(ctx, "take over deliveries", `UPDATE deliveries d SET `+leaseLost+`, lease_owner = NULL, next_at = $3
		WHERE status = 'pending' AND starts_with(lease_owner, $1) AND lease_owner <> $2`, kind, owner, now)
	return err
}

// RecoverLeases ends the leases of owner that end no later than the time in the parameter until,
// and makes the deliveries with these leases due now. It leaves out the deliveries in the
// parameter held. It is called when an answer of the database was lost, so that owner does not
// know of all its leases.
func (t Deliveries) RecoverLeases(ctx context.Context, owner string, held []int64, until, now time.Time) error {
	_, err := t.execBeside(ctx, "recover leases", `UPDATE deliveries d SET `+leaseLost+`, lease_owner = NULL, next_at = @now
		WHERE status = 'pending' AND lease_owner = @owner AND next_at <= @until AND id <> ALL(coalesce(@held, '{}'::bigint[]))`,
		named{"owner": owner, "held": held, "until": until, "now": now})
	return err
}

// NextAfter returns when, after now, the next pending delivery becomes due, or nil if there is
// none. A leased delivery becomes due when its lease ends.
func (t Deliveries) NextAfter(ctx context.Context, now time.Time) (*time.Time, error) {
	var at *time.Time
	err := t.row(ctx, "read next delivery", `SELECT least(
		(SELECT min(next_at) FROM deliveries WHERE status = 'pending' AND NOT forwarded AND next_at > $1),
		(SELECT min(next_at) FROM deliveries WHERE status = 'pending' AND forwarded AND next_at > $1))`, []any{now}, &at)
	return at, err
}

// OpenDeliveries counts the pending or the parked deliveries.
type OpenDeliveries struct {
	Status string // pending or parked
	Count  int
	Oldest time.Time
}

// CountOpen counts the pending and the parked deliveries.
func (t Deliveries) CountOpen(ctx context.Context) ([]OpenDeliveries, error) {
	return collect[OpenDeliveries](ctx, t.tx, "count deliveries", `SELECT status, count(*), min(created_at) AS oldest FROM deliveries
		WHERE status IN ('pending', 'parked') GROUP BY status`)
}

// ListSentTo returns the inboxes to which posts or updates of an object were sent or will be
// sent. If the parameter object is the id of an activity of Types.Ordered, such as a reaction or
// Block, it returns the inboxes to which that activity was or will be sent. Inboxes of failed
// deliveries are included.
func (t Deliveries) ListSentTo(ctx context.Context, object vocab.ID) ([]Inbox, error) {
	return t.listReached(ctx, `object_uri = $1 AND type = ANY($2)`, object, slices.Concat(t.types.Words, t.types.Ordered))
}

// ListForwardedTo returns the inboxes to which this server forwarded or will forward another
// actor's activity. The parameter id is the id of that activity, or of an object. For an object,
// all forwarded posts and updates of the object count. If an activity that takes id back was
// forwarded already, it returns no inboxes.
func (t Deliveries) ListForwardedTo(ctx context.Context, id vocab.ID) ([]Inbox, error) {
	return t.listReached(ctx, `(activity_uri = $1 OR object_uri = $1 AND type = ANY($2))
			AND NOT EXISTS (SELECT FROM delivery_jobs k WHERE k.object_uri = $1 AND k.type = ANY($3))`, id, t.types.Words, t.types.TakeBack)
}

// listReached returns the inboxes of those jobs of the user that satisfy a condition. The jobs
// were or will be sent to these inboxes. An inbox occurs once for each of the jobs.
func (t Deliveries) listReached(ctx context.Context, condition string, args ...any) ([]Inbox, error) {
	type row struct {
		URL     vocab.ID
		Host    string
		Targets []vocab.ID
	}
	rows, err := collect[row](ctx, t.tx, "list inboxes of object", `
		WITH j AS (SELECT id, reached FROM delivery_jobs WHERE `+condition+` AND signer = 'user')
		SELECT r.inbox AS url, r.host, r.targets FROM j, jsonb_to_recordset(j.reached) AS r (inbox text, host text, targets text[])
		UNION ALL (SELECT d.inbox, d.host, d.targets FROM j JOIN deliveries d ON d.job_id = j.id WHERE d.status <> 'skipped' OR d.tried ORDER BY d.id)`, args...)
	out := make([]Inbox, len(rows))
	for n, r := range rows {
		out[n] = Inbox{URL: r.URL, Host: r.Host, Targets: r.Targets}
	}
	return out, err
}

// JobCounts are the numbers of a job's deliveries, including those that succeeded long ago and
// have no row any more.
type JobCounts struct {
	Total     int `json:"total"`
	Pending   int `json:"pending"` // pending or parked
	Delivered int `json:"delivered"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
}
