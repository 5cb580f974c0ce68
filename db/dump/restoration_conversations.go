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
	ID                        uuid.UUID
	URI, Host, Owner, Partner vocab.ID // Owner is the user
	GroupID                   string
	CreatedAt, EncryptedAt    time.Time
	ClosedAt                  *time.Time
	IsLast                    bool     // no other conversation continues it
	Successor                 vocab.ID // the conversation of the two that continues it; empty when there is none
	Generation                int32
	Term                      int32
	Epoch, LastSeq, RosterSeq int64
	FormerGroups              []string
}

// keepEncrypted keeps the conversation of two actors encrypted if they encrypted it after the
// backup. The backup has no MLS group for such a conversation. So keepEncrypted closes the
// conversation in the restored database, and only a successor can continue it. The conversation
// keeps its URI and its host, because the partner knows it by these, and a successor names it.
// Conversations of two that were closed or continued after the backup are closed or continued,
// too.
func keepEncrypted(ctx context.Context, from, to *pgx.Conn) error {
	all, err := postgres.Collect[encryptedPair](ctx, from, "read encrypted conversations", `WITH pairs AS (
			SELECT *, coalesce((SELECT m.actor_uri FROM conversation_members m WHERE m.conversation_id = c.id AND m.actor_uri <> c.partner_uri LIMIT 1), c.host_uri) AS owner
			FROM conversations c WHERE mode = 'encrypted' AND partner_uri IS NOT NULL)
		SELECT p.id, p.uri, p.host_uri AS host, p.owner, p.partner_uri AS partner, p.group_id, p.created_at, coalesce(p.upgraded_at, p.created_at) AS encrypted_at, p.closed_at,
			p.successor_uri IS NULL AS is_last, coalesce((SELECT n.uri FROM pairs n WHERE n.uri = p.successor_uri AND n.partner_uri = p.partner_uri), '') AS successor,
			coalesce(h.generation, j.generation, 0) AS generation, coalesce(h.term, 0) AS term, coalesce(h.epoch, j.epoch, 0) AS epoch, coalesce(h.last_seq, j.last_seq, 0) AS last_seq,
			coalesce(j.roster_seq, 0) AS roster_seq, coalesce(h.former_groups, j.former_groups, '{}') AS former_groups
		FROM pairs p LEFT JOIN mls_conversations h USING (id) LEFT JOIN mls_joined j USING (id) ORDER BY p.successor_uri IS NULL, p.id`)
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
	if err := p.keepEnd(ctx, to); err != nil {
		return err
	}
	if !p.IsLast && p.Successor == "" {
		return nil
	}
	id, err := p.encrypt(ctx, to)
	if err == nil && id == uuid.Nil && p.IsLast {
		id, err = p.add(ctx, to)
	}
	if err != nil || id == uuid.Nil {
		return err
	}
	if err := p.addState(ctx, to, id); err != nil {
		return err
	}
	_, err = to.Exec(ctx, `WITH closed AS (UPDATE conversations SET entries = entries + 1 WHERE id = $1 RETURNING id, entries) `+addClosed, id, p.ClosedAt)
	return err
}

// keepEnd closes the conversation if it was encrypted at the time of the backup and was closed
// since, and gives it its successor.
func (p encryptedPair) keepEnd(ctx context.Context, to *pgx.Conn) error {
	if p.ClosedAt == nil {
		return nil
	}
	_, err := to.Exec(ctx, `WITH closed AS (UPDATE conversations SET closed_at = $2, entries = entries + 1 WHERE id = $1 AND mode = 'encrypted' AND closed_at IS NULL RETURNING id, entries)
		`+addClosed, p.ID, *p.ClosedAt)
	if err == nil && p.Successor != "" {
		_, err = to.Exec(ctx, `UPDATE conversations SET successor_uri = $2 WHERE id = $1 AND mode = 'encrypted' AND successor_uri IS NULL`, p.ID, p.Successor)
	}
	return err
}

// freeGroup is the group of the conversation, or another one if the restored database has a
// conversation with that group, because a group has only one conversation.
const freeGroup = `CASE WHEN EXISTS (SELECT FROM conversations o WHERE o.group_id = @group AND o.confirmed AND o.id <> @id) THEN 'urn:uuid:' || gen_random_uuid()::text ELSE @group END`

