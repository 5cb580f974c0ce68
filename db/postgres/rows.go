package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Querier runs queries. It is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// Collect returns the rows of a query as structs. Each column sets the field of its name. The
// parameter attempt names the work for Fault.
func Collect[T any](ctx context.Context, on Querier, attempt, query string, args ...any) ([]T, error) {
	return collect(ctx, on, attempt, pgx.RowToStructByName[T], query, args)
}

// CollectColumn returns the values of a query that has one column.
func CollectColumn[T any](ctx context.Context, on Querier, attempt, query string, args ...any) ([]T, error) {
	return collect(ctx, on, attempt, pgx.RowTo[T], query, args)
}

// First returns the first row of a query as a struct, nil when there is none.
func First[T any](ctx context.Context, on Querier, attempt, query string, args ...any) (*T, error) {
	rows, err := Collect[T](ctx, on, attempt, query, args...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

func collect[T any](ctx context.Context, on Querier, attempt string, row pgx.RowToFunc[T], query string, args []any) ([]T, error) {
	rows, err := on.Query(ctx, query, args...)
	if err != nil {
		return nil, Fault(attempt, err)
	}
	all, err := pgx.CollectRows(rows, row)
	return all, Fault(attempt, err)
}

// Text returns s in a form that a text column accepts. It replaces NUL and bytes that are not
// UTF-8 by U+FFFD, because peers may send any bytes.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// TimeOrNull returns a pointer to t, nil for the zero time.
func TimeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
