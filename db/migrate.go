package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	migratedb "github.com/golang-migrate/migrate/v4/database"
	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/lightweb/lightweb/engine/fault"
)

// The two sets of migrations.
const (
	userSet     = "user"
	instanceSet = "instance"
)

// latest returns the highest version in a set, whose files are named NNNN_title.up.sql.
func latest(all fs.FS, set string) int {
	names, err := fs.Glob(all, set+"/*.up.sql")
	if err != nil || len(names) == 0 {
		panic("db: no migrations are embedded")
	}
	n, err := strconv.Atoi(strings.SplitN(strings.TrimPrefix(names[len(names)-1], set+"/"), "_", 2)[0])
	if err != nil {
		panic("db: a migration's name has no number: " + err.Error())
	}
	return n
}

// prepareInstance makes the instance database and the template of users' databases when they are missing. With migrate
// unset an instance database whose schema is behind is refused.
func (c *Cluster) prepareInstance(ctx context.Context, cfg Config) error {
	return c.maintain(ctx, func(conn *pgx.Conn) error {
		if err := c.ensureTemplate(ctx, conn, c.template, userSet); err != nil {
			return err
		}
		create := func() error { return c.build(ctx, conn, c.name, instanceSet) }
		if cfg.InstanceTemplate != "" {
			if err := c.ensureTemplate(ctx, conn, cfg.InstanceTemplate, instanceSet); err != nil {
				return err
			}
			create = func() error { return clone(ctx, conn, c.name, cfg.InstanceTemplate) }
		}
		made, err := c.ensure(ctx, conn, c.name, create)
		if err != nil || made {
			return err
		}
		return alone(ctx, conn, c.name, func() error { return c.checkInstance(ctx, cfg) })
	})
}

// ensureTemplate makes a migrated database to clone others from, unless it is there.
func (c *Cluster) ensureTemplate(ctx context.Context, conn *pgx.Conn, name, set string) error {
	_, err := c.ensure(ctx, conn, name, func() error {
		return c.build(ctx, conn, name, set, `ALTER DATABASE `+quoted(half(name))+` WITH ALLOW_CONNECTIONS false`) // one in use cannot be cloned
	})
	return err
}

// lockSpace keeps the advisory locks of this package apart from those of other programs.
const lockSpace = 7305808869232651

// maintain runs work on a connection to the maintenance database.
func (c *Cluster) maintain(ctx context.Context, work func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, c.config("postgres"))
	if err != nil {
		return storeFault("reach PostgreSQL", err)
	}
	defer shut(conn)
	return work(conn)
}

// alone runs work while no other process makes, changes or drops the named database. The lock goes with the session of
// conn, however that ends.
func alone(ctx context.Context, conn *pgx.Conn, database string, work func() error) error {
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtextextended($1, $2))`, database, lockSpace); err != nil {
		return storeFault("wait for another process at database "+database, err)
	}
	err := work()
	if ctx.Err() != nil || conn.IsClosed() {
		return err
	}
	_, unlocked := conn.Exec(ctx, `SELECT pg_advisory_unlock(hashtextextended($1, $2))`, database, lockSpace)
	return errors.Join(err, storeFault("let other processes at database "+database, unlocked))
}

// locked is alone on a connection of its own.
func (c *Cluster) locked(ctx context.Context, database string, work func(*pgx.Conn) error) error {
	return c.maintain(ctx, func(conn *pgx.Conn) error {
		return alone(ctx, conn, database, func() error { return work(conn) })
	})
}

func quoted(database string) string { return pgx.Identifier{database}.Sanitize() }

// ensure lets create make a database unless it is there, and tells whether it did.
func (c *Cluster) ensure(ctx context.Context, conn *pgx.Conn, database string, create func() error) (made bool, err error) {
	err = alone(ctx, conn, database, func() error {
		var there bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&there)
		if err != nil || there {
			return storeFault("look for database "+database, err)
		}
		made = true
		err = create()
		if hasCode(err, "42501") { // insufficient privilege
			err = fault.Wrap(fault.Config, "the database role may not make databases", err).
				WithHint("ALTER ROLE " + quoted(conn.Config().User) + " CREATEDB")
		}
		return storeFault("make database "+database, err)
	})
	return made && err == nil, err
}

// half names a database that is being built. No name of a user's database has a hyphen.
func half(name string) string { return name + "-building" }

// build makes a migrated database. It is built beside and renamed, so that a half-made one is never taken for whole.
func (c *Cluster) build(ctx context.Context, conn *pgx.Conn, name, set string, finish ...string) error {
	for _, q := range []string{drop(half(name)), blank(half(name))} {
		if _, err := conn.Exec(ctx, q); err != nil {
			return err
		}
	}
	if err := c.migrateUp(ctx, half(name), set); err != nil {
		return err
	}
	for _, q := range append(finish, `ALTER DATABASE `+quoted(half(name))+` RENAME TO `+quoted(name)) {
		if _, err := conn.Exec(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

func drop(name string) string { return `DROP DATABASE IF EXISTS ` + quoted(name) + ` WITH (FORCE)` }

// blank makes an empty database. Ids are compared byte by byte, whatever language the server was set up for.
func blank(name string) string {
	return `CREATE DATABASE ` + quoted(name) + ` TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C'`
}

