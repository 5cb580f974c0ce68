package user

import (
	"context"

	"github.com/lightweb/lightweb/engine/vocab"
)

// ListCompany returns up to limit current members of the encrypted conversation with this URI. It
// returns no members when the user has no such conversation, or when the conversation is closed.
func (t Threads) ListCompany(ctx context.Context, uri vocab.ID, limit int) ([]vocab.ID, error) {
	type row struct{ Actor vocab.ID }
	rows, err := collect[row](ctx, t.tx, "read company", `SELECT m.actor_uri AS actor FROM conversation_members m JOIN conversations c ON c.id = m.conversation_id
		WHERE c.uri = $1 AND c.mode = 'encrypted' AND c.closed_at IS NULL AND m.left_seq IS NULL LIMIT $2`, uri, limit)
	actors := make([]vocab.ID, len(rows))
	for i, r := range rows {
		actors[i] = r.Actor
	}
	return actors, err
}
