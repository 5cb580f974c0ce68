package dump

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/user"
)

// Blocks returns how many blocks Commit copied from the database that it put aside.
func (r *Restoration) Blocks() int { return r.blocks }

// keepBlocks copies blocks from the database in use to the restored database, with all effects of
// a Block. It copies those that the backup lacks. It runs before the restored database is used,
// so that an actor that was blocked after the backup remains blocked.
func (r *Restoration) keepBlocks(ctx context.Context, database string) error {
	newer, err := blocksOf(ctx, r.d.server.Config(database))
	if err != nil || len(newer) == 0 {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, r.d.server.Config(database+unfinished))
	if err != nil {
		return err
	}
	defer postgres.Shut(conn)
	added, err := r.d.users.TakeOverBlocks(ctx, conn, newer)
	r.blocks += added
	return err
}

// blocksOf reads the blocks of a user's database.
func blocksOf(ctx context.Context, cfg *pgx.ConnConfig) ([]user.DatedBlock, error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer postgres.Shut(conn)
	rows, err := conn.Query(ctx, `SELECT actor_uri, direction, activity_uri, created_at FROM blocks ORDER BY created_at, digest`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[user.DatedBlock])
}