func (p encryptedPair) args() pgx.NamedArgs {
	return pgx.NamedArgs{"id": p.ID, "uri": p.URI, "host": p.Host, "owner": p.Owner, "partner": p.Partner, "group": p.GroupID, "created": p.CreatedAt, "encrypted": p.EncryptedAt,
		"closed": p.ClosedAt, "last": p.IsLast, "successor": p.Successor}
}

// encrypt makes the conversation encrypted and closes it, if the backup has it unencrypted. It
// returns uuid.Nil if the backup has no such conversation.
func (p encryptedPair) encrypt(ctx context.Context, to *pgx.Conn) (uuid.UUID, error) {
	return p.change(ctx, to, `WITH closed AS (UPDATE conversations c SET mode = 'encrypted', host_uri = @host, group_id = `+freeGroup+`, upgraded_at = @encrypted, closed_at = coalesce(@closed::timestamptz, now()),
			successor_uri = nullif(@successor, ''), uri = CASE WHEN EXISTS (SELECT FROM conversations o WHERE o.uri = @uri AND o.id <> c.id) THEN uri ELSE @uri END
			WHERE partner_uri = @partner AND (id = @id OR @last::boolean) AND successor_uri IS NULL AND mode = 'federated' RETURNING id),
		roles AS (UPDATE conversation_members SET role = CASE WHEN actor_uri = @host THEN 'admin' ELSE 'member' END WHERE conversation_id IN (SELECT id FROM closed))
		SELECT id FROM closed`)
}

// add stores the conversation as a closed one, because the backup does not have it. It returns
// uuid.Nil if the backup has another conversation with the partner.
func (p encryptedPair) add(ctx context.Context, to *pgx.Conn) (uuid.UUID, error) {
	return p.change(ctx, to, `WITH closed AS (INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at, upgraded_at, partner_uri, closed_at)
			VALUES (@id, @uri, 'encrypted', @host, `+freeGroup+`, @created, @encrypted, @partner, coalesce(@closed::timestamptz, now())) ON CONFLICT DO NOTHING RETURNING id),
		members AS (INSERT INTO conversation_members (conversation_id, actor_uri, role, joined_seq)
			SELECT id, m.actor, CASE WHEN m.actor = @host THEN 'admin' ELSE 'member' END, 0 FROM closed, (SELECT @owner::text UNION SELECT @partner::text) AS m (actor))
		SELECT id FROM closed`)
}

// change runs a statement that changes one conversation, and returns the conversation's id, or
// uuid.Nil if the statement changed none.
func (p encryptedPair) change(ctx context.Context, to *pgx.Conn, statement string) (uuid.UUID, error) {
	rows, _ := to.Query(ctx, statement, p.args()) // CollectRows returns the error
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(ids) == 0 {
		return uuid.Nil, err
	}
	return ids[0], nil
}

// addState stores the state of the MLS group, without which nobody could read the conversation.
func (p encryptedPair) addState(ctx context.Context, to *pgx.Conn, id uuid.UUID) error {
	if p.Host != p.Partner {
		_, err := to.Exec(ctx, `INSERT INTO mls_conversations (id, generation, term, epoch, last_seq, status, former_groups, updated_at) VALUES ($1, $2, $3, $4, $5, 'closed', $6, now())
			ON CONFLICT (id) DO NOTHING`, id, p.Generation, p.Term, p.Epoch, p.LastSeq, p.FormerGroups)
		return err
	}
	_, err := to.Exec(ctx, `INSERT INTO mls_joined (id, generation, epoch, last_seq, whole_seq, roster_seq, status, former_groups, updated_at) VALUES ($1, $2, $3, $4, 0, $5, 'closed', $6, now())
		ON CONFLICT (id) DO NOTHING`, id, p.Generation, p.Epoch, p.LastSeq, p.RosterSeq, p.FormerGroups)
	return err
}

// addClosed is the end of a statement. It adds an entry for the end of each conversation in closed.
// The second argument of the statement is the time of the end, null for now.
const addClosed = `INSERT INTO conversation_entries (conversation_id, n, seq, kind, own, at) SELECT id, entries,
	coalesce((SELECT last_seq FROM mls_conversations m WHERE m.id = closed.id), (SELECT whole_seq FROM mls_joined j WHERE j.id = closed.id), 0), 'closed', false, coalesce($2::timestamptz, now()) FROM closed`
