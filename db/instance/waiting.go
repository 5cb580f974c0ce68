package instance

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// StalledUsers returns the users that have activities waiting for them, sorted by name. The
// parameter except has the numbers of rows that do not count, each with the users for which it does
// not.
func (j Journal) StalledUsers(ctx context.Context, except map[int64][]vocab.Username) ([]vocab.Username, error) {
	var users []vocab.Username
	var seqs []int64
	for seq, of := range except {
		users, seqs = append(users, of...), append(seqs, slices.Repeat([]int64{seq}, len(of))...)
	}
	return postgres.CollectColumn[vocab.Username](ctx, j.on, "list stalled users",
		`SELECT username FROM users u WHERE EXISTS (SELECT FROM intake_waiting w WHERE w.username = u.username
			AND (w.username, w.seq) NOT IN (SELECT * FROM unnest(@users::text[], @seqs::bigint[]))) ORDER BY username`,
		pgx.NamedArgs{"users": names(users), "seqs": seqs})
}

// Waiting is an activity that waits for a user.
type Waiting struct {
	IntakeRow
	Raw        []byte
	Fetched    []byte
	Named      bool // it came to the user's own inbox, or addresses the user
	ReceivedAt time.Time
	SignedAt   *time.Time // when its own actor signed the request; nil: unknown
	Forwarders []vocab.ID // the actors that sent the activity, unless its own actor sent it, too
	Payer      string     // the party that caused it
	Bytes      int64      // the size of Raw and Fetched when the activity began to wait
}

// ListWaiting returns up to n activities that wait for u, in the order of arrival, with numbers
// higher than after. The parameter size limits their total bytes. But the first is returned even
// if it is larger.
func (j Journal) ListWaiting(ctx context.Context, u vocab.Username, after int64, n, size int) ([]Waiting, error) {
	return postgres.Collect[Waiting](ctx, j.on, "read activities that wait for "+u.String(), `SELECT seq, rev, convert_to(raw, 'UTF8') AS raw,
			convert_to(fetched, 'UTF8') AS fetched, @user = ANY(named) AS named, received_at, signed_at, forwarders, payer, bytes FROM (
			SELECT seq, rev, raw, fetched, named, received_at, signed_at, forwarders, w.payer, w.bytes, sum(octet_length(raw) + octet_length(fetched)) OVER before AS size, row_number() OVER before AS place
			FROM (SELECT seq, payer, bytes FROM intake_waiting WHERE username = @user AND seq > @after ORDER BY seq LIMIT @n) w JOIN intake i USING (seq)
			WINDOW before AS (ORDER BY i.seq)) page
		WHERE size <= @size OR place = 1 ORDER BY seq`, pgx.NamedArgs{"user": u, "after": after, "n": n, "size": size})
}

// forsaken removes those of the rows @seqs that no writer has to apply and that wait for no user.
const forsaken = `DELETE FROM intake i WHERE seq = ANY(@seqs) AND recipients = '{}' AND NOT EXISTS (SELECT FROM intake_waiting w WHERE w.seq = i.seq)`

// FinishWaiting ends the wait of u for these rows, and returns how many waits it ended. A row
// whose Rev has changed meanwhile goes on waiting, because it may name u now.
func (j Journal) FinishWaiting(ctx context.Context, u vocab.Username, rows []IntakeRow) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	seqs, revs := columnsOf(rows)
	args := pgx.NamedArgs{"user": u, "seqs": seqs, "revs": revs}
	var n int
	var b pgx.Batch
	b.Queue(lockIntake, args)
	b.Queue(`DELETE FROM intake_waiting w USING intake i JOIN unnest(@seqs::bigint[], @revs::integer[]) AS done (seq, rev) USING (seq, rev)
		WHERE w.username = @user AND w.seq = i.seq`, args).Exec(func(tag pgconn.CommandTag) error {
		n = int(tag.RowsAffected())
		return nil
	})
	b.Queue(forsaken, args)
	return n, postgres.Fault("end the wait of "+u.String(), j.on.SendBatch(ctx, &b))
}

// DropWaiting ends the wait of u for all rows, a thousand at a time, and returns how many waits
// it ended.
func (j Journal) DropWaiting(ctx context.Context, u vocab.Username) (int, error) {
	for dropped := 0; ; {
		waiting, err := postgres.Collect[IntakeRow](ctx, j.on, "read activities that wait for "+u.String(),
			`SELECT seq, rev FROM intake_waiting JOIN intake USING (seq) WHERE username = $1 ORDER BY seq LIMIT 1000`, u)
		if err != nil || len(waiting) == 0 {
			return dropped, err
		}
		n, err := j.FinishWaiting(ctx, u, waiting)
		if dropped += n; err != nil {
			return dropped, err
		}
	}
}

// Backlog counts the activities that wait for a user and that one payer caused.
type Backlog struct {
	User       vocab.Username `db:"username"`
	Payer      string
	Activities int64
	Bytes      int64
}

// Backlogs returns the Backlog of each pair of a user and a payer.
func (j Journal) Backlogs(ctx context.Context) ([]Backlog, error) {
	return postgres.Collect[Backlog](ctx, j.on, "count waiting activities",
		`SELECT username, payer, count(*) AS activities, sum(bytes)::bigint AS bytes FROM intake_waiting GROUP BY username, payer`)
}

// CountWaiting returns how many activities wait for u.
func (j Journal) CountWaiting(ctx context.Context, u vocab.Username) (n int, err error) {
	err = j.on.QueryRow(ctx, `SELECT count(*) FROM intake_waiting WHERE username = $1`, u).Scan(&n)
	return n, postgres.Fault("count activities that wait for "+u.String(), err)
}
