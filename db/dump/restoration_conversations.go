package dump

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// encryptedPair is an encrypted conversation of two in the database that is put aside.
type encryptedPair struct {
	ID                     uuid.UUID
	URI, Owner, Partner    vocab.ID // Owner is the user
	CreatedAt, EncryptedAt time.Time
	ClosedAt               *time.Time
	IsLast                 bool // no other conversation continues it
}

// keepEncrypted keeps the conversation of two actors encrypted if they encrypted it after the
// backup. The backup has no MLS group for such a conversation. So keepEncrypted closes the
// conversation in the restored database, and only a successor can continue it. Encrypted
// conversations of two that were closed after the backup are closed, too.
func keepEncrypted(ctx context.Context, from, to *pgx.Conn) error {
	all, err := postgres.Collect[encryptedPair](ctx, from, "read encrypted conversations", `WITH pairs AS (
			SELECT *, coalesce((SELECT m.actor_uri FROM conversation_members m WHERE m.conversation_id = c.id AND m.actor_uri <> c.partner_uri LIMIT 1), c.host_uri) AS owner
			FROM conversations c WHERE mode = 'encrypted' AND partner_uri IS NOT NULL)
		SELECT id, CASE WHEN host_uri = owner THEN uri ELSE owner || '/conversations/' || id::text END AS uri, owner, partner_uri AS partner, created_at, coalesce(upgraded_at, created_at) AS encrypted_at,
			closed_at, successor_uri IS NULL AS is_last FROM pairs ORDER BY id`)
	if lacksTable(err) || postgres.HasCode(err, "42703") { // of a release that had no conversations of two
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range all {
		if err := p.keep(ctx, to); err != nil {
			return err
		}
	}
	for _, table := range []string{"mls_conversations", "mls_joined"} {
		_, err := to.Exec(ctx, `UPDATE `+table+` SET status = 'closed', reset_group_id = NULL WHERE status <> 'closed' AND id IN (SELECT id FROM conversations WHERE closed_at IS NOT NULL)`)
		if err != nil {
			return err
		}
	}
	return nil
}

func (p encryptedPair) keep(ctx context.Context, to *pgx.Conn) error {
	if p.ClosedAt != nil {
		_, err := to.Exec(ctx, `WITH closed AS (UPDATE conversations SET closed_at = $2, entries = entries + 1 WHERE id = $1 AND mode = 'encrypted' AND closed_at IS NULL RETURNING id, entries)
			`+addClosed, p.ID, *p.ClosedAt)
		if err != nil {
			return err
		}
	}
	if !p.IsLast {
		return nil
	}
	_, err := to.Exec(ctx, `WITH closed AS (UPDATE conversations SET mode = 'encrypted', group_id = coalesce(group_id, 'urn:uuid:' || gen_random_uuid()::text), upgraded_at = $3,
			closed_at = coalesce($2::timestamptz, now()), entries = entries + 1 WHERE partner_uri = $1 AND successor_uri IS NULL AND mode = 'federated' RETURNING id, entries)
		`+addClosed, p.Partner, p.ClosedAt, p.EncryptedAt)
	if err != nil {
		return err
	}
	_, err = to.Exec(ctx, `WITH closed AS (INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at, upgraded_at, partner_uri, closed_at, entries)
			VALUES ($1, $3, 'encrypted', $4, 'urn:uuid:' || gen_random_uuid()::text, $6, $7, $5, coalesce($2::timestamptz, now()), 1) ON CONFLICT DO NOTHING RETURNING id, entries),
		members AS (INSERT INTO conversation_members (conversation_id, actor_uri, role, joined_seq)
			SELECT id, m.actor, m.role, 0 FROM closed, (VALUES ($4, 'admin'), ($5, 'member')) AS m (actor, role))
		`+addClosed, p.ID, p.ClosedAt, p.URI, p.Owner, p.Partner, p.CreatedAt, p.EncryptedAt)
	return err
}

// addClosed is the end of a statement. It adds an entry for the end of each conversation in closed.
// The second argument of the statement is the time of the end, null for now.
const addClosed = `INSERT INTO conversation_entries (conversation_id, n, seq, kind, own, at) SELECT id, entries,
	coalesce((SELECT last_seq FROM mls_conversations m WHERE m.id = closed.id), (SELECT whole_seq FROM mls_joined j WHERE j.id = closed.id), 0), 'closed', false, coalesce($2::timestamptz, now()) FROM closed`
