package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Welcome lets a device into a conversation. Sender and Object are empty if the user hosts the
// conversation.
type Welcome struct {
	ID           uuid.UUID
	Conversation uuid.UUID // zero: not known yet
	URI          vocab.ID  // of the conversation
	Recipient    vocab.ID
	KeyPackage   []byte // the reference of the key package for which it was made
	Content      []byte
	CreatedAt    time.Time
	Sender       vocab.ID // the actor that made it
	Object       vocab.ID // its id in the activity that brought it
	State        string   // Add and Take store "available" instead
}

// States of Welcomes.
const (
	WelcomeConsumed = "consumed" // a device has joined by it
	WelcomeInvalid  = "invalid"  // its key package was revoked
)

// Add stores a Welcome for its recipient. It does not store w.URI, which belongs to the
// conversation.
func (t Welcomes) Add(ctx context.Context, w Welcome) error {
	_, err := t.execBeside(ctx, "add welcome", addWelcome, w.args())
	return err
}

const addWelcome = `INSERT INTO mls_welcomes (id, conversation_id, recipient_uri, key_package_ref, content, state, created_at, sender_uri, object_uri)
	VALUES (@id, nullif(@conversation::uuid, '00000000-0000-0000-0000-000000000000'), @recipient, @package, @content, 'available', @created, @sender, @object)`

func (w Welcome) args() named {
	return named{"id": w.ID, "conversation": w.Conversation, "recipient": w.Recipient, "package": w.KeyPackage, "content": w.Content,
		"created": w.CreatedAt, "sender": w.Sender, "object": w.Object}
}

// Take does what Add does, for a Welcome that arrived in an activity of another actor. It reports
// whether the Welcome is new.
func (t Welcomes) Take(ctx context.Context, w Welcome) (bool, error) {
	n, err := t.execBeside(ctx, "take welcome", addWelcome+` ON CONFLICT DO NOTHING`, w.args())
	return n == 1, err
}

// FindUnplaced returns a sender's Welcome that has no conversation yet. If object is not empty,
// the Welcome must have this id on the sender's server. The result is nil unless there is
// exactly one such Welcome.
func (t Welcomes) FindUnplaced(ctx context.Context, sender, object vocab.ID) (*Welcome, error) {
	all, err := collect[Welcome](ctx, t.tx, "look for welcome", `SELECT `+welcomeColumns+` FROM mls_welcomes w WHERE conversation_id IS NULL AND sender_uri = $1 AND ($2 = '' OR object_uri = $2)
		AND state <> 'invalid' ORDER BY created_at LIMIT 2`, sender, object)
	if err != nil || len(all) != 1 {
		return nil, err
	}
	return &all[0], nil
}

// Place stores the conversation to which a Welcome belongs. If the conversation already has a
// Welcome for the same key package, Place marks the given Welcome as consumed instead.
func (t Welcomes) Place(ctx context.Context, id, conversation uuid.UUID) error {
	_, err := t.execBeside(ctx, "place welcome", `WITH placed AS (UPDATE mls_welcomes w SET conversation_id = $2 WHERE id = $1 AND conversation_id IS NULL
			AND NOT EXISTS (SELECT FROM mls_welcomes o WHERE o.conversation_id = $2 AND o.key_package_ref = w.key_package_ref) RETURNING id)
		UPDATE mls_welcomes SET state = 'consumed', leased_until = NULL WHERE id = $1 AND conversation_id IS NULL AND state <> 'invalid' AND id NOT IN (SELECT id FROM placed)`, id, conversation)
	return err
}

// FindFor returns a Welcome by its id if it is for this recipient, nil when there is none.
func (t Welcomes) FindFor(ctx context.Context, id uuid.UUID, recipient vocab.ID) (*Welcome, error) {
	return one[Welcome](ctx, t.tx, "read welcome", `SELECT `+welcomeColumns+` FROM mls_welcomes w WHERE id = $1 AND recipient_uri = $2`, id, recipient)
}

