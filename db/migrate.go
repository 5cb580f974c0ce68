package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/migrations"
)

// The two sets of migrations.
const (
	userSet     = "user"
	instanceSet = "instance"
)

// Schema returns the version of users' databases that this binary knows.
func Schema() int { return latest(userSet) }

// latest returns the highest version in a set, whose files are named NNNN_title.up.sql.
func latest(set string) int {
	names, err := fs.Glob(migrations.FS, set+"/*.up.sql")
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
	if err := c.ensureTemplate(ctx, c.template, userSet); err != nil {
		return err
	}
	create := func(ctx context.Context, conn *pgx.Conn) error { return c.build(ctx, conn, c.name, instanceSet) }
	if cfg.InstanceTemplate != "" {
		if err := c.ensureTemplate(ctx, cfg.InstanceTemplate, instanceSet); err != nil {
			return err
		}
		create = func(ctx context.Context, conn *pgx.Conn) error { return clone(ctx, conn, c.name, cfg.InstanceTemplate) }
	}
	made, err := c.ensure(ctx, c.name, create)
	if err != nil || made {
		return err
	}
	return c.locked(ctx, c.name, func(ctx context.Context, _ *pgx.Conn) error { return c.checkInstance(ctx, cfg.Migrate) })
}

// ensureTemplate makes a migrated database to clone others from, unless it is there.
func (c *Cluster) ensureTemplate(ctx context.Context, name, set string) error {
	_, err := c.ensure(ctx, name, func(ctx context.Context, conn *pgx.Conn) error {
		return c.build(ctx, conn, name, set, `ALTER DATABASE `+quoted(half(name))+` WITH ALLOW_CONNECTIONS false`) // one in use cannot be cloned
	})
	return err
}

// lockSpace keeps the advisory locks of this package apart from those of other programs.
const lockSpace = 7305808869232651

// locked runs work on a connection to the maintenance database while no other process makes, changes or drops the named
// database. A lock goes with its session, however that ends.
func (c *Cluster) locked(ctx context.Context, database string, work func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, c.config("postgres"))
	if err != nil {
		return storeFault("reach PostgreSQL", err)
	}
	defer shut(conn)
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtextextended($1, $2))`, database, lockSpace); err != nil {
		return storeFault("wait for another process at database "+database, err)
	}
	return work(ctx, conn)
}

func quoted(database string) string { return pgx.Identifier{database}.Sanitize() }

// ensure lets create make a database unless it is there, and tells whether it did.
func (c *Cluster) ensure(ctx context.Context, database string, create func(context.Context, *pgx.Conn) error) (made bool, err error) {
	err = c.locked(ctx, database, func(ctx context.Context, conn *pgx.Conn) error {
		var there bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&there)
		if err != nil || there {
			return storeFault("look for database "+database, err)
		}
		made = true
		err = create(ctx, conn)
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
	for _, q := range []string{
		`DROP DATABASE IF EXISTS ` + quoted(half(name)) + ` WITH (FORCE)`,
		// Ids are compared byte by byte, whatever language the server was set up for.
		`CREATE DATABASE ` + quoted(half(name)) + ` TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C'`,
	} {
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

// clone copies a template. A clone is whole or not there: PostgreSQL removes what a killed CREATE DATABASE leaves.
// Copying files costs a hundredth of the WAL that the default strategy writes.
func clone(ctx context.Context, conn *pgx.Conn, name, template string) error {
	_, err := conn.Exec(ctx, `CREATE DATABASE `+quoted(name)+` TEMPLATE `+quoted(template)+` STRATEGY FILE_COPY`)
	return err
}

// migrateUp brings one database to the latest version of a set.
func (c *Cluster) migrateUp(ctx context.Context, database, set string) (err error) {
	defer func() { err = storeFault("migrate database "+database, err) }()
	src, err := iofs.New(migrations.FS, set)
	if err != nil {
		return err
	}
	pool := stdlib.OpenDB(*c.config(database))
	pool.SetMaxOpenConns(2)
	driver, err := pgxmigrate.WithInstance(pool, &pgxmigrate.Config{})
	if err != nil {
		return errors.Join(err, pool.Close())
	}
	m, err := migrate.NewWithInstance("iofs", src, "pgx5", driver)
	if err != nil {
		return errors.Join(err, driver.Close())
	}
	stop := context.AfterFunc(ctx, func() { m.GracefulStop <- true }) // between two files; its buffer holds one
	defer stop()
	if err = m.Up(); errors.Is(err, migrate.ErrNoChange) {
		err = nil
	}
	srcErr, dbErr := m.Close()
	return errors.Join(err, ctx.Err(), srcErr, dbErr)
}

// checkInstance refuses an instance database that this binary does not fit, and with migrate makes an older one fit.
func (c *Cluster) checkInstance(ctx context.Context, migrateIt bool) error {
	conn, err := pgx.ConnectConfig(ctx, c.config(c.name))
	if err != nil {
		return storeFault("open instance database", err)
	}
	defer shut(conn)
	version, dirty, err := schemaOf(ctx, conn)
	if err != nil {
		return storeFault("read the instance schema", err)
	}
	known := latest(instanceSet)
	switch {
	case dirty:
		return fault.New(fault.Config, fmt.Sprintf("the change of the instance database to schema %d did not end", version)).
			WithHint("restore the database from a backup")
	case version > known:
		return fault.New(fault.Config, fmt.Sprintf("the instance database has schema %d, newer than this lightweb knows (%d)", version, known)).
			WithHint("run the newer lightweb that migrated it")
	case version < known && !migrateIt:
		return fault.New(fault.Config, fmt.Sprintf("the instance database has schema %d, this lightweb needs %d", version, known)).
			WithHint("run 'lightweb db migrate'")
	case version < known:
		return c.migrateUp(ctx, c.name, instanceSet)
	}
	return nil
}

// checkUserSchema refuses a user's database that this binary does not fit.
func checkUserSchema(ctx context.Context, conn *pgx.Conn, database string) error {
	version, dirty, err := schemaOf(ctx, conn)
	switch {
	case err != nil:
		return userFault(fmt.Errorf("read schema of %s: %w", database, err), "restore the user's database from a backup")
	case dirty:
		return userFault(fmt.Errorf("the change of %s to schema %d did not end", database, version), "restore the user's database from a backup")
	case version > Schema():
		return userFault(fmt.Errorf("%s has schema %d, newer than this lightweb knows (%d)", database, version, Schema()), "run the newer lightweb that migrated it")
	case version < Schema():
		return userFault(fmt.Errorf("%s has schema %d, this lightweb needs %d", database, version, Schema()), "run 'lightweb db migrate'")
	}
	return nil
}

// schemaOf reads what golang-migrate keeps. A table without a row is one whose first change has not begun.
func schemaOf(ctx context.Context, conn *pgx.Conn) (version int, dirty bool, err error) {
	err = conn.QueryRow(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty)
	if isNoRows(err) {
		return 0, false, nil
	}
	return version, dirty, err
}
