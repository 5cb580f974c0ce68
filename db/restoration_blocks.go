package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
)

// Blocks returns how many blocks Commit took over from the database that it put aside.
func (r *Restoration) Blocks() int { return r.blocks }

// keepBlocks takes over the blocks that the database in use has and the backup lacks, with all
// that a Block ends, before anybody uses the restored database: an actor that was blocked after
// the backup sees nothing again.
func (r *Restoration) keepBlocks(ctx context.Context, database string) error {
	newer, err := blocksOf(ctx, r.c.server.Config(database))
	if err != nil || len(newer) == 0 {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, r.c.server.Config(database+unfinished))
	if err != nil {
		return err
	}
	defer postgres.Shut(conn)
	copied := 0
	err = (&Tx{conn: conn, types: r.c.types, unsent: unsent{begin: beginWrite}}).run(ctx, func(ctx context.Context, tx *Tx) error {
		for _, b := range newer {
			there, err := tx.Block(ctx, b.Direction, b.Actor)
			if err != nil {
				return err
			}
			if there != nil {
				continue
			}
			if err := tx.restoreBlock(ctx, b); err != nil {
				return err
			}
			copied++
		}
		return nil
	})
	if err == nil {
		r.blocks += copied
	}
	return err
}

// datedBlock is a block with the time at which it was made.
type datedBlock struct {
	Block
	At time.Time
}

// restoreBlock adds a block, and ends what a Block of its direction ends. Nobody is told: the
// actor was, when it was made.
func (t *Tx) restoreBlock(ctx context.Context, b datedBlock) error {
	if err := t.AddBlock(ctx, b.Block, b.At); err != nil {
		return err
	}
	for _, kind := range RelationshipTypes {
		if _, err := t.EndRelationship(ctx, kind, b.Actor); err != nil {
			return err
		}
	}
	if b.Direction != Outbound {
		return nil
	}
	if err := t.Withdraw(ctx, b.Actor, nil, nil, b.At); err != nil {
		return err
	}
	objects, err := t.ObjectsBy(ctx, b.Actor)
	if err != nil {
		return err
	}
	return t.LeaveFeed(ctx, b.Actor, objects)
}

// blocksOf reads the blocks of a user's database.
func blocksOf(ctx context.Context, cfg *pgx.ConnConfig) ([]datedBlock, error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer postgres.Shut(conn)
	rows, err := conn.Query(ctx, `SELECT actor_uri, direction, activity_uri, created_at FROM blocks ORDER BY created_at, digest`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[datedBlock])
}
