package instance

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Journal stores accepted activities until their recipients' databases have them.
type Journal struct {
	on    conns
	epoch *atomic.Int64 // the epoch that Locks.Serve began; 0 in a process that does not serve
	last  *atomic.Int64 // the number of the last activity that arrived
}

func newJournal(on conns) Journal {
	j := Journal{on: on, epoch: &atomic.Int64{}, last: &atomic.Int64{}}
	j.last.Store(firstArrival)
	return j
}

// Intake is an accepted activity to store in the journal.
type Intake struct {
	Key IntakeKey
	// Number is the number that AssignNumber gave the activity on arrival. It is 0 if the
	// operator resubmits the activity. Then the activity gets a number below all new ones.
	Number     int64
	ReceivedAt time.Time // zero: now
	SignedAt   time.Time // when its own actor signed the request; zero: unknown
	Raw        []byte    // the activity as it came
	// Fetched has the objects of other servers that the activity's handler needs. It is a JSON
	// object whose keys are the objects' ids.
	Fetched    []byte
	Recipients []vocab.Username // the users whose writers in this process apply it
	Waiting    []vocab.Username // the users whose databases cannot take it now
	// Named has the users of Recipients and Waiting that the activity addresses, or to whose
	// own inbox it came.
	Named      []vocab.Username
	Forwarders []vocab.ID // the actors that sent the activity, unless its own actor sent it, too
	Payer      string     // the party that caused it; empty for this server itself
}

// IntakeKey identifies an activity in the journal. It includes the actor, so that no actor can
// occupy the id of another actor's activity. It has digests of the ids, because ids can be long.
type IntakeKey struct{ URI, Actor [sha256.Size]byte }

// KeyOf returns the key of an actor's activity.
func KeyOf(activity, actor vocab.ID) IntakeKey {
	return IntakeKey{[sha256.Size]byte(schema.Digest(activity)), [sha256.Size]byte(schema.Digest(actor))}
}

// IntakeRow identifies one state of a row of the journal. Rev counts the changes of the row.
type IntakeRow struct {
	Seq int64 // the number that the activity got on its arrival
	Rev int32
}

// fenced is the condition that no other process has begun to serve the instance since this process
// began its epoch.
const fenced = `EXISTS (SELECT FROM serving WHERE epoch = @epoch)`

var errFenced = fault.New(fault.Unavailable, "another process serves the instance")

const (
	firstArrival = 1 << 40 // lower numbers come from the sequence, for activities that the operator resubmits
	arrivalGap   = 1 << 20 // exceeds the number of rows that a process which lost the lock may still write
)

// AssignNumber returns the number for an activity that arrives now in this process. The activities
// of a recipient take effect in the order of these numbers, whether or not they wait in the
// journal. AssignNumber needs no round trip to the database.
func (j Journal) AssignNumber() int64 { return j.last.Add(1) }

// NextNumber returns a number above those of all activities that have arrived so far.
func (j Journal) NextNumber() int64 { return j.last.Load() + 1 }

