package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Shape is what a database holds, as its catalog says: a table that a migration adds is in it
// without anybody's doing.
type Shape struct {
	SchemaVersion int        `json:"schema_version"`
	Tables        []Table    `json:"tables"` // those that others refer to come before these
	Sequences     []Sequence `json:"sequences"`
}

// Table is a table whose rows can be copied out and in.
type Table struct {
	Name    string   `json:"table"`
	Columns []string `json:"columns"`
	Owner   string   `json:"owner,omitempty"` // in the instance database: the column that says which user a row belongs to
}

// Sequence is a sequence of 64-bit numbers.
type Sequence struct {
	Name string `json:"sequence"`
	Last int64  `json:"last"` // handed out; 0 when none was
}

// table returns the table of that name, or nil.
func (s Shape) table(name string) *Table {
	for i := range s.Tables {
		if s.Tables[i].Name == name {
			return &s.Tables[i]
		}
	}
	return nil
}

// Snapshot is one consistent state of a database, valid only during the call it is given to.
type Snapshot struct {
	Shape Shape
	tx    pgx.Tx
}

// SnapshotInstance runs work on one state of the instance database.
func (c *Cluster) SnapshotInstance(ctx context.Context, work func(context.Context, *Snapshot) error) error {
	err := c.Instance.InTx(ctx, snapshotTx, func(tx pgx.Tx) error { return snapshot(ctx, tx, work) })
	return postgres.Fault("read the instance database", err)
}

// SnapshotUser runs work on one state of u's database, whatever schema that has. The fault is
// Unavailable when it cannot be opened.
func (c *Cluster) SnapshotUser(ctx context.Context, u instance.User, work func(context.Context, *Snapshot) error) error {
	conn, err := c.schema.Reach(ctx, u.Database)
	if err != nil {
		return err
	}
	defer postgres.Shut(conn)
	err = pgx.BeginTxFunc(ctx, conn, snapshotTx, func(tx pgx.Tx) error { return snapshot(ctx, tx, work) })
	return postgres.Fault("read the database of "+u.Name.String(), err)
}

var snapshotTx = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

func snapshot(ctx context.Context, tx pgx.Tx, work func(context.Context, *Snapshot) error) error {
	s := &Snapshot{tx: tx}
	if _, err := tx.Exec(ctx, copyForm); err != nil {
		return err
	}
	var err error
	if s.Shape, err = shapeOf(ctx, tx.Conn()); err != nil {
		return err
	}
	return work(ctx, s)
}

// copyForm makes rows look the same whatever server they are copied out of, or into, and however
// that is set up.
const copyForm = `SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL timezone = 'UTC'; SET LOCAL intervalstyle = 'postgres';
	SET LOCAL extra_float_digits = 3; SET LOCAL bytea_output = 'hex'; SET LOCAL client_encoding = 'UTF8'; SET LOCAL statement_timeout = 0;
	SET LOCAL idle_in_transaction_session_timeout = 0`

// Users returns every user's row, by name.
func (s *Snapshot) Users(ctx context.Context) ([]instance.User, error) {
	return instance.ListUsers(ctx, s.tx)
}

// Copy writes the rows of a table as text, of the instance database those that belong to u unless
// that is nobody, and returns how many there are.
func (s *Snapshot) Copy(ctx context.Context, t Table, u vocab.Username, to io.Writer) (int64, error) {
	return copyOut(ctx, s.tx.Conn(), t, u, to)
}

// copyOut copies the rows of a table, of nobody or of one user.
func copyOut(ctx context.Context, conn *pgx.Conn, t Table, u vocab.Username, to io.Writer) (int64, error) {
	what := fmt.Sprintf(`(SELECT %s FROM %s)`, t.columns(), t.quoted())
	if !u.IsZero() { // COPY takes no parameters; a username has no quote
		what = fmt.Sprintf(`(SELECT %s FROM %s WHERE %s = '%s')`, t.columns(), t.quoted(), postgres.Quote(t.Owner), u)
	}
	tag, err := conn.PgConn().CopyTo(ctx, to, `COPY `+what+` TO STDOUT`)
	return tag.RowsAffected(), postgres.Fault("copy table "+t.Name, err)
}

func (t Table) quoted() string { return pgx.Identifier{"public", t.Name}.Sanitize() }

func (t Table) columns() string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = postgres.Quote(c)
	}
	return strings.Join(names, ", ")
}

// shapeOf reads what the database of a connection holds. Columns that are computed are none to
// copy.
func shapeOf(ctx context.Context, conn *pgx.Conn) (s Shape, err error) {
	version, err := schema.Read(ctx, conn)
	if err != nil {
		return s, err
	}
	s.SchemaVersion = version.Whole()
	rows, err := conn.Query(ctx, `SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum), ''
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname NOT IN ('schema_migrations', 'serving') GROUP BY c.relname ORDER BY c.relname`)
	if err != nil {
		return s, err
	}
	if s.Tables, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Table]); err != nil {
		return s, err
	}
	references, err := referencesOf(ctx, conn)
	if err != nil {
		return s, err
	}
	if s.Tables, err = inOrder(s.Tables, references); err != nil {
		return s, err
	}
	rows, err = conn.Query(ctx, `SELECT sequencename, coalesce(last_value, 0) FROM pg_sequences
		WHERE schemaname = 'public' AND data_type = 'bigint'::regtype ORDER BY sequencename`)
	if err != nil {
		return s, err
	}
	s.Sequences, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Sequence])
	return s, err
}

// reference is a foreign key: rows of From need rows of To.
type reference struct{ From, Column, To string }

func referencesOf(ctx context.Context, conn *pgx.Conn) ([]reference, error) {
	rows, err := conn.Query(ctx, `SELECT f.relname, a.attname, t.relname FROM pg_constraint k
		JOIN pg_class f ON f.oid = k.conrelid JOIN pg_class t ON t.oid = k.confrelid
		JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
		WHERE k.contype = 'f' AND f.relnamespace = 'public'::regnamespace AND k.conrelid <> k.confrelid`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[reference])
}

// inOrder puts each table behind those that its rows need, and says whose its rows are: those of a
// table that needs users and nothing else belong to the user.
func inOrder(tables []Table, references []reference) ([]Table, error) {
	needs := map[string][]string{}
	for _, r := range references {
		needs[r.From] = append(needs[r.From], r.To)
	}
	for i, t := range tables {
		for _, r := range references {
			if r.From == t.Name && r.To == usersTable && len(needs[t.Name]) == 1 {
				tables[i].Owner = r.Column
			}
		}
		if t.Name == usersTable {
			tables[i].Owner = "username"
		}
	}
	ordered := make([]Table, 0, len(tables))
	for len(tables) > 0 {
		next := slices.IndexFunc(tables, func(t Table) bool {
			return !slices.ContainsFunc(tables, func(other Table) bool { return slices.Contains(needs[t.Name], other.Name) })
		})
		if next < 0 {
			return nil, errors.New("tables refer to each other in a circle: their rows have no order to be copied in")
		}
		ordered, tables = append(ordered, tables[next]), slices.Delete(tables, next, next+1)
	}
	return ordered, nil
}

// usersTable is the table of the instance database that says who is a user.
const usersTable = "users"
