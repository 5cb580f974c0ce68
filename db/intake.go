package db

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Intake is an accepted activity on its way to its recipients.
type Intake struct {
	Key        IntakeKey
	Number     int64            // of its arrival, by ArrivalNumber; 0 when it is given back: then it is older than all that comes
	ReceivedAt time.Time        // zero for now
	Raw        []byte           // the activity as it came
	Fetched    []byte           // what its handler needs from other servers: a JSON object, by id
	Recipients []vocab.Username // those that the writers of this process drive
	Waiting    []vocab.Username // those who cannot take it now
	Named      []vocab.Username // those of both whose own inbox it came to, or who are addressed
	Forwarders []vocab.ID       // who sent it, when that is not its actor
	Payer      string           // who caused it; empty for this server itself
}

// IntakeKey stands for an activity of an actor: nobody can occupy another's id. Ids can be long, so it holds digests.
type IntakeKey struct{ URI, Actor [sha256.Size]byte }

// KeyOf returns the key of an actor's activity.
func KeyOf(activity, actor vocab.ID) IntakeKey {
	return IntakeKey{[sha256.Size]byte(digest(activity)), [sha256.Size]byte(digest(actor))}
}

// IntakeRow names a row of the journal as it was at one moment: rev counts what was merged into it.
type IntakeRow struct {
	Seq int64 // the number of its arrival
	Rev int32
}

// fenced holds while this process serves the instance, or none has done so since.
const fenced = `EXISTS (SELECT FROM serving WHERE epoch = $1)`

var errFenced = fault.New(fault.Unavailable, "another process serves the instance")

const (
	firstArrival = 1 << 40 // numbers below are the sequence's own, for what is given back
	arrivalGap   = 1 << 20 // more than a process that has lost the lock may still be writing
)

// ArrivalNumber returns the number of the next activity that arrives in this process: one recipient's activities take
// effect in the order of these numbers, whichever way each of them goes. It needs no round trip.
func (c *Cluster) ArrivalNumber() int64 { return c.arrivals.Add(1) }

// NextArrival returns a number that none of the activities that have arrived exceeds or has.
func (c *Cluster) NextArrival() int64 { return c.arrivals.Load() + 1 }