// continueNumbers makes this process assign numbers above those in the journal. The parameter
// conn is the connection that has the serve lock.
func (j Journal) continueNumbers(ctx context.Context, conn *pgx.Conn) error {
	var last int64
	if err := conn.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM intake`).Scan(&last); err != nil {
		return postgres.Fault("read the last arrival", err)
	}
	j.raiseNumbers(last + arrivalGap)
	return nil
}

// raiseNumbers makes this process assign only numbers above last from now on. It never lowers the
// counter. So a number that another goroutine assigns while raiseNumbers runs is not assigned a
// second time.
func (j Journal) raiseNumbers(last int64) {
	for now := j.last.Load(); now < last && !j.last.CompareAndSwap(now, last); {
		now = j.last.Load()
	}
}

// Accept stores an activity for its recipients, in one round trip. If the journal has the activity
// already, Accept merges the two. The fault is Unavailable when another process has begun to
// serve.
func (j Journal) Accept(ctx context.Context, in Intake) (IntakeRow, error) {
	return j.accept(ctx, in, fenced, j.epoch.Load())
}

// Resubmit does what Accept does, for an activity that the operator submits again. A process that
// does not serve the instance may call it, too.
func (j Journal) Resubmit(ctx context.Context, in Intake) error {
	_, err := j.accept(ctx, in, `@epoch::bigint IS NULL`, nil)
	return err
}

func (j Journal) accept(ctx context.Context, in Intake, condition string, epoch any) (row IntakeRow, err error) {
	addWaiting := ""
	if len(in.Waiting) > 0 {
		addWaiting = `, waiting AS (INSERT INTO intake_waiting (username, seq, payer, bytes)
			SELECT u, seq, payer, bytes FROM taken, unnest(@waiting::text[]) u ON CONFLICT DO NOTHING)`
	}
	err = j.on.QueryRow(ctx, `WITH taken AS (
			INSERT INTO intake (seq, uri_digest, actor_digest, raw, fetched, recipients, named, received_at, signed_at, forwarders, payer) OVERRIDING SYSTEM VALUE
			SELECT coalesce(nullif(@number::bigint, 0), nextval(pg_get_serial_sequence('intake', 'seq'))), @uri, @actor, @raw, @fetched,
				@recipients, @named, coalesce(@received::timestamptz, now()), @signed, @forwarders, @payer WHERE `+condition+`
			ON CONFLICT (uri_digest, actor_digest) DO UPDATE SET rev = intake.rev + 1,
				fetched = CASE intake.fetched WHEN '{}' THEN excluded.fetched ELSE intake.fetched END,
				recipients = ARRAY(SELECT unnest(intake.recipients) UNION SELECT unnest(excluded.recipients)),
				named = ARRAY(SELECT unnest(intake.named) UNION SELECT unnest(excluded.named)),
				signed_at = greatest(intake.signed_at, excluded.signed_at),
				forwarders = CASE WHEN intake.forwarders IS NOT NULL AND excluded.forwarders IS NOT NULL
					THEN ARRAY(SELECT unnest(intake.forwarders) UNION SELECT unnest(excluded.forwarders)) END
			RETURNING seq, rev, payer, `+intakeBytes+` AS bytes)`+addWaiting+`
		SELECT seq, rev FROM taken`,
		pgx.NamedArgs{"epoch": epoch, "number": in.Number, "uri": in.Key.URI[:], "actor": in.Key.Actor[:], "raw": string(in.Raw), "fetched": string(in.Fetched),
			"recipients": names(in.Recipients), "named": names(in.Named), "waiting": names(in.Waiting), "received": postgres.TimeOrNull(in.ReceivedAt),
			"signed": postgres.TimeOrNull(in.SignedAt), "forwarders": idsOrNull(in.Forwarders), "payer": in.Payer}).Scan(&row.Seq, &row.Rev)
	if postgres.IsNoRows(err) {
		return row, errFenced
	}
	return row, postgres.Fault("write the intake journal", err)
}

// Finish empties the recipients of rows that all writers have applied. It removes these rows,
// except those that wait for other users. A row whose Rev has changed meanwhile stays as it is,
// because Accept may have added recipients.
func (j Journal) Finish(ctx context.Context, rows []IntakeRow) error {
	const done = `unnest(@seqs::bigint[], @revs::integer[]) AS done (seq, rev) WHERE i.seq = done.seq AND i.rev = done.rev AND ` + fenced
	seqs, revs := columnsOf(rows)
	args := pgx.NamedArgs{"epoch": j.epoch.Load(), "seqs": seqs, "revs": revs}
	var b pgx.Batch
	b.Queue(lockIntake, args)
	b.Queue(`DELETE FROM intake i USING `+done+` AND NOT EXISTS (SELECT FROM intake_waiting w WHERE w.seq = i.seq)`, args)
	b.Queue(`UPDATE intake i SET recipients = '{}' FROM `+done, args)
	return postgres.Fault("end rows of the intake journal", j.on.SendBatch(ctx, &b))
}

// idsOrNull returns ids as strings, nil when there are none. Nearly all rows have none, and null
// takes no room.
func idsOrNull(ids []vocab.ID) []string {
	if len(ids) == 0 {
		return nil
	}
	return texts(ids)
}

func columnsOf(rows []IntakeRow) (seqs []int64, revs []int32) {
	for _, r := range rows {
		seqs, revs = append(seqs, r.Seq), append(revs, r.Rev)
	}
	return seqs, revs
}

// intakeBytes is the size with which a row counts towards its payer's share. PostgreSQL knows
// both lengths without reading the values.
const intakeBytes = `octet_length(raw) + octet_length(fetched)`

// lockIntake is the first statement of every transaction that may remove rows. It waits for
// other such transactions, so that the next statements see their changes. So if a row waits for
// its last two users, and two transactions end these two waits, the second transaction removes
// the row.
const lockIntake = `SELECT FROM intake WHERE seq = ANY(@seqs) ORDER BY seq FOR UPDATE`

// Stall stores that rows wait for u, because u's database cannot take them now. The fault is
// Unavailable when another process has begun to serve the instance.
func (j Journal) Stall(ctx context.Context, u vocab.Username, seqs []int64) error {
	var serving bool // read in the same statement, because the epoch could change between two statements
	err := j.on.QueryRow(ctx, `WITH there AS MATERIALIZED (SELECT seq, payer, `+intakeBytes+` AS bytes FROM intake WHERE seq = ANY(@seqs) ORDER BY seq FOR KEY SHARE),
		waiting AS (INSERT INTO intake_waiting (username, seq, payer, bytes) SELECT @user, seq, payer, bytes FROM there WHERE `+fenced+` ON CONFLICT DO NOTHING)
		SELECT `+fenced, pgx.NamedArgs{"epoch": j.epoch.Load(), "user": u, "seqs": seqs}).Scan(&serving)
	if err == nil && !serving {
		return errFenced
	}
	return postgres.Fault("stall activities of "+u.String(), err)
}

// TakeOver finds the rows that an earlier process was still applying, and makes them wait for
// their recipients. It returns the number of these rows. It must be called before this process
// accepts any activity.
func (j Journal) TakeOver(ctx context.Context) (int, error) {
	return j.release(ctx, `recipients <> '{}' ORDER BY seq FOR UPDATE`, nil)
}

// Release makes rows wait for all their recipients, because the recipients' writers no longer
// apply these rows.
func (j Journal) Release(ctx context.Context, seqs []int64) error {
	_, err := j.release(ctx, `recipients <> '{}' AND seq = ANY(@seqs) ORDER BY seq FOR UPDATE`, seqs)
	return err
}

func (j Journal) release(ctx context.Context, which string, seqs []int64) (int, error) {
	tag, err := j.on.Exec(ctx, `WITH held AS MATERIALIZED (SELECT seq, recipients, payer, `+intakeBytes+` AS bytes FROM intake WHERE `+which+`),
		waiting AS (INSERT INTO intake_waiting (username, seq, payer, bytes) SELECT u, seq, payer, bytes FROM held, unnest(recipients) u WHERE `+fenced+` ON CONFLICT DO NOTHING)
		UPDATE intake i SET recipients = '{}', rev = rev + 1 FROM held WHERE i.seq = held.seq AND `+fenced, pgx.NamedArgs{"epoch": j.epoch.Load(), "seqs": seqs})
	return int(tag.RowsAffected()), postgres.Fault("take over rows of the intake journal", err)
}

// HeldIntake is a row that writers have yet to apply.
type HeldIntake struct {
	Seq int64
	Key IntakeKey
}

// ListHeld returns up to n rows that writers have yet to apply, in the order of their numbers. It
// returns only rows that arrived longer than age ago, and whose numbers are higher than the
// parameter after.
func (j Journal) ListHeld(ctx context.Context, age time.Duration, after int64, n int) ([]HeldIntake, error) {
	rows, err := j.on.Query(ctx, `SELECT seq, uri_digest, actor_digest FROM intake
		WHERE recipients <> '{}' AND received_at < now() - $1::interval AND seq > $2 ORDER BY seq LIMIT $3`, age, after, n)
	if err != nil {
		return nil, postgres.Fault("read the intake journal", err)
	}
	held, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h HeldIntake, err error) {
		var uri, actor []byte
		if err = row.Scan(&h.Seq, &uri, &actor); err == nil {
			h.Key = IntakeKey{[sha256.Size]byte(uri), [sha256.Size]byte(actor)}
		}
		return h, err
	})
	return held, postgres.Fault("read the intake journal", err)
}

// Journaled is an activity in the journal.
type Journaled struct {
	Since time.Time
	Users []vocab.Username // the users that still lack it
}

// mostNamed limits the number of rows that Find parses because their text contains an id.
const mostNamed = 100

// Find looks for an activity in the journal by its id. It returns the users that still lack the
// activity, or nil if the journal does not have it. If several actors use the id, their activities
// are returned as one. The key of an activity of a type that has versions is made from the id and
// the version. So if no row has the key of the id alone, Find parses the activities whose text
// contains the id, at most mostNamed of them.
func (j Journal) Find(ctx context.Context, id vocab.ID) (*Journaled, error) {
	const columns = `SELECT received_at AS since, ARRAY(SELECT unnest(recipients) UNION SELECT username FROM intake_waiting w WHERE w.seq = i.seq ORDER BY 1) AS users`
	all, err := postgres.Collect[Journaled](ctx, j.on, "look into the journal", columns+` FROM intake i WHERE uri_digest = $1 ORDER BY received_at`, schema.Digest(id))
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		named, err := postgres.Collect[struct {
			Journaled
			Raw string
		}](ctx, j.on, "look into the journal", columns+`, raw FROM intake i WHERE strpos(replace(raw, '\/', '/'), $1) > 0 ORDER BY received_at LIMIT $2`, string(id), mostNamed)
		if err != nil {
			return nil, err
		}
		for _, n := range named {
			if a, err := vocab.ParseActivity([]byte(n.Raw)); err == nil && a.ID.Same(id) {
				all = append(all, n.Journaled)
			}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	w := all[0]
	for _, more := range all[1:] {
		w.Users = append(w.Users, more.Users...)
	}
	return &w, nil
}

// IsEmpty reports whether nothing is in the journal.
func (j Journal) IsEmpty(ctx context.Context) (empty bool, err error) {
	err = j.on.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM intake)`).Scan(&empty)
	return empty, postgres.Fault("look into the journal", err)
}

// IntakeCounts says how much is in the journal.
type IntakeCounts struct {
	Rows    int
	Waiting int       // how many rows wait for each user, added up over all users
	Oldest  time.Time // when the first row came; zero when there is none
}

// Count counts the rows of the journal.
func (j Journal) Count(ctx context.Context) (IntakeCounts, error) {
	var n IntakeCounts
	var oldest *time.Time
	err := j.on.QueryRow(ctx, `SELECT (SELECT count(*) FROM intake), (SELECT count(*) FROM intake_waiting),
		(SELECT received_at FROM intake ORDER BY seq LIMIT 1)`).Scan(&n.Rows, &n.Waiting, &oldest)
	if oldest != nil {
		n.Oldest = *oldest
	}
	return n, postgres.Fault("count the intake journal", err)
}
