package instance

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lightweb/lightweb/engine/holding"
)

// conns are connections to the instance database. A call is refused if its context belongs to a
// caller that has a connection to a user's database.
type conns struct{ pool *pgxpool.Pool }

func (c conns) check(ctx context.Context) error {
	return holding.RefuseHolder(ctx, "the instance database")
}

func (c conns) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	if err := c.check(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return c.pool.Exec(ctx, query, args...)
}

func (c conns) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return c.pool.Query(ctx, query, args...)
}

func (c conns) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	if err := c.check(ctx); err != nil {
		return noRow{err}
	}
	return c.pool.QueryRow(ctx, query, args...)
}

// SendBatch runs the statements of a batch in one transaction.
func (c conns) SendBatch(ctx context.Context, b *pgx.Batch) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	return c.pool.SendBatch(ctx, b).Close()
}

// BeginTx begins a transaction. pgx.BeginTxFunc calls it.
func (c conns) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return c.pool.BeginTx(ctx, opts)
}

// Begin begins a transaction. pgx.BeginFunc calls it.
func (c conns) Begin(ctx context.Context) (pgx.Tx, error) { return c.BeginTx(ctx, pgx.TxOptions{}) }

// noRow is the result of a query that was refused.
type noRow struct{ err error }

func (r noRow) Scan(...any) error { return r.err }
