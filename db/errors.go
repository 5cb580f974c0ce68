package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/engine/fault"
)

// storeFault says what was attempted, and gives err the kind Unavailable when the cause is that the server, or one of
// its databases, cannot be used now. Everything else is a bug of ours and stays Internal.
func storeFault(attempt string, err error) error {
	switch {
	case err == nil:
		return nil
	case fault.Of(err) != nil:
		return fmt.Errorf("%s: %w", attempt, err)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !refused(err):
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Busy, "time ran out", err))
	case full(err):
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Unavailable, "the database takes no more connections", err).
			WithCode("database_full").WithHint("raise max_connections of PostgreSQL, or lower database.max_connections").After(time.Second))
	case hasCode(err, "53100"):
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Unavailable, "the database has no room on its disk", err).
			WithCode("database_disk_full").WithHint("make room on the disk of PostgreSQL"))
	case again(err):
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Busy, "others changed the same at the same time", err))
	case unavailable(err):
		return fmt.Errorf("%s: %w", attempt, fault.Wrap(fault.Unavailable, "the database cannot be reached", err).
			WithCode("database_unavailable").WithHint("is PostgreSQL running, and database.url right?"))
	}
	return fmt.Errorf("%s: %w", attempt, err)
}

// unavailable tells whether err is about the way to the server, or about a server that is full, starting or stopping.
func unavailable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		case "08", // connection exception
			"28", // invalid authorization
			"53", // insufficient resources: connections, disk, memory
			"57", // operator intervention: shutting down, starting up, crashed
			"58": // system error: I/O
			return true
		}
		return pg.Code == "3D000" || pg.Code == "55000" || refused(err) // no such database; not accepting connections
	}
	var network net.Error
	return refused(err) || errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed") // pgx has no value for it
}

// refused tells whether err is that no connection could be opened, also because the server was silent for too long.
func refused(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect)
}

// full tells whether err is that the server, the role or the database has all the connections it may have.
func full(err error) bool { return hasCode(err, "53300") }

// codeUser marks that one user's database cannot be used.
const codeUser = "user_unavailable"

// userFault says that one user's database cannot be used. It makes that one user unavailable and nobody else.
func userFault(err error, hint string) error {
	return fault.Wrap(fault.Unavailable, "the user's data cannot be used", err).WithCode(codeUser).WithHint(hint)
}

// again tells whether err is a conflict between transactions that trying again resolves.
func again(err error) bool {
	return hasCode(err, "40001") || hasCode(err, "40P01") || violates(err, "objects_uri_key")
}

// hasCode tells whether err is the server's error with this SQLSTATE.
func hasCode(err error, state string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == state
}

// violates tells whether err is about the named constraint.
func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}
