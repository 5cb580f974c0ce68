package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// EarlyMessage is a message or commit that came to the host of its conversation before the commit
// that begins its epoch.
type EarlyMessage struct {
	Epoch   int64
	Sender  vocab.ID
	Content []byte
	Hash    []byte // SHA-256 of the content
}

// KeepEarly stores a message until TakeEarly returns it. It reports false if the message is stored
// already.
func (t Hosted) KeepEarly(ctx context.Context, c HostedConversation, m EarlyMessage, now time.Time) (bool, error) {
	n, err := t.execBeside(ctx, "keep early message", `INSERT INTO mls_early (conversation_id, generation, epoch, sender_uri, content, content_hash, received_at)
		VALUES (@id, @generation, @epoch, @sender, @content, @hash, @now) ON CONFLICT DO NOTHING`,
		named{"id": c.ID, "generation": c.Generation, "epoch": m.Epoch, "sender": m.Sender, "content": m.Content, "hash": m.Hash, "now": now})
	return n == 1, err
}

// CountEarly returns how many early messages of each sender are stored.
func (t Hosted) CountEarly(ctx context.Context) ([]Waiting, error) {
	return collect[Waiting](ctx, t.tx, "count early messages", `SELECT sender_uri AS actor, count(*) AS n FROM mls_early GROUP BY sender_uri`)
}

// TakeEarly removes the early messages of the present epoch of c and of epochs before it. It
// returns those of the present epoch, in the order of their arrival.
func (t Hosted) TakeEarly(ctx context.Context, c HostedConversation) ([]EarlyMessage, error) {
	return collect[EarlyMessage](ctx, t.tx, "take early messages", `WITH taken AS (DELETE FROM mls_early
			WHERE conversation_id = @id AND (generation, epoch) <= (@generation, @epoch) RETURNING *)
		SELECT epoch, sender_uri AS sender, content, content_hash AS hash FROM taken WHERE (generation, epoch) = (@generation, @epoch) ORDER BY arrival`,
		named{"id": c.ID, "generation": c.Generation, "epoch": c.Epoch})
}

// DropEarly removes the early messages of a sender.
func (t Hosted) DropEarly(ctx context.Context, id uuid.UUID, sender vocab.ID) error {
	_, err := t.execBeside(ctx, "drop early messages", `DELETE FROM mls_early WHERE conversation_id = $1 AND sender_uri = $2`, id, sender)
	return err
}
