package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// HeldActivity is an activity of the user that waits until the host of a conversation has
// ordered a message.
type HeldActivity struct {
	Activity   vocab.ID
	Body       []byte
	Recipients []vocab.ID
	Inboxes    []vocab.ID // of the recipients, in their order
}

// HoldActivities stores activities that wait until the host has ordered the message with this
// hash. If the host has ordered the message already, nothing is stored. A second call for the
// same message does not store the activities again. TakeHeld returns the activities in the same
// order.
func (t Joined) HoldActivities(ctx context.Context, id uuid.UUID, hash []byte, all []HeldActivity, now time.Time) error {
	for place, u := range all {
		_, err := t.execBeside(ctx, "hold activity", `INSERT INTO mls_held (conversation_id, content_hash, place, activity_uri, body, recipients, inboxes, created_at)
			SELECT @id, @hash, @place, @activity, @body, @recipients, @inboxes, @now WHERE NOT EXISTS (SELECT FROM mls_inbox WHERE conversation_id = @id AND content_hash = @hash AND seq IS NOT NULL) ON CONFLICT DO NOTHING`,
			named{"id": id, "hash": hash, "place": place, "activity": u.Activity, "body": u.Body, "recipients": texts(u.Recipients), "inboxes": texts(u.Inboxes), "now": now})
		if err != nil {
			return err
		}
	}
	return nil
}

// TakeHeld removes the activities that waited for a message, and returns them in their order.
func (t Joined) TakeHeld(ctx context.Context, id uuid.UUID, hash []byte) ([]HeldActivity, error) {
	return collect[HeldActivity](ctx, t.tx, "take held activities", `WITH taken AS (DELETE FROM mls_held WHERE conversation_id = $1 AND content_hash = $2 RETURNING *)
		SELECT activity_uri AS activity, body, recipients, inboxes FROM taken ORDER BY place`, id, hash)
}
