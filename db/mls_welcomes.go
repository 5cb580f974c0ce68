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
	Conversation uuid.UUID // zero: the Welcome does not tell of which
	URI          vocab.ID  // of the conversation
	Recipient    vocab.ID
	KeyPackage   []byte // the reference of the package that it was made for
	Content      []byte
	CreatedAt    time.Time
	Sender       vocab.ID // of one that came from elsewhere
	Object       vocab.ID // its id there
}

// AddWelcome keeps a Welcome until its recipient has it. The URI is the conversation's own.
func (t *Tx) AddWelcome(ctx context.Context, w Welcome) error {
	_, err := t.execBeside(ctx, "add welcome", addWelcome, w.args()...)
	return err
}

const addWelcome = `INSERT INTO mls_welcomes (id, conversation_id, recipient_uri, key_package_ref, content, state, created_at, sender_uri, object_uri)
	VALUES ($1, nullif($2::uuid, '00000000-0000-0000-0000-000000000000'), $3, $4, $5, 'available', $6, $7, $8)`

func (w Welcome) args() []any {
	return []any{w.ID, w.Conversation, w.Recipient, w.KeyPackage, w.Content, w.CreatedAt, w.Sender, w.Object}
}

// TakeWelcome is AddWelcome for one that came from elsewhere. It reports whether it is new.
func (t *Tx) TakeWelcome(ctx context.Context, w Welcome) (bool, error) {
	n, err := t.execBeside(ctx, "take welcome", addWelcome+` ON CONFLICT DO NOTHING`, w.args()...)
	return n == 1, err
}

// UnplacedWelcome returns the Welcome of a sender that does not tell its conversation, if there is
// no more than one: the one with an id, unless that is empty.
func (t *Tx) UnplacedWelcome(ctx context.Context, sender, object vocab.ID) (*Welcome, error) {
	all, err := collect[Welcome](ctx, t, "look for welcome", `SELECT `+welcomeColumns+` FROM mls_welcomes w WHERE conversation_id IS NULL AND sender_uri = $1 AND ($2 = '' OR object_uri = $2)
		AND state <> 'invalid' ORDER BY created_at LIMIT 2`, sender, object)
	if err != nil || len(all) != 1 {
		return nil, err
	}
	return &all[0], nil
}

// PlaceWelcome notes the conversation that a Welcome lets into.
func (t *Tx) PlaceWelcome(ctx context.Context, id, conversation uuid.UUID) error {
	_, err := t.execBeside(ctx, "place welcome", `UPDATE mls_welcomes SET conversation_id = $2 WHERE id = $1 AND conversation_id IS NULL`, id, conversation)
	return err
}

// WelcomeOf returns a Welcome of a recipient, nil when there is none.
func (t *Tx) WelcomeOf(ctx context.Context, id uuid.UUID, recipient vocab.ID) (*Welcome, error) {
	return one[Welcome](ctx, t, "read welcome", `SELECT `+welcomeColumns+` FROM mls_welcomes w WHERE id = $1 AND recipient_uri = $2`, id, recipient)
}

const welcomeColumns = `w.id, coalesce(w.conversation_id, '00000000-0000-0000-0000-000000000000'), coalesce((SELECT uri FROM conversations c WHERE c.id = w.conversation_id), ''),
	w.recipient_uri, w.key_package_ref, w.content, w.created_at, w.sender_uri, w.object_uri`

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
			RETURNING *)
		SELECT `+welcomeColumns+` FROM leased w ORDER BY w.created_at, w.id`, recipient, n, now, until, device)
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
