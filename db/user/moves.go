package user

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// MoveAgain is the time after a move during which neither the account nor its target can move the
// user's follow again. After that time the move is removed.
const MoveAgain = 30 * 24 * time.Hour

// AddMove stores that an account moved to another one, and reports whether it stored this. It
// stores nothing if, within the last MoveAgain, the account has moved already, or another account
// has moved to this account.
func (t Actors) AddMove(ctx context.Context, account, target vocab.ID, now time.Time) (bool, error) {
	n, err := t.execBeside(ctx, "remember move", `INSERT INTO moves (digest, target_digest, moved_at)
		SELECT @account, @target, @now WHERE NOT EXISTS (SELECT FROM moves WHERE target_digest = @account AND moved_at > @since)
		ON CONFLICT (digest) DO UPDATE SET target_digest = excluded.target_digest, moved_at = excluded.moved_at WHERE moves.moved_at <= @since`,
		named{"account": schema.Digest(account), "target": schema.Digest(target), "now": now, "since": now.Add(-MoveAgain)})
	return n == 1, err
}
