package user

import (
	"context"

	"github.com/lightweb/lightweb/engine/vocab"
)

// ListCompany returns up to limit current members of the encrypted conversation with this URI. It
// returns no members when the user has no such conversation, or when the conversation is closed.
func (t Threads) ListCompany(ctx context.Context, uri vocab.ID, limit int) (actors []vocab.ID, err error) {
	err = t.query(ctx, "read company", column(&actors), `SELECT m.actor_uri FROM conversation_members m JOIN conversations c ON c.id = m.conversation_id
		WHERE c.uri = $1 AND c.mode = 'encrypted' AND c.closed_at IS NULL AND m.left_seq IS NULL LIMIT $2`, uri, limit)
	return actors, err
}