// clone copies a template. A clone is whole or not there: PostgreSQL removes what a killed CREATE DATABASE leaves.
// Copying files costs a hundredth of the WAL that the default strategy writes.
func clone(ctx context.Context, conn *pgx.Conn, name, template string) error {
	_, err := conn.Exec(ctx, `CREATE DATABASE `+quoted(name)+` TEMPLATE `+quoted(template)+` STRATEGY FILE_COPY`)
	return err
}

// migrateUp brings one database to the latest version of a set, and does what must be done before on the way.
func (c *Cluster) migrateUp(ctx context.Context, database, set string) error {
	if err := c.prepare(ctx, database, set); err != nil {
		return err
	}
	return c.migrate(ctx, database, set, (*migrate.Migrate).Up)
}

// migrateTo brings one database, whose version is not higher, to a version of a set.
func (c *Cluster) migrateTo(ctx context.Context, database, set string, version int) error {
	return c.migrate(ctx, database, set, func(m *migrate.Migrate) error { return m.Migrate(uint(version)) })
}

func (c *Cluster) migrate(ctx context.Context, database, set string, run func(*migrate.Migrate) error) (err error) {
	defer func() { err = storeFault("migrate database "+database, err) }()
	src, err := iofs.New(c.migrations, set)
	if err != nil {
		return err
	}
	pool := stdlib.OpenDB(*c.config(database))
	pool.SetMaxOpenConns(2)
	driver, err := pgxmigrate.WithInstance(pool, &pgxmigrate.Config{})
	if err != nil {
		return errors.Join(err, pool.Close())
	}
	m, err := migrate.NewWithInstance("iofs", whole{src}, "pgx5", driver)
	if err != nil {
		return errors.Join(err, driver.Close())
	}
	stop := context.AfterFunc(ctx, func() { m.GracefulStop <- true }) // between two files; its buffer holds one
	defer stop()
	if err = run(m); errors.Is(err, migrate.ErrNoChange) {
		err = nil
	}
	srcErr, dbErr := m.Close()
	return errors.Join(unwrapped(err), ctx.Err(), srcErr, dbErr)
}

// unwrapped takes the server's error out of golang-migrate's, which quotes the whole file.
func unwrapped(err error) error {
	var quoting migratedb.Error
	if errors.As(err, &quoting) && quoting.OrigErr != nil {
		return quoting.OrigErr
	}
	var pointer *migratedb.Error
	if errors.As(err, &pointer) && pointer.OrigErr != nil {
		return pointer.OrigErr
	}
	return err
}

// whole is a source of which each file takes the mark away that it is being run. PostgreSQL runs a file as one
// transaction, so a database with the mark holds nothing of the change that did not end, and one with the change holds no
// mark, whatever was killed and when. A file therefore neither ends a transaction nor has what runs in none, such as
// CREATE INDEX CONCURRENTLY.
type whole struct{ source.Driver }

func (w whole) ReadUp(version uint) (io.ReadCloser, string, error) {
	r, name, err := w.Driver.ReadUp(version)
	if err != nil {
		return nil, "", err // as it is: golang-migrate looks for fs.ErrNotExist at the end of the set
	}
	unmark := strings.NewReader("\n;UPDATE schema_migrations SET dirty = false")
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(r, unmark), r}, name, nil
}

