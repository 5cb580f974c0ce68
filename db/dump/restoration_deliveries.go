package dump

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
)

// settle prepares the deliveries, conversations and key packages of a restored user's database for
// use.
func (r *Restoration) settle(ctx context.Context, database string) error {
	conn, err := pgx.ConnectConfig(ctx, r.d.server.Config(database))
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
	if err := fenceKeyPackages(ctx, conn); err != nil {
		return postgres.Fault("fence key packages", err)
	}
	return postgres.Fault("hand over again", r.handOverAgain(ctx, conn))
}

// fence marks unsent deliveries to other servers as skipped, because most of them were sent after
// the backup was taken. It also marks them as tried, so that a later Delete is sent to the same
// servers.
func (r *Restoration) fence(ctx context.Context, conn *pgx.Conn) error {
	tag, err := conn.Exec(ctx, `UPDATE deliveries SET status = 'skipped', tried = true, lease_owner = NULL, last_error = $1, updated_at = now()
		WHERE status IN ('pending', 'parked') AND host <> ''`, "not sent: restored from the backup of "+r.of.UTC().Format(time.RFC3339))
	r.fenced += tag.RowsAffected()
	return err
}

// fenceConversations makes each open conversation begin a new term and continue in a new MLS group.
// Otherwise MLS epochs that were assigned after the backup would be assigned again, although
// members have keys of them. It also moves the generation of the conversation, and the numbers of
// its log, past those that may have been assigned after the backup. If a number were assigned
// twice, a member's server that holds the first message with it would conclude that the host tells
// its members different things.
func fenceConversations(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `UPDATE mls_conversations SET term = term + 1, status = 'reset_pending', reset_group_id = 'urn:uuid:' || gen_random_uuid(), updated_at = now(),
			last_seq = `+moved("last_seq", clockNumber, numberGap)+`, generation = `+moved("generation", clockGeneration, generationGap)+`
		WHERE status <> 'closed'`)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `UPDATE mls_joined j SET last_seq = n.last_seq, whole_seq = n.last_seq FROM (
			SELECT id, `+moved("last_seq", clockNumber, numberGap)+` AS last_seq FROM mls_joined JOIN conversations USING (id) WHERE host_uri = ''
		) AS n WHERE n.id = j.id`) // without a host this server numbers the messages
	return err
}

// fenceKeyPackages marks the one-time key packages as claimed, because any of them may have been
// claimed after the backup, and none may be claimed twice. They are claimed by nobody, so they
// count for no actor. They are not revoked, because Welcomes that were made for them still count.
// Until the devices publish others, the packages of last resort are claimed. fenceKeyPackages also
// lets the user be told again that few packages are left. If the user was told before the backup,
// the packages that the devices published then may not be in the backup.
func fenceKeyPackages(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `UPDATE mls_key_packages SET state = 'claimed', claimed_by = '', claimed_at = now() WHERE state = 'available' AND NOT last_resort`)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `UPDATE mls_key_packages SET told_low = false WHERE told_low`)
	return err
}

// clocksApart is the largest expected difference between the clocks of the serving engine and of
// the process that takes a backup.
const clocksApart = time.Minute

// handOverAgain makes deliveries to users of this instance pending and due now. It does so with
// the deliveries that were pending, and with those that were delivered since the backup began.
// The recipients' databases and the journal may have been backed up before these deliveries
// reached them. A delivery that arrives twice takes effect once. handOverAgain leaves out
// delivered posts that were deleted or edited since, because their body is gone. The Delete or
// Update is delivered again like other activities.
func (r *Restoration) handOverAgain(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `UPDATE deliveries d SET status = 'pending', lease_owner = NULL, next_at = now() FROM delivery_jobs j
		WHERE j.id = d.job_id AND d.host = '' AND (d.status = 'pending' OR d.status = 'delivered' AND d.updated_at >= $1 AND j.body <> '')`, r.of.Add(-clocksApart))
	return err
}
