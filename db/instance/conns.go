package instance

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lightweb/lightweb/engine/holding"
)

// conns are connections to the instance database. A call is refused if its context belongs to a
// caller that has a connection to a user's database.
type conns struct {
	pool  *pgxpool.Pool
	limit *atomic.Int64 // see LimitTransactions; shared by all conns of a Database
}

// limited returns ctx with the limit of LimitTransactions, unless ctx has a deadline.
func (c conns) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := time.Duration(c.limit.Load())
	if _, has := ctx.Deadline(); has || limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

func (c conns) check(ctx context.Context) error {
	return holding.RefuseHolder(ctx, "the instance database")
}

func (c conns) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	if err := c.check(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	ctx, cancel := c.limited(ctx)
	defer cancel()
	return c.pool.Exec(ctx, query, args...)
}

// Query runs a query. The limit of its time includes the reading of the rows, until they are
// closed.
func (c conns) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := c.limited(ctx)
	rows, err := c.pool.Query(ctx, query, args...)
	if err != nil {
		cancel()
		return nil, err
	}
	return limitedRows{rows, cancel}, nil
}

func (c conns) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	if err := c.check(ctx); err != nil {
		return noRow{err}
	}
	ctx, cancel := c.limited(ctx)
	return limitedRow{c.pool.QueryRow(ctx, query, args...), cancel}
}

// SendBatch runs the statements of a batch in one transaction.
func (c conns) SendBatch(ctx context.Context, b *pgx.Batch) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	ctx, cancel := c.limited(ctx)
	defer cancel()
	return c.pool.SendBatch(ctx, b).Close()
}

// inTx runs work in a transaction. The limit of its time includes the commit.
func (c conns) inTx(ctx context.Context, work func(context.Context, pgx.Tx) error) error {
	ctx, cancel := c.limited(ctx)
	defer cancel()
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return work(ctx, tx) })
}

// BeginTx begins a transaction without a limit. pgx.BeginTxFunc calls it.
func (c conns) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return c.pool.BeginTx(ctx, opts)
}

// Begin begins a transaction without a limit. pgx.BeginFunc calls it.
func (c conns) Begin(ctx context.Context) (pgx.Tx, error) { return c.BeginTx(ctx, pgx.TxOptions{}) }

// limitedRows are the rows of a query whose context ends when the rows are closed.
type limitedRows struct {
	pgx.Rows
	cancel context.CancelFunc
}

func (r limitedRows) Close() {
	r.Rows.Close()
	r.cancel()
}

// limitedRow is a row of a query whose context ends when the row was read.
type limitedRow struct {
	pgx.Row
	cancel context.CancelFunc
}

func (r limitedRow) Scan(into ...any) error {
	defer r.cancel()
	return r.Row.Scan(into...)
}

// noRow is the result of a query that was refused.
type noRow struct{ err error }

func (r noRow) Scan(...any) error { return r.err }
