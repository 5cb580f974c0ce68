package measure

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Host fills the database of u with n encrypted conversations at epoch 0, and returns their ids.
// Their only member is their host, whose id is the parameter host. The id of the MLS group of a
// conversation is "urn:uuid:" with the conversation's id, and nobody has given its GroupInfo.
func (d *Databases) Host(ctx context.Context, u vocab.Username, host vocab.ID, n int) (ids []uuid.UUID, err error) {
	err = d.useDatabase(ctx, u, func(conn *pgx.Conn) (err error) {
		if ids, err = postgres.CollectColumn[uuid.UUID](ctx, conn, "insert", hosting, host, n); err != nil {
			return err
		}
		return tidy(ctx, conn)
	})
	return ids, postgres.Fault("host conversations of "+u.String(), err)
}

// hosting is the statement of Host.
const hosting = `WITH c AS (INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at)
		SELECT id, $1::text || '/conversations/' || id, 'encrypted', $1, 'urn:uuid:' || id, now() FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, $2)) AS ids RETURNING id),
	m AS (INSERT INTO mls_conversations (id, status, updated_at) SELECT id, 'active', now() FROM c),
	o AS (INSERT INTO conversation_members (conversation_id, actor_uri, role, joined_seq) SELECT id, $1, 'admin', 0 FROM c)
	SELECT id FROM c`
