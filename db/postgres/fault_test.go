package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestErrorsOfTheServerThatPassHaveAKind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  pgconn.PgError
		want fault.Kind
	}{
		{pgconn.PgError{Code: "55P03", SeverityUnlocalized: "ERROR"}, fault.Busy},        // lock_not_available
		{pgconn.PgError{Code: "55006", SeverityUnlocalized: "ERROR"}, fault.Unavailable}, // object_in_use
		{pgconn.PgError{Code: "55000", SeverityUnlocalized: "ERROR"}, fault.Unavailable},
		{pgconn.PgError{Code: "25006", SeverityUnlocalized: "ERROR"}, fault.Unavailable}, // read_only_sql_transaction
		{pgconn.PgError{Code: "25P03", SeverityUnlocalized: "FATAL"}, fault.Unavailable}, // idle_in_transaction_session_timeout
		{pgconn.PgError{Code: "25P04", SeverityUnlocalized: "FATAL"}, fault.Unavailable}, // transaction_timeout
		{pgconn.PgError{Code: "XX000", SeverityUnlocalized: "FATAL"}, fault.Unavailable},
		{pgconn.PgError{Code: "XX000", SeverityUnlocalized: "PANIC"}, fault.Unavailable},
		{pgconn.PgError{Code: "XX000", SeverityUnlocalized: "ERROR"}, fault.Internal},
		{pgconn.PgError{Code: "25P02", SeverityUnlocalized: "ERROR"}, fault.Internal}, // in_failed_sql_transaction, of a statement after a failed one
		{pgconn.PgError{Code: "23505", SeverityUnlocalized: "ERROR"}, fault.Internal}, // unique_violation
	} {
		if got := fault.KindOf(Fault("work", &tt.err)); got != tt.want {
			t.Errorf("%s %s: %v, want %v", tt.err.SeverityUnlocalized, tt.err.Code, got, tt.want)
		}
	}
}
