// Package postgres connects to the databases of one PostgreSQL server, and turns the server's
// errors into faults.
package postgres

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lightweb/lightweb/engine/fault"
)

// Server is a PostgreSQL server.
type Server struct{ base *pgx.ConnConfig }

// Parse returns the server of a URL. A database named in the URL is ignored. If the URL is not
// valid, the fault is Config. The fault does not repeat the URL, which may hold a password.
func Parse(url string) (*Server, error) {
	base, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fault.New(fault.Config, "database.url is not a PostgreSQL URL").
			WithHint("use postgres://user@host:5432/ or leave it empty for the embedded default")
	}
	if base.ConnectTimeout == 0 {
		base.ConnectTimeout = 5 * time.Second
	}
	base.RuntimeParams["application_name"] = "lightweb"
	base.RuntimeParams["timezone"] = "UTC"
	return &Server{base}, nil
}

// Config returns the configuration of a connection to a database of the server. The caller may
// change the configuration.
func (s *Server) Config(database string) *pgx.ConnConfig {
	c := s.base.Copy()
	c.Database = database
	return c
}

// Connect opens a connection to a database. Shut closes it.
func (s *Server) Connect(ctx context.Context, database string) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, s.Config(database))
	return conn, Fault("open database "+database, err)
}

// Maintain runs work on a connection to the maintenance database. Such a connection serves to
// make and drop databases.
func (s *Server) Maintain(ctx context.Context, work func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, s.Config("postgres"))
	if err != nil {
		return Fault("reach PostgreSQL", err)
	}
	defer Shut(conn)
	return work(conn)
}

// Quote returns a name as a quoted SQL identifier.
func Quote(database string) string { return pgx.Identifier{database}.Sanitize() }

// IsSettled reports whether a connection is open and is in no transaction.
func IsSettled(conn *pgx.Conn) bool { return !conn.IsClosed() && conn.PgConn().TxStatus() == 'I' }

// Shut closes a connection. It waits until the server has closed its side, up to a second,
// because the server counts the connection until then.
func Shut(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if IsSettled(conn) {
		wire, terminate := conn.PgConn().Conn(), []byte{'X', 0, 0, 0, 4}
		deadline, _ := ctx.Deadline()
		if wire.SetDeadline(deadline) == nil {
			// An error does not matter, because the server notices a lost connection.
			_, _ = wire.Write(terminate)
			_, _ = io.Copy(io.Discard, wire) // until the server closes, or the deadline
		}
	}
	_ = conn.Close(ctx) // nothing is pending on it
	select {
	case <-conn.PgConn().CleanupDone(): // pgx closes a cancelled connection in the background
	case <-ctx.Done():
	}
}

// CommitDurably makes a session's commits wait for the disk if the server, the database or the
// role is set to 'off'. Otherwise a crash would lose data that the engine has accepted. All other
// values of synchronous_commit wait for this server's disk at least, and stay.
func CommitDurably(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`)
	return Fault("set how commits wait", err)
}

// ReadAsWritten makes the connection return times in UTC instead of the zone of this machine. It
// also makes the connection return JSON documents without checking their syntax, because the
// server has checked it.
func ReadAsWritten(conn *pgx.Conn) {
	types := conn.TypeMap()
	types.RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
	types.RegisterType(&pgtype.Type{Name: "jsonb", OID: pgtype.JSONBOID, Codec: &pgtype.JSONBCodec{Marshal: json.Marshal, Unmarshal: readJSON}})
}

func readJSON(data []byte, into any) error {
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = slices.Clone(data)
		return nil
	}
	return json.Unmarshal(data, into)
}