// continueArrivals lets this process count on from what the journal holds, on the connection that has the serve lock.
func (c *Cluster) continueArrivals(ctx context.Context, conn *pgx.Conn) error {
	var last int64
	if err := conn.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM intake`).Scan(&last); err != nil {
		return postgres.Fault("read the last arrival", err)
	}
	c.arrivals.Store(max(c.arrivals.Load(), last+arrivalGap))
	return nil
}

// Accept makes an activity durable for its recipients, in one round trip. What is in the journal already is merged with
// it. The fault is Unavailable when another process has begun to serve.
func (c *Cluster) Accept(ctx context.Context, in Intake) (IntakeRow, error) {
	return c.accept(ctx, in, fenced, c.epoch.Load())
}

// Resubmit is Accept for what an administrator gives back, beside the process that serves.
func (c *Cluster) Resubmit(ctx context.Context, in Intake) error {
	_, err := c.accept(ctx, in, `$1::bigint IS NULL`, nil)
	return err
}

func (c *Cluster) accept(ctx context.Context, in Intake, condition string, epoch any) (row IntakeRow, err error) {
	err = c.instance.QueryRow(ctx, `WITH taken AS (
			INSERT INTO intake (seq, uri_digest, actor_digest, raw, fetched, recipients, named, received_at, forwarders, payer) OVERRIDING SYSTEM VALUE
			SELECT coalesce(nullif($9::bigint, 0), nextval(pg_get_serial_sequence('intake', 'seq'))), $2, $3, $4, $5, $6, $7, coalesce($10::timestamptz, now()), $11, $12 WHERE `+condition+`
			ON CONFLICT (uri_digest, actor_digest) DO UPDATE SET rev = intake.rev + 1,
				fetched = CASE intake.fetched WHEN '{}' THEN excluded.fetched ELSE intake.fetched END,
				recipients = ARRAY(SELECT unnest(intake.recipients) UNION SELECT unnest(excluded.recipients)),
				named = ARRAY(SELECT unnest(intake.named) UNION SELECT unnest(excluded.named)),
				forwarders = nullif(ARRAY(SELECT unnest(intake.forwarders) UNION SELECT unnest(excluded.forwarders)), '{}')
			RETURNING seq, rev, payer, `+intakeBytes+` AS bytes),
		waiting AS (INSERT INTO intake_waiting (username, seq, payer, bytes) SELECT u, seq, payer, bytes FROM taken, unnest($8::text[]) u ON CONFLICT DO NOTHING)
		SELECT seq, rev FROM taken`,
		epoch, in.Key.URI[:], in.Key.Actor[:], string(in.Raw), string(in.Fetched), names(in.Recipients), names(in.Named), names(in.Waiting), in.Number, orNull(in.ReceivedAt), idsOrNull(in.Forwarders), in.Payer).Scan(&row.Seq, &row.Rev)
	if postgres.IsNoRows(err) {
		return row, errFenced
	}
	return row, postgres.Fault("write the intake journal", err)
}

// FinishIntake ends rows that no writer drives any more. A row that others wait for stays for them, and one that was
// merged with since stays as it is.
func (c *Cluster) FinishIntake(ctx context.Context, rows []IntakeRow) error {
	seqs, revs := columnsOf(rows)
	const done = `unnest($2::bigint[], $3::integer[]) AS done (seq, rev) WHERE i.seq = done.seq AND i.rev = done.rev AND ` + fenced
	epoch := c.epoch.Load()
	var b pgx.Batch
	b.Queue(lockIntake, seqs)
	b.Queue(`DELETE FROM intake i USING `+done+` AND NOT EXISTS (SELECT FROM intake_waiting w WHERE w.seq = i.seq)`, epoch, seqs, revs)
	b.Queue(`UPDATE intake i SET recipients = '{}' FROM `+done, epoch, seqs, revs)
	return postgres.Fault("end rows of the intake journal", c.instance.send(ctx, &b))
}

// idsOrNull returns ids for a column that is null where there are none: nearly everywhere, and null takes no room.
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

// intakeBytes is what a row counts for whoever caused it. Neither value is read for that.
const intakeBytes = `octet_length(raw) + octet_length(fetched)`

// lockIntake is the first statement of every transaction that may remove rows: what the next ones see is then settled,
// and of two that remove the last two claims to a row the second one removes the row.
const lockIntake = `SELECT FROM intake WHERE seq = ANY($1) ORDER BY seq FOR UPDATE`

// forsaken removes those of the rows that nobody drives or waits for.
const forsaken = `DELETE FROM intake i WHERE seq = ANY($1) AND recipients = '{}' AND NOT EXISTS (SELECT FROM intake_waiting w WHERE w.seq = i.seq)`

// Park makes rows wait for u. The fault is Unavailable when another process has begun to serve the instance.
func (c *Cluster) Park(ctx context.Context, u vocab.Username, seqs []int64) error {
	var serving bool // as of this very statement: between two the epoch could change
	err := c.instance.QueryRow(ctx, `WITH there AS MATERIALIZED (SELECT seq, payer, `+intakeBytes+` AS bytes FROM intake WHERE seq = ANY($3) ORDER BY seq FOR KEY SHARE),
		waiting AS (INSERT INTO intake_waiting (username, seq, payer, bytes) SELECT $2, seq, payer, bytes FROM there WHERE `+fenced+` ON CONFLICT DO NOTHING)
		SELECT `+fenced, c.epoch.Load(), u, seqs).Scan(&serving)
	if err == nil && !serving {
		return errFenced
	}
	return postgres.Fault("park what a user cannot take", err)
}

// TakeOver makes every row wait that the writers of an earlier process drove, and returns how many there were. It must
// be called before this process accepts anything.
func (c *Cluster) TakeOver(ctx context.Context) (int, error) {
	return c.release(ctx, `recipients <> '{}' ORDER BY seq FOR UPDATE`)
}

// Release makes rows wait for the users that no writer drives any more: all the recipients of the rows.
func (c *Cluster) Release(ctx context.Context, seqs []int64) error {
	_, err := c.release(ctx, `recipients <> '{}' AND seq = ANY($2) ORDER BY seq FOR UPDATE`, seqs)
	return err
}

func (c *Cluster) release(ctx context.Context, which string, args ...any) (int, error) {
	tag, err := c.instance.Exec(ctx, `WITH held AS MATERIALIZED (SELECT seq, recipients, payer, `+intakeBytes+` AS bytes FROM intake WHERE `+which+`),
		waiting AS (INSERT INTO intake_waiting (username, seq, payer, bytes) SELECT u, seq, payer, bytes FROM held, unnest(recipients) u WHERE `+fenced+` ON CONFLICT DO NOTHING)
		UPDATE intake i SET recipients = '{}', rev = rev + 1 FROM held WHERE i.seq = held.seq AND `+fenced, append([]any{c.epoch.Load()}, args...)...)
	return int(tag.RowsAffected()), postgres.Fault("take over rows of the intake journal", err)
}

// HeldIntake is a row that some writer is to drive.
type HeldIntake struct {
	Seq int64
	Key IntakeKey
}

// HeldIntake returns up to n rows after a number that writers are to drive, and that are older than age.
func (c *Cluster) HeldIntake(ctx context.Context, age time.Duration, after int64, n int) ([]HeldIntake, error) {
	rows, err := c.instance.Query(ctx, `SELECT seq, uri_digest, actor_digest FROM intake
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

// ParkedUsers returns the users that something waits for.
func (c *Cluster) ParkedUsers(ctx context.Context) ([]vocab.Username, error) {
	rows, err := c.instance.Query(ctx, `SELECT username FROM users u WHERE EXISTS (SELECT FROM intake_waiting w WHERE w.username = u.username) ORDER BY username`)
	if err != nil {
		return nil, postgres.Fault("read who waits", err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowTo[vocab.Username])
	return users, postgres.Fault("read who waits", err)
}

// Waiting is an activity that waits for a user.
type Waiting struct {
	IntakeRow
	Raw        []byte
	Fetched    []byte
	Named      bool // the user's own inbox was addressed, or the user
	ReceivedAt time.Time
	Forwarders []vocab.ID // who sent it, when that is not its actor
	Payer      string     // who caused it
	Bytes      int64      // of its body and of what was fetched for it, when it began to wait
}

// WaitingFor returns up to n activities that wait for u after a number, in the order they came: as many as have up to
// size bytes together, and one at least.
func (c *Cluster) WaitingFor(ctx context.Context, u vocab.Username, after int64, n, size int) ([]Waiting, error) {
	rows, err := c.instance.Query(ctx, `SELECT seq, rev, convert_to(raw, 'UTF8'), convert_to(fetched, 'UTF8'), $1 = ANY(named), received_at, forwarders, payer, bytes FROM (
			SELECT seq, rev, raw, fetched, named, received_at, forwarders, w.payer, w.bytes, sum(octet_length(raw) + octet_length(fetched)) OVER before AS size, row_number() OVER before AS place
			FROM (SELECT seq, payer, bytes FROM intake_waiting WHERE username = $1 AND seq > $2 ORDER BY seq LIMIT $3) w JOIN intake i USING (seq)
			WINDOW before AS (ORDER BY i.seq)) page
		WHERE size <= $4 OR place = 1 ORDER BY seq`, u, after, n, size)
	if err != nil {
		return nil, postgres.Fault("read what waits for "+u.String(), err)
	}
	page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Waiting])
	return page, postgres.Fault("read what waits for "+u.String(), err)
}

