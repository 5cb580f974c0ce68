package dump

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

// Shape lists the tables and sequences of a database. It is read from the database's catalog, so it
// needs no change when a migration adds a table.
type Shape struct {
	SchemaVersion int        `json:"schema_version"`
	Tables        []Table    `json:"tables"` // a table comes after the tables to which it refers
	Sequences     []Sequence `json:"sequences"`
}

// Table is a table whose rows can be copied out and in.
type Table struct {
	Name    string   `json:"table"`
	Columns []string `json:"columns"`
	Owner   string   `json:"owner,omitempty"` // the column with the user that a row belongs to; only in the instance database
}

// Sequence is a sequence of 64-bit numbers.
type Sequence struct {
	Name string `json:"sequence"`
	Last int64  `json:"last"` // the last number that was assigned; 0 when none was
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

// Snapshot is one consistent state of a database. It is valid only while the function that gets
// it runs.
type Snapshot struct {
	Shape Shape
	tx    pgx.Tx
}

// SnapshotInstance runs work on a snapshot of the instance database.
func (d *Dumper) SnapshotInstance(ctx context.Context, work func(context.Context, *Snapshot) error) error {
	err := d.instance.InTx(ctx, snapshotTx, func(tx pgx.Tx) error { return snapshot(ctx, tx, work) })
	return postgres.Fault("read the instance database", err)
}

// SnapshotUser runs work on a snapshot of u's database. The database may have any schema version.
// The fault is Unavailable when the database cannot be opened.
func (d *Dumper) SnapshotUser(ctx context.Context, u instance.User, work func(context.Context, *Snapshot) error) error {
	conn, err := d.schema.Reach(ctx, u.Database)
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

// copyForm sets the text format of copied rows, so that the format does not depend on the
// settings of a server. It also turns off the timeouts.
const copyForm = `SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL timezone = 'UTC'; SET LOCAL intervalstyle = 'postgres';
	SET LOCAL extra_float_digits = 3; SET LOCAL bytea_output = 'hex'; SET LOCAL client_encoding = 'UTF8'; SET LOCAL statement_timeout = 0;
	SET LOCAL idle_in_transaction_session_timeout = 0`

// Users returns every user's row, sorted by name.
func (s *Snapshot) Users(ctx context.Context) ([]instance.User, error) {
	return instance.ListUsers(ctx, s.tx)
}

// Copy writes the rows of a table as text, and returns how many there are. It writes all rows if
// u is zero, else only the rows that belong to u. Only tables of the instance database have rows
// that belong to a user.
func (s *Snapshot) Copy(ctx context.Context, t Table, u vocab.Username, to io.Writer) (int64, error) {
	return copyOut(ctx, s.tx.Conn(), t, u, to)
}

// copyOut writes all rows of a table if u is zero, else the rows of u.
func copyOut(ctx context.Context, conn *pgx.Conn, t Table, u vocab.Username, to io.Writer) (int64, error) {
	what := fmt.Sprintf(`(SELECT %s FROM %s)`, t.columns(), t.quoted())
	if !u.IsZero() {
		// The statement has the name in it, because COPY takes no parameters. A name has no quote.
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

// shapeOf reads the shape of the connection's database. It leaves out generated columns, the
// tables schema_migrations and serving, and tables that are unlogged or temporary.
func shapeOf(ctx context.Context, conn *pgx.Conn) (s Shape, err error) {
	version, err := schema.Read(ctx, conn)
	if err != nil {
		return s, err
	}
	s.SchemaVersion = version.Whole()
	rows, err := conn.Query(ctx, `SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns, '' AS owner
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relpersistence = 'p' AND c.relname NOT IN ('schema_migrations', 'serving') GROUP BY c.relname ORDER BY c.relname`)
	if err != nil {
		return s, err
	}
	if s.Tables, err = pgx.CollectRows(rows, pgx.RowToStructByName[Table]); err != nil {
		return s, err
	}
	references, err := referencesOf(ctx, conn)
	if err != nil {
		return s, err
	}
	if s.Tables, err = inOrder(s.Tables, references); err != nil {
		return s, err
	}
	s.Sequences, err = sequencesOf(ctx, conn)
	return s, err
}

// reference is a foreign key: rows of From need rows of To.
type reference struct{ From, Column, To string }

func referencesOf(ctx context.Context, conn *pgx.Conn) ([]reference, error) {
	rows, err := conn.Query(ctx, `SELECT f.relname AS from, a.attname AS column, t.relname AS to FROM pg_constraint k
		JOIN pg_class f ON f.oid = k.conrelid JOIN pg_class t ON t.oid = k.confrelid
		JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
		WHERE k.contype = 'f' AND f.relnamespace = 'public'::regnamespace AND k.conrelid <> k.confrelid`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[reference])
}

// inOrder puts each table behind the tables to which it refers, and sets its Owner. Rows belong to
// a user if their table refers to the table users and to no other.
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

// usersTable is the table of the instance database that lists the users.
const usersTable = "users"
