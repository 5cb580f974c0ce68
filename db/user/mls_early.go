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

// DropEarly removes the early messages of a sender whose commit of an earlier epoch of c lost. It
// keeps those that arrived after a device of the sender was added, in that epoch or later: that
// device did not make the lost commit.
func (t Hosted) DropEarly(ctx context.Context, c HostedConversation, sender vocab.ID, epoch int64) error {
	_, err := t.execBeside(ctx, "drop early messages", `DELETE FROM mls_early e WHERE conversation_id = @id AND sender_uri = @sender AND NOT EXISTS (
			SELECT FROM mls_welcomes w JOIN mls_log l USING (conversation_id) WHERE w.conversation_id = @id AND w.recipient_uri = @sender AND w.created_at <= e.received_at
				AND l.generation = @generation AND l.epoch = @epoch AND l.kind = 'commit' AND w.created_at >= l.created_at)`,
		named{"id": c.ID, "generation": c.Generation, "epoch": epoch, "sender": sender})
	return err
}

// DropAllEarly removes the early messages of a conversation, with the next statement of the
// transaction or with its commit.
func (t Hosted) DropAllEarly(id uuid.UUID) {
	t.unsent.later(`DELETE FROM mls_early WHERE conversation_id = @id`, named{"id": id})
}
