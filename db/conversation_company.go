package db

import (
	"context"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Company returns up to limit actors who are now in an encrypted conversation: none when the user
// has no such conversation of that URI, or it is closed.
func (t *Tx) Company(ctx context.Context, uri vocab.ID, limit int) ([]vocab.ID, error) {
	type row struct{ Actor vocab.ID }
	rows, err := collect[row](ctx, t, "read company", `SELECT m.actor_uri FROM conversation_members m JOIN conversations c ON c.id = m.conversation_id
		WHERE c.uri = $1 AND c.mode = 'encrypted' AND c.closed_at IS NULL AND m.left_seq IS NULL LIMIT $2`, uri, limit)
	actors := make([]vocab.ID, len(rows))
	for i, r := range rows {
		actors[i] = r.Actor
	}
	return actors, err
}
