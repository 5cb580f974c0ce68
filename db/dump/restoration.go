package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Restoration builds databases under names that differ from those in use. It changes no database in
// use before Commit. If the process is killed, the unfinished databases remain, and the next
// restoration drops them.
type Restoration struct {
	d       *Dumper
	of      time.Time // when the backup was taken
	release func()
	server  *pgx.Conn // to the maintenance database

	instance *building // a new instance database; it has the backup's rows about the restored users, or about the whole instance
	current  *building // the database of the user whose rows are being copied
	built    []vocab.Username
	fenced   int64
	blocks   int // how many blocks Commit has copied from the database that it put aside
}

// building is a database that is being filled in one transaction.
type building struct {
	user      vocab.Username // zero for the instance database
	name, set string
	shape     Shape // its shape in the backup
	conn      *pgx.Conn
}

// BeginRestoration begins a restoration, and drops the databases that a killed restoration left.
// The parameter backupOf is the time at which the backup was taken. The fault is Busy when
// another process restores on this instance.
func (d *Dumper) BeginRestoration(ctx context.Context, backupOf time.Time) (*Restoration, error) {
	release, err := d.instance.Locks.Restore(ctx)
	if err != nil {
		return nil, err
	}
	server, err := pgx.ConnectConfig(ctx, d.server.Config("postgres"))
	if err != nil {
		release()
		return nil, postgres.Fault("reach PostgreSQL", err)
	}
	r := &Restoration{d: d, of: backupOf, release: release, server: server}
	if err := r.sweep(ctx); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// Close ends the restoration, and drops the databases that were built and not committed. The
// removal of a database waits for a checkpoint of the server. So Close may take as long as ctx
// lasts, and a minute longer.
func (r *Restoration) Close(ctx context.Context) error {
	ctx, cancel := postgres.Outlive(ctx, time.Minute)
	defer cancel()
	for _, b := range []*building{r.instance, r.current} {
		if b != nil && b.conn != nil {
			postgres.Shut(b.conn)
		}
	}
	err := r.sweep(ctx)
	postgres.Shut(r.server)
	r.release()
	return err
}

// sweep drops all unfinished databases, those of this restoration and those of a killed one.
func (r *Restoration) sweep(ctx context.Context) error {
	rows, err := r.server.Query(ctx, `SELECT datname FROM pg_database WHERE datname = $1 || $2
		OR starts_with(datname, $1 || '_') AND right(datname, length($2)) = $2`, r.d.schema.Name(), schema.Unfinished)
	if err != nil {
		return postgres.Fault("look for unfinished databases", err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return postgres.Fault("look for unfinished databases", err)
	}
	for _, name := range left {
		if err := schema.Drop(ctx, r.server, name); err != nil {
			return postgres.Fault("drop database "+name, err)
		}
	}
	return nil
}

// Begin makes an empty database for u, or for the instance when u is zero. The database has the
// schema version of the backup. Copy then fills the database. Before it makes the database, Begin
// completes the user's database that was begun before. The fault is Config when this binary does
// not know the schema version, Invalid when the shape has tables, columns or sequences that the
// version does not have.
func (r *Restoration) Begin(ctx context.Context, u vocab.Username, shape Shape) error {
	if err := r.finish(ctx); err != nil {
		return err
	}
	b := &building{user: u, name: r.d.schema.Name() + schema.Unfinished, set: schema.Instance, shape: shape}
	if !u.IsZero() {
		b.name, b.set = r.d.schema.OfUser(u)+schema.Unfinished, schema.User
	}
	if known := r.d.schema.Latest(b.set); shape.SchemaVersion < 1 || shape.SchemaVersion > known {
		return fault.New(fault.Config, fmt.Sprintf("the backup holds a database with schema %d; this lightweb knows 1 to %d", shape.SchemaVersion, known)).
			WithHint("restore it with the lightweb that wrote it, or a newer one")
	}
	if err := r.create(ctx, b); err != nil {
		return postgres.Fault("make database "+b.name, err)
	}
	if b.set == schema.Instance {
		r.instance = b
	} else {
		r.current, r.built = b, append(r.built, u)
	}
	return r.open(ctx, b)
}

func (r *Restoration) create(ctx context.Context, b *building) error {
	if err := schema.Drop(ctx, r.server, b.name); err != nil {
		return err
	}
	return r.d.schema.CreateAt(ctx, r.server, b.name, b.set, b.shape.SchemaVersion)
}

// open begins the transaction in which the database is filled.
func (r *Restoration) open(ctx context.Context, b *building) (err error) {
	if b.conn, err = pgx.ConnectConfig(ctx, r.d.server.Config(b.name)); err != nil {
		return postgres.Fault("open database "+b.name, err)
	}
	if _, err := b.conn.Exec(ctx, `BEGIN; `+copyForm); err != nil {
		return postgres.Fault("fill database "+b.name, err)
	}
	has, err := shapeOf(ctx, b.conn)
	if err != nil {
		return postgres.Fault("read what "+b.name+" holds", err)
	}
	for _, t := range b.shape.Tables {
		real := has.table(t.Name)
		if real == nil || !slices.Equal(real.Columns, t.Columns) || real.Owner != t.Owner {
			return fault.New(fault.Invalid, fmt.Sprintf("the backup holds a table %q that schema %d does not have so", t.Name, b.shape.SchemaVersion))
		}
	}
	for _, s := range b.shape.Sequences {
		if !slices.ContainsFunc(has.Sequences, func(real Sequence) bool { return real.Name == s.Name }) {
			return fault.New(fault.Invalid, fmt.Sprintf("the backup holds a sequence %q that schema %d does not have", s.Name, b.shape.SchemaVersion))
		}
	}
	return nil
}

// Copy fills a table of the database of u, or of the instance when u is zero. It returns how many
// rows it copied. Begin must have been called for u, and since then for no other user.
func (r *Restoration) Copy(ctx context.Context, u vocab.Username, table string, rows io.Reader) (int64, error) {
	b := r.current
	if u.IsZero() {
		b = r.instance
	}
	if b != nil && b.user != u {
		b = nil
	}
	return b.fill(ctx, table, rows)
}

// CopyKnown fills a table of the instance database with rows that belong to a user. It returns how
// many rows it copied.
func (r *Restoration) CopyKnown(ctx context.Context, table string, rows io.Reader) (int64, error) {
	return r.instance.fill(ctx, table, rows)
}

// watched is a reader that remembers its error, because the server's error for an aborted COPY
// says less.
type watched struct {
	io.Reader
	err error
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

func (b *building) fill(ctx context.Context, table string, rows io.Reader) (int64, error) {
	var t *Table
	if b != nil {
		t = b.shape.table(table)
	}
	if t == nil {
		return 0, fault.New(fault.Invalid, fmt.Sprintf("the backup holds rows of %q without saying what they are", table))
	}
	from := &watched{Reader: rows}
	tag, err := b.conn.PgConn().CopyFrom(ctx, from, copyIn(*t))
	if from.err != nil {
		return 0, from.err
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code[:2] == "22" || pg.Code[:2] == "23") { // data exception, violated constraint
		return 0, fault.Wrap(fault.Invalid, "the backup holds rows that table "+table+" does not take", err)
	}
	return tag.RowsAffected(), postgres.Fault("fill table "+table, err)
}

func copyIn(t Table) string { return `COPY ` + t.quoted() + ` (` + t.columns() + `) FROM STDIN` }

// commit commits the rows of a database, and migrates it to the schema of this binary.
func (b *building) commit(ctx context.Context, d *Dumper) error {
	if err := moveSequences(ctx, b.conn, b.shape.Sequences); err != nil {
		return err
	}
	if _, err := b.conn.Exec(ctx, `COMMIT`); err != nil {
		return postgres.Fault("fill database "+b.name, err)
	}
	postgres.Shut(b.conn)
	b.conn = nil
	return d.schema.MigrateUp(ctx, b.name, b.set)
}

// finish completes the user's database that is being filled, if there is one.
func (r *Restoration) finish(ctx context.Context) error {
	b := r.current
	if b == nil {
		return nil
	}
	if err := b.commit(ctx, r.d); err != nil {
		return err
	}
	r.current = nil
	return r.settle(ctx, b.name)
}

// Finish completes the databases that were begun. The result "fenced" is the number of deliveries
// to other servers that were marked as skipped (see fence). The fault is Invalid when the backup
// has no instance database.
func (r *Restoration) Finish(ctx context.Context) (fenced int64, err error) {
	if err := r.finish(ctx); err != nil {
		return 0, err
	}
	if r.instance == nil {
		return 0, fault.New(fault.Invalid, "the backup does not say who its users are")
	}
	return r.fenced, r.instance.commit(ctx, r.d)
}