// FinishWaiting ends the wait of u for these rows, and returns for how many u waited. For one that was merged with since,
// u waits on: the user may be named now who was not.
func (c *Cluster) FinishWaiting(ctx context.Context, u vocab.Username, rows []IntakeRow) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	seqs, revs := columnsOf(rows)
	var n int
	var b pgx.Batch
	b.Queue(lockIntake, seqs)
	b.Queue(`DELETE FROM intake_waiting w USING intake i JOIN unnest($2::bigint[], $3::integer[]) AS done (seq, rev) USING (seq, rev)
		WHERE w.username = $1 AND w.seq = i.seq`, u, seqs, revs).Exec(func(tag pgconn.CommandTag) error {
		n = int(tag.RowsAffected())
		return nil
	})
	b.Queue(forsaken, seqs)
	return n, postgres.Fault("end what waited for "+u.String(), c.instance.send(ctx, &b))
}

// DropWaiting ends the wait of u for everything, a thousand at a time.
func (c *Cluster) DropWaiting(ctx context.Context, u vocab.Username) (int, error) {
	for dropped := 0; ; {
		rows, err := c.instance.Query(ctx, `SELECT seq, rev FROM intake_waiting JOIN intake USING (seq) WHERE username = $1 ORDER BY seq LIMIT 1000`, u)
		if err != nil {
			return dropped, postgres.Fault("read what waits for "+u.String(), err)
		}
		waiting, err := pgx.CollectRows(rows, pgx.RowToStructByPos[IntakeRow])
		if err != nil || len(waiting) == 0 {
			return dropped, postgres.Fault("read what waits for "+u.String(), err)
		}
		n, err := c.FinishWaiting(ctx, u, waiting)
		if dropped += n; err != nil {
			return dropped, err
		}
	}
}

// Backlog is how much of one payer's waits for a user.
type Backlog struct {
	User       vocab.Username
	Payer      string
	Activities int64
	Bytes      int64
}

// Backlogs returns how much waits for each user, and who caused it.
func (c *Cluster) Backlogs(ctx context.Context) ([]Backlog, error) {
	rows, err := c.instance.Query(ctx, `SELECT username, payer, count(*), sum(bytes)::bigint FROM intake_waiting GROUP BY username, payer`)
	if err != nil {
		return nil, postgres.Fault("count what waits", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Backlog])
	return all, postgres.Fault("count what waits", err)
}

// CountWaiting returns how many activities wait for u.
func (c *Cluster) CountWaiting(ctx context.Context, u vocab.Username) (n int, err error) {
	err = c.instance.QueryRow(ctx, `SELECT count(*) FROM intake_waiting WHERE username = $1`, u).Scan(&n)
	return n, postgres.Fault("count what waits for "+u.String(), err)
}

// IntakeCounts is how much lies in the journal.
type IntakeCounts struct {
	Rows    int
	Waiting int       // over all users
	Oldest  time.Time // when the first row came; zero when there is none
}

// CountIntake counts what lies in the journal.
func (c *Cluster) CountIntake(ctx context.Context) (IntakeCounts, error) {
	var n IntakeCounts
	var oldest *time.Time
	err := c.instance.QueryRow(ctx, `SELECT (SELECT count(*) FROM intake), (SELECT count(*) FROM intake_waiting),
		(SELECT received_at FROM intake ORDER BY seq LIMIT 1)`).Scan(&n.Rows, &n.Waiting, &oldest)
	if oldest != nil {
		n.Oldest = *oldest
	}
	return n, postgres.Fault("count the intake journal", err)
}
