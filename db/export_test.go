package db

import (
	"context"
	"errors"
	"io/fs"

	"github.com/golang-migrate/migrate/v4"
	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/migrations"
)

// WithMigrations returns c with the migrations of another release.
func (c Config) WithMigrations(all fs.FS) Config { c.Migrations = all; return c }

// MigrateDown undoes all migrations of a set.
func (c *Cluster) MigrateDown(database, set string) error {
	src, err := iofs.New(migrations.FS, set)
	if err != nil {
		return err
	}
	driver, err := pgxmigrate.WithInstance(stdlib.OpenDB(*c.server.Config(database)), &pgxmigrate.Config{})
	if err != nil {
		return err
	}
	m, err := migrate.NewWithInstance("iofs", src, "pgx5", driver)
	if err != nil {
		return errors.Join(err, driver.Close())
	}
	err = m.Down()
	srcErr, dbErr := m.Close()
	return errors.Join(err, srcErr, dbErr)
}

// MigrateUp brings a database to the latest version of a set.
func (c *Cluster) MigrateUp(ctx context.Context, database, set string) error {
	return c.schema.MigrateUp(ctx, database, set)
}

// RespellUser runs the rewriting of a user's ids to canonical ids again.
func (c *Cluster) RespellUser(ctx context.Context, database string) error {
	conn, err := pgx.ConnectConfig(ctx, c.server.Config(database))
	if err != nil {
		return err
	}
	defer postgres.Shut(conn)
	return schema.RespellUser(ctx, conn)
}