// IsOfAnother reports whether a Welcome with this id is for another recipient, a member of a
// conversation that the user hosts.
func (t Welcomes) IsOfAnother(ctx context.Context, id uuid.UUID, recipient vocab.ID) (is bool, err error) {
	err = t.row(ctx, "look for welcomes", `SELECT EXISTS (SELECT FROM mls_welcomes WHERE id = $1 AND recipient_uri <> $2)`, []any{id, recipient}, &is)
	return is, err
}

const welcomeColumns = `w.id, coalesce(w.conversation_id, '00000000-0000-0000-0000-000000000000') AS conversation,
	coalesce((SELECT uri FROM conversations c WHERE c.id = w.conversation_id), '') AS uri,
	w.recipient_uri AS recipient, w.key_package_ref AS key_package, w.content, w.created_at, w.sender_uri AS sender, w.object_uri AS object, w.state`

// IsWelcomed reports whether a Welcome of the conversation was stored for any of these key
// packages.
func (t Welcomes) IsWelcomed(ctx context.Context, id uuid.UUID, refs [][]byte) (is bool, err error) {
	err = t.row(ctx, "look for welcomes", `SELECT EXISTS (SELECT FROM mls_welcomes WHERE conversation_id = $1 AND key_package_ref = ANY($2))`, []any{id, refs}, &is)
	return is, err
}

// IsInviter reports whether a stored Welcome of the conversation was sent by this actor.
func (t Welcomes) IsInviter(ctx context.Context, id uuid.UUID, actor vocab.ID) (is bool, err error) {
	err = t.row(ctx, "look for welcomes", `SELECT EXISTS (SELECT FROM mls_welcomes WHERE conversation_id = $1 AND sender_uri = $2)`, []any{id, actor}, &is)
	return is, err
}

// Lease leases up to n unconfirmed Welcomes of a recipient until a time, and returns them, the
// oldest first. If device is not empty, it leases only Welcomes for key packages of this
// device. A Welcome that is not confirmed by the end of the lease can be leased again, after
// those that were never leased and those whose lease ended earlier.
func (t Welcomes) Lease(ctx context.Context, recipient vocab.ID, device string, n int, now, until time.Time) ([]Welcome, error) {
	return collect[Welcome](ctx, t.tx, "lease welcomes", `WITH leased AS (UPDATE mls_welcomes SET state = 'in_flight', leased_until = @until WHERE id IN
			(SELECT id FROM mls_welcomes WHERE recipient_uri = @recipient AND (state = 'available' OR state = 'in_flight' AND leased_until <= @now)
				AND (@device = '' OR key_package_ref IN (SELECT ref FROM mls_key_packages WHERE device_id = @device))
				ORDER BY leased_until NULLS FIRST, created_at, id LIMIT @n FOR UPDATE SKIP LOCKED)
			RETURNING *)
		SELECT `+welcomeColumns+` FROM leased w ORDER BY w.created_at, w.id`, named{"recipient": recipient, "n": n, "now": now, "until": until, "device": device})
}

// Confirm stores that the recipient has joined a conversation by a Welcome. It returns the state
// that the Welcome had before, or an empty string if the recipient has no Welcome with this id.
func (t Welcomes) Confirm(ctx context.Context, id uuid.UUID, recipient vocab.ID) (was string, err error) {
	err = t.row(ctx, "confirm welcome", `WITH was AS (SELECT id, state FROM mls_welcomes WHERE id = $1 AND recipient_uri = $2 FOR UPDATE),
			done AS (UPDATE mls_welcomes w SET state = 'consumed', leased_until = NULL FROM was WHERE w.id = was.id AND was.state IN ('available', 'in_flight'))
		SELECT coalesce((SELECT state FROM was), '')`, []any{id, recipient}, &was)
	return was, err
}
