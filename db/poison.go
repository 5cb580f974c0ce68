package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Poisoned is an activity that was set aside.
type Poisoned struct {
	URI       vocab.ID
	Raw       []byte
	Reason    string
	CreatedAt time.Time
}

// Poisoned returns up to n activities that were set aside, the oldest first; with an id only that one.
func (t *Tx) Poisoned(ctx context.Context, only vocab.ID, n int) ([]Poisoned, error) {
	return collect[Poisoned](ctx, t, "list poison", `SELECT uri, raw, reason, created_at FROM poison
		WHERE $1 IN ('', uri) ORDER BY created_at, uri LIMIT $2`, only, n)
}

// CountPoison returns how many activities were set aside.
func (t *Tx) CountPoison(ctx context.Context) (int, error) {
	return t.count(ctx, `SELECT count(*) FROM poison`)
}

// DropPoison forgets an activity that was set aside. Its id stays taken.
func (t *Tx) DropPoison(ctx context.Context, uri vocab.ID) error {
	_, err := t.exec(ctx, "drop poison", `DELETE FROM poison WHERE uri = $1`, uri)
	return err
}

// ReturnPoison forgets that an activity was set aside, and gives its id back.
func (t *Tx) ReturnPoison(ctx context.Context, uri vocab.ID) error {
	if err := t.Unclaim(ctx, []vocab.ID{uri}); err != nil {
		return err
	}
	return t.DropPoison(ctx, uri)
}
