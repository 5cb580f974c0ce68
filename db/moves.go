package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// MoveAgain is how long after a move the account, and the one it moved to, cannot take the user's
// follow elsewhere. Then the move is forgotten.
const MoveAgain = 30 * 24 * time.Hour

// AddMove remembers that an account moved to another one, unless it, or one that moved to it, did
// so lately: then nothing changes. It tells whether it did.
func (t *Tx) AddMove(ctx context.Context, account, target vocab.ID, now time.Time) (bool, error) {
	n, err := t.execBeside(ctx, "remember move", `INSERT INTO moves (digest, target_digest, moved_at)
		SELECT $1, $2, $3 WHERE NOT EXISTS (SELECT FROM moves WHERE target_digest = $1 AND moved_at > $4)
		ON CONFLICT (digest) DO UPDATE SET target_digest = excluded.target_digest, moved_at = excluded.moved_at WHERE moves.moved_at <= $4`,
		digest(account), digest(target), now, now.Add(-MoveAgain))
	return n == 1, err
}
