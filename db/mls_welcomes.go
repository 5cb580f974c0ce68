package db

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Welcome lets a device into a conversation.
type Welcome struct {
	ID           uuid.UUID
	Conversation uuid.UUID
	URI          vocab.ID // of the conversation
	Recipient    vocab.ID
	KeyPackage   []byte // the reference of the package that it was made for
	Content      []byte
	CreatedAt    time.Time
}

// AddWelcome keeps a Welcome until its recipient has it. The URI is the conversation's own.
func (t *Tx) AddWelcome(ctx context.Context, w Welcome) error {
	_, err := t.execBeside(ctx, "add welcome", `INSERT INTO mls_welcomes (id, conversation_id, recipient_uri, key_package_ref, content, state, created_at)
		VALUES ($1, $2, $3, $4, $5, 'available', $6)`, w.ID, w.Conversation, w.Recipient, w.KeyPackage, w.Content, w.CreatedAt)
	return err
}

// IsWelcomed reports whether any of the key packages has a Welcome of the conversation.
func (t *Tx) IsWelcomed(ctx context.Context, id uuid.UUID, refs [][]byte) (is bool, err error) {
	err = t.row(ctx, "look for welcomes", `SELECT EXISTS (SELECT FROM mls_welcomes WHERE conversation_id = $1 AND key_package_ref = ANY($2))`, []any{id, refs}, &is)
	return is, err
}

// LeaseWelcomes returns up to n Welcomes of a recipient that nobody has confirmed, the oldest
// first, of one device's key packages unless device is empty. It marks them as handed out until a
// time. One that was not confirmed by its time is handed out again.
func (t *Tx) LeaseWelcomes(ctx context.Context, recipient vocab.ID, device string, n int, now, until time.Time) ([]Welcome, error) {
	return collect[Welcome](ctx, t, "lease welcomes", `WITH leased AS (UPDATE mls_welcomes SET state = 'in_flight', leased_until = $4 WHERE id IN
			(SELECT id FROM mls_welcomes WHERE recipient_uri = $1 AND (state = 'available' OR state = 'in_flight' AND leased_until <= $3)
				AND ($5 = '' OR key_package_ref IN (SELECT ref FROM mls_key_packages WHERE device_id = $5))
				ORDER BY created_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
			RETURNING id, conversation_id, recipient_uri, key_package_ref, content, created_at)
		SELECT l.id, l.conversation_id, c.uri, l.recipient_uri, l.key_package_ref, l.content, l.created_at FROM leased l JOIN conversations c ON c.id = l.conversation_id
		ORDER BY l.created_at, l.id`, recipient, n, now, until, device)
}

// ConfirmWelcome notes that the recipient has joined by a Welcome. It reports the state in which
// the Welcome was: empty when the recipient has none with that id.
func (t *Tx) ConfirmWelcome(ctx context.Context, id uuid.UUID, recipient vocab.ID) (was string, err error) {
	err = t.row(ctx, "confirm welcome", `WITH was AS (SELECT id, state FROM mls_welcomes WHERE id = $1 AND recipient_uri = $2 FOR UPDATE),
			done AS (UPDATE mls_welcomes w SET state = 'consumed', leased_until = NULL FROM was WHERE w.id = was.id AND was.state IN ('available', 'in_flight'))
		SELECT coalesce((SELECT state FROM was), '')`, []any{id, recipient}, &was)
	return was, err
}

// WelcomeInvalid is the state of a Welcome whose key package was revoked.
const WelcomeInvalid = "invalid"
