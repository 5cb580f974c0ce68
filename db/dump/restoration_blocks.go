package dump

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/user"
)

// Blocks returns how many blocks Commit copied from the database that it put aside.
func (r *Restoration) Blocks() int { return r.blocks }

// keepBlocks copies the blocks that one database has and the other lacks, with all effects of a
// Block. So an actor that was blocked after the backup remains blocked.
func (r *Restoration) keepBlocks(ctx context.Context, from, to *pgx.Conn) error {
	newer, err := blocksOf(ctx, from)
	if err != nil || len(newer) == 0 {
		return err
	}
	added, err := r.d.users.TakeOverBlocks(ctx, to, newer)
	r.blocks += added
	return err
}

// blocksOf reads the blocks of a user's database.
func blocksOf(ctx context.Context, conn *pgx.Conn) ([]user.DatedBlock, error) {
	rows, err := conn.Query(ctx, `SELECT actor_uri AS actor, direction, activity_uri AS activity, created_at AS at FROM blocks ORDER BY created_at, digest`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[user.DatedBlock])
}
