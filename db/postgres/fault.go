package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/engine/fault"
)

// Fault adds to err the parameter attempt, which names the work that failed. It gives err the
// kind Unavailable when the server, or one of its databases, cannot be used now. It gives err the
// kind Busy when the context of the work ended, transactions were in conflict, or a lock was not
// free in time. An err that has a kind keeps it. All other errors are bugs, and stay Internal.
func Fault(attempt string, err error) error {
	switch {
	case err == nil:
		return nil
	case fault.Of(err) != nil:
		return fmt.Errorf("%s: %w", attempt, err)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !isRefused(err):
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Busy, "time ran out", err))
	case IsFull(err):
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Unavailable, "the database takes no more connections", err).
			WithCode("database_full").WithHint("raise max_connections of PostgreSQL, or lower database.max_connections").After(time.Second))
	case HasCode(err, "53100"):
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Unavailable, "the database has no room on its disk", err).
			WithCode("database_disk_full").WithHint("make room on the disk of PostgreSQL"))
	case IsConflict(err):
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Busy, "others changed the same at the same time", err))
	case HasCode(err, "55P03"): // lock_not_available
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Busy, "others keep a lock for longer than lock_timeout", err))
	case HasCode(err, "25006"): // read_only_sql_transaction
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Unavailable, "the database takes no changes", err).
			WithCode("database_unavailable").WithHint("is it a standby, or is default_transaction_read_only set?"))
	case isUnavailable(err):
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Unavailable, "the database cannot be reached", err).
			WithCode("database_unavailable").WithHint("is PostgreSQL running, and database.url right?"))
	}
	return fmt.Errorf("%s: %w", attempt, err)
}

// isUnavailable reports whether err means that the server cannot be reached, refuses the login,
// has ended the connection, or can do no work now. Reasons of the last kind are that the server is
// full, starting or stopping, that its disk fails, and that the database does not exist.
func isUnavailable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if s := pg.SeverityUnlocalized; s == "FATAL" || s == "PANIC" { // such an error ends the connection, and says nothing about a statement
			return true
		}
		switch pg.Code[:2] {
		case "08", // connection exception
			"28", // invalid authorization
			"53", // insufficient resources: connections, disk, memory
			"55", // an object is not in the required state, such as a database that accepts no connections
			"57", // operator intervention: shutting down, starting up, crashed
			"58": // system error: I/O
			return true
		}
		switch pg.Code {
		case "3D000", // no such database
			"25P03", // idle_in_transaction_session_timeout
			"25P04": // transaction_timeout
			return true
		}
		return isRefused(err)
	}
	var network net.Error
	return isRefused(err) || errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed") // pgx has no error value for this case
}

// isRefused reports whether err means that no connection could be opened. The reason may be that
// the server did not answer in time.
func isRefused(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}

// IsFull reports whether err means that the server, the role or the database has reached its
// limit of connections.
func IsFull(err error) bool { return HasCode(err, "53300") }

// IsConflict reports whether err is a conflict between transactions. The transaction may succeed
// if it is run again.
func IsConflict(err error) bool { return HasCode(err, "40001") || HasCode(err, "40P01") }

// IsNoRows reports whether a query returned no row where one was expected.
func IsNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// codeUser marks a fault of one user's database.
const codeUser = "user_unavailable"

// UserFault returns a fault of kind Unavailable which says that one user's database cannot be
// used. Only that user is unavailable.
func UserFault(err error, hint string) error {
	return fault.Wrap(fault.Unavailable, "the user's data cannot be used", err).WithCode(codeUser).WithHint(hint)
}

// IsUserFault reports whether UserFault made err.
func IsUserFault(err error) bool { f := fault.Of(err); return f != nil && f.Code == codeUser }

// HasCode reports whether err is the server's error with this SQLSTATE.
func HasCode(err error, state string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == state
}

// Violates reports whether err says that the named constraint was violated.
func Violates(err error, constraint string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.ConstraintName == constraint
}
