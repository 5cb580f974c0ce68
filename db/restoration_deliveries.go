package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
)

// settle decides what is sent out of a restored database, and which conversations go on in it.
func (r *Restoration) settle(ctx context.Context, database string) error {
	conn, err := pgx.ConnectConfig(ctx, r.c.server.Config(database))
	if err != nil {
		return postgres.Fault("open database "+database, err)
	}
	defer postgres.Shut(conn)
	if err := r.fence(ctx, conn); err != nil {
		return postgres.Fault("fence deliveries", err)
	}
	if err := fenceConversations(ctx, conn); err != nil {
		return postgres.Fault("fence conversations", err)
	}
	return postgres.Fault("hand over again", r.handOverAgain(ctx, conn))
}

// fence keeps what was owed to other servers from being sent by itself: most of it was sent after
// the backup was taken, and counts as tried, so that a Delete goes where it went.
func (r *Restoration) fence(ctx context.Context, conn *pgx.Conn) error {
	tag, err := conn.Exec(ctx, `UPDATE deliveries SET status = 'skipped', tried = true, lease_owner = NULL, last_error = $1, updated_at = now()
		WHERE status IN ('pending', 'parked') AND host <> ''`, "not sent: restored from the backup of "+r.of.UTC().Format(time.RFC3339))
	r.fenced += tag.RowsAffected()
	return err
}

// fenceConversations keeps epochs that were handed out after the backup from being handed out
// again: members have keys of them. Each conversation begins a term, and goes on in a new MLS
// group.
func fenceConversations(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `UPDATE mls_conversations SET term = term + 1, status = 'reset_pending', reset_group_id = 'urn:uuid:' || gen_random_uuid(), updated_at = now()
		WHERE status <> 'closed'`)
	return err
}

// clocksApart bounds how far the clocks of a serving engine and of the backup beside it differ.
const clocksApart = time.Minute

// handOverAgain owes users of this instance what they were owed, and what they were handed after
// the backup began: the snapshots of their databases, and that of the journal, may be older than
// this one. It takes effect once, however often it comes. Of a post that was deleted or edited
// since there are no words to hand over; what says so is handed over like the rest.
func (r *Restoration) handOverAgain(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `UPDATE deliveries d SET status = 'pending', lease_owner = NULL, next_at = now() FROM delivery_jobs j
		WHERE j.id = d.job_id AND d.host = '' AND (d.status = 'pending' OR d.status = 'delivered' AND d.updated_at >= $1 AND j.body <> '')`, r.of.Add(-clocksApart))
	return err
}
