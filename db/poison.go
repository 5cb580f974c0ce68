package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Poisoned is an activity that was set aside.
type Poisoned struct {
	URI        vocab.ID
	Actor      vocab.ID // empty when nobody can read it, or it was set aside before actors were remembered
	Raw        []byte
	Reason     string
	CreatedAt  time.Time
	Forwarders []vocab.ID // who sent it, when that is not its actor
}

// Poisoned returns up to n activities that were set aside, the oldest first, those after one of
// them; with an id only that one.
func (t *Tx) Poisoned(ctx context.Context, only vocab.ID, after Poisoned, n int) ([]Poisoned, error) {
	return collect[Poisoned](ctx, t, "list poison", `SELECT uri, actor_uri, raw, reason, created_at, forwarders FROM poison
		WHERE $1 IN ('', uri) AND (created_at, uri, actor_uri) > ($2, $3, $4) ORDER BY created_at, uri, actor_uri LIMIT $5`, only, after.CreatedAt, after.URI, after.Actor, n)
}

// CountPoison returns how many activities were set aside.
func (t *Tx) CountPoison(ctx context.Context) (int, error) {
	return t.count(ctx, `SELECT count(*) FROM poison`)
}

// DropPoison forgets an activity that was set aside, unless it was set aside again since. Its id
// stays taken.
func (t *Tx) DropPoison(ctx context.Context, p Poisoned) error {
	_, err := t.execBeside(ctx, "drop poison", `DELETE FROM poison WHERE uri = $1 AND actor_uri = $2 AND created_at = $3`, p.URI, p.Actor, p.CreatedAt)
	return err
}