// untouched reads the schema of a database that nobody migrates, and takes back the mark of a change that did not end
// when that is at most the change to version repair: such a change left nothing. The fault is Busy while somebody
// migrates the database, be it only the server for a process that was killed. The caller holds the database's lock.
func untouched(ctx context.Context, conn *pgx.Conn, repair int) (s schema, err error) {
	name := conn.Config().Database
	key, err := migratedb.GenerateAdvisoryLockId(name, "public", pgxmigrate.DefaultMigrationsTable)
	if err != nil {
		return s, err
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var free bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1::text::bigint)`, key).Scan(&free); err != nil {
			return err
		}
		if !free {
			return fault.New(fault.Busy, "the server is still at a change of database "+name+" that another process began").
				WithHint("try again when it is done")
		}
		if s, err = schemaOf(ctx, tx); err != nil || !s.dirty || s.version > repair {
			return err
		}
		s = schema{version: s.whole()}
		if s.version == 0 {
			_, err = tx.Exec(ctx, `DELETE FROM schema_migrations`)
		} else {
			_, err = tx.Exec(ctx, `UPDATE schema_migrations SET version = $1, dirty = false`, s.version)
		}
		return err
	})
	return s, err
}

// repairable returns the last version that untouched may take the mark of: none unless that was asked for, and none that
// this binary does not know.
func repairable(asked bool, known int) int {
	if !asked {
		return 0
	}
	return known
}

// checkInstance refuses an instance database that this binary does not fit, and with Migrate makes an older one fit.
func (c *Cluster) checkInstance(ctx context.Context, cfg Config) error {
	known := latest(c.migrations, instanceSet)
	conn, err := pgx.ConnectConfig(ctx, c.config(c.name))
	if err != nil {
		return storeFault("open instance database", err)
	}
	defer shut(conn)
	s, err := untouched(ctx, conn, repairable(cfg.Migrate && cfg.Repair, known))
	if err != nil {
		return storeFault("read the instance schema", err)
	}
	switch {
	case s.version > known:
		return fault.New(fault.Config, fmt.Sprintf("the instance database has schema %d, newer than this lightweb knows (%d)", s.version, known)).
			WithHint("run the newer lightweb that migrated it")
	case s.dirty:
		return fault.New(fault.Config, fmt.Sprintf("the change of the instance database to schema %d did not end", s.version)).
			WithCode(codeBehind).WithHint("lightweb db migrate --repair")
	case s.version < known && !cfg.Migrate:
		return fault.New(fault.Config, fmt.Sprintf("the instance database has schema %d, this lightweb needs %d", s.version, known)).
			WithCode(codeBehind).WithHint("lightweb db migrate")
	case s.version < known:
		return c.migrateUp(ctx, c.name, instanceSet)
	}
	return nil
}

// codeBehind marks the refusal of an instance database that migrating makes fit.
const codeBehind = "instance_behind"

// Behind tells whether Open refused an instance database that it would take with Migrate, or with Repair too.
func Behind(err error) bool { f := fault.Of(err); return f != nil && f.Code == codeBehind }

// checkUserSchema refuses a user's database that this binary does not fit.
func (c *Cluster) checkUserSchema(ctx context.Context, conn *pgx.Conn) error {
	s, err := userSchema(ctx, conn)
	if err != nil {
		return err
	}
	return c.fits(conn.Config().Database, s)
}

func userSchema(ctx context.Context, conn *pgx.Conn) (schema, error) {
	s, err := schemaOf(ctx, conn)
	if err != nil {
		return s, userFault(fmt.Errorf("read schema of %s: %w", conn.Config().Database, err), restore)
	}
	return s, nil
}

// restore is the hint where a user's database is lost.
const restore = "lightweb restore FILE --user NAME, out of a backup"

// fits refuses a user's database with another schema than this binary's.
func (c *Cluster) fits(name string, s schema) error {
	known := latest(c.migrations, userSet)
	command := "lightweb db migrate " + strings.TrimPrefix(name, c.name+"_")
	switch {
	case s.version > known:
		return userFault(fmt.Errorf("%s has schema %d, newer than this lightweb knows (%d)", name, s.version, known), "run the newer lightweb that migrated it")
	case s.dirty:
		return userFault(fmt.Errorf("the change of %s to schema %d did not end", name, s.version), command+" --repair")
	case s.version < known:
		return userFault(fmt.Errorf("%s has schema %d, this lightweb needs %d", name, s.version, known), command)
	}
	return nil
}

// schema is what golang-migrate keeps of a database: its version, or the one it was being brought to when dirty.
type schema struct {
	version int
	dirty   bool
}

// whole returns the version that the database has in full.
func (s schema) whole() int {
	if s.dirty {
		return s.version - 1
	}
	return s.version
}

// schemaOf reads the schema of a database. A table without a row is one whose first change has not begun.
func schemaOf(ctx context.Context, on interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}) (s schema, err error) {
	err = on.QueryRow(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&s.version, &s.dirty)
	if isNoRows(err) {
		return schema{}, nil
	}
	return s, err
}
