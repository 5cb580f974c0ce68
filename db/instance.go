package db

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lightweb/lightweb/engine/holding"
)

// instance is the way to the instance database. It is closed to those who hold a connection to a user's.
type instance struct{ pool *pgxpool.Pool }

func (i instance) check(ctx context.Context) error {
	return holding.RefuseHolder(ctx, "the instance database")
}

func (i instance) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	if err := i.check(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return i.pool.Exec(ctx, query, args...)
}

func (i instance) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	if err := i.check(ctx); err != nil {
		return nil, err
	}
	return i.pool.Query(ctx, query, args...)
}

func (i instance) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	if err := i.check(ctx); err != nil {
		return noRow{err}
	}
	return i.pool.QueryRow(ctx, query, args...)
}

// send runs the statements of a batch in one transaction.
func (i instance) send(ctx context.Context, b *pgx.Batch) error {
	if err := i.check(ctx); err != nil {
		return err
	}
	return i.pool.SendBatch(ctx, b).Close()
}

// BeginTx serves pgx.BeginTxFunc.
func (i instance) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	if err := i.check(ctx); err != nil {
		return nil, err
	}
	return i.pool.BeginTx(ctx, opts)
}

// Begin serves pgx.BeginFunc.
func (i instance) Begin(ctx context.Context) (pgx.Tx, error) { return i.BeginTx(ctx, pgx.TxOptions{}) }

// Acquire takes a connection that its user gives back.
func (i instance) Acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if err := i.check(ctx); err != nil {
		return nil, err
	}
	return i.pool.Acquire(ctx)
}

// noRow is a row that was not asked for.
type noRow struct{ err error }

func (r noRow) Scan(...any) error { return r.err }
