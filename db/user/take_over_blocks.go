package user

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// DatedBlock is a block with the time when it was made.
type DatedBlock struct {
	Block
	At time.Time
}

// TakeOverBlocks adds blocks to the user's database behind conn, if the database lacks them. For
// each added block it also ends everything that a Block ends, such as relationships. All of this
// happens in one transaction. TakeOverBlocks returns how many blocks it added.
func (d *Databases) TakeOverBlocks(ctx context.Context, conn *pgx.Conn, blocks []DatedBlock) (added int, err error) {
	t := newTx(d.types, beginWrite)
	t.conn = conn
	err = t.run(ctx, func(ctx context.Context, tx *Tx) error {
		for _, b := range blocks {
			there, err := tx.Blocks.Find(ctx, b.Direction, b.Actor)
			if err != nil {
				return err
			}
			if there != nil {
				continue
			}
			if err := tx.Blocks.restore(ctx, b); err != nil {
				return err
			}
			added++
		}
		return nil
	})
	return added, err
}

// restore adds a block. It also ends everything that a Block of its direction ends, such as
// relationships. It notifies nobody, because the actor was notified when the block was made.
func (t Blocks) restore(ctx context.Context, b DatedBlock) error {
	if err := t.Add(ctx, b.Block, b.At); err != nil {
		return err
	}
	if _, err := t.all.Relationships.EndAll(ctx, b.Actor, time.Now()); err != nil {
		return err
	}
	if b.Direction != Outbound {
		return nil
	}
	if err := t.all.Deliveries.Withdraw(ctx, b.Actor, nil, nil, b.At); err != nil {
		return err
	}
	objects, err := t.all.Objects.ListBy(ctx, b.Actor)
	if err != nil {
		return err
	}
	return t.LeaveFeed(ctx, b.Actor, objects)
}
