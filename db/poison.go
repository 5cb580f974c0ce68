package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Poisoned is an activity that was set aside.
type Poisoned struct {
	URI        vocab.ID
	Raw        []byte
	Reason     string
	CreatedAt  time.Time
	Forwarders []vocab.ID // who sent it, when that is not its actor
}

// Poisoned returns up to n activities that were set aside, the oldest first, those after one of them; with an id only
// that one.
func (t *Tx) Poisoned(ctx context.Context, only vocab.ID, after Poisoned, n int) ([]Poisoned, error) {
	return collect[Poisoned](ctx, t, "list poison", `SELECT uri, raw, reason, created_at, forwarders FROM poison
		WHERE $1 IN ('', uri) AND (created_at, uri) > ($2, $3) ORDER BY created_at, uri LIMIT $4`, only, after.CreatedAt, after.URI, n)
}

// CountPoison returns how many activities were set aside.
func (t *Tx) CountPoison(ctx context.Context) (int, error) {
	return t.count(ctx, `SELECT count(*) FROM poison`)
}

// DropPoison forgets an activity that was set aside, unless it was set aside again since. Its id stays taken.
func (t *Tx) DropPoison(ctx context.Context, p Poisoned) error {
	_, err := t.exec(ctx, "drop poison", `DELETE FROM poison WHERE uri = $1 AND created_at = $2`, p.URI, p.CreatedAt)
	return err
}
