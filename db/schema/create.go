package schema

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Preparing says how the instance database is made ready.
type Preparing struct {
	Template string // the database from which the instance database is cloned; when empty, the migrations make the instance database
	Migrate  bool   // whether Prepare migrates an instance schema that is behind; if false, Prepare refuses it
	Repair   bool   // whether Prepare, if Migrate is true, repeats a change that was interrupted
}

// Prepare makes the instance database and the template of users' databases when they are missing.
// If p.Migrate is false, it refuses an instance database whose schema is behind.
func (d *Databases) Prepare(ctx context.Context, p Preparing) error {
	if ready, err := d.isReady(ctx, p); ready || err != nil {
		return err
	}
	return d.server.Maintain(ctx, func(conn *pgx.Conn) error {
		if err := d.ensureTemplate(ctx, conn, d.template, User); err != nil {
			return err
		}
		create := func() error { return d.build(ctx, conn, d.name, Instance) }
		if p.Template != "" {
			if err := d.ensureTemplate(ctx, conn, p.Template, Instance); err != nil {
				return err
			}
			create = func() error { return clone(ctx, conn, d.name, p.Template) }
		}
		made, err := d.ensure(ctx, conn, d.name, create)
		if err != nil || made {
			return err
		}
		return alone(ctx, conn, d.name, func() error { return d.checkInstance(ctx, p) })
	})
}

// isReady reports whether Prepare has nothing to do: the instance database has the schema of this
// binary, and the templates exist. Almost every process finds it so, and then needs neither a lock
// nor a connection to the maintenance database. The error says that the server does not answer.
func (d *Databases) isReady(ctx context.Context, p Preparing) (ready bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, d.server.Config(d.name))
	if postgres.HasCode(err, "3D000") { // no such database
		return false, nil
	}
	if err != nil {
		return false, postgres.Fault("reach PostgreSQL", err)
	}
	defer postgres.Shut(conn)
	err = conn.QueryRow(ctx, `SELECT version = $1 AND NOT dirty
		AND EXISTS (SELECT FROM pg_database WHERE datname = $2)
		AND ($3 = '' OR EXISTS (SELECT FROM pg_database WHERE datname = $3)) FROM schema_migrations`,
		d.Latest(Instance), d.template, p.Template).Scan(&ready)
	return err == nil && ready, nil // an error is for the longer road to explain
}

// CreateUser clones the template for u. If the database of u exists already, CreateUser migrates
// that database to the latest version instead.
func (d *Databases) CreateUser(ctx context.Context, u vocab.Username) error {
	database := d.OfUser(u)
	return d.server.Maintain(ctx, func(conn *pgx.Conn) error {
		made, err := d.ensure(ctx, conn, database, func() error { return clone(ctx, conn, database, d.template) })
		if err != nil || made {
			return err
		}
		// An older lightweb may have cloned the database.
		return alone(ctx, conn, database, func() error { return d.MigrateUp(ctx, database, User) })
	})
}

// aside separates the name of a user's database from the time at which a restore put the database
// aside.
const aside = "-replaced-"

// Aside returns the name of a user's database after a restore has put it aside. Usernames have no
// hyphen, so no user's database has such a name.
func Aside(database string, at time.Time) string {
	return database + aside + at.UTC().Format("20060102150405")
}

// Unfinished is the suffix of the name of a database that a restore is building. Usernames have no
// hyphen, so no user's database has such a name.
const Unfinished = "-restoring"

// DropUser drops the database of u, if it exists. It also drops the databases of u that restores
// have put aside.
func (d *Databases) DropUser(ctx context.Context, u vocab.Username) error {
	database := d.OfUser(u)
	return d.locked(ctx, database, func(conn *pgx.Conn) error {
		all, err := postgres.CollectColumn[string](ctx, conn, "look for databases", `SELECT datname FROM pg_database
			WHERE datname = $1 OR starts_with(datname, $1 || $2) AND substr(datname, length($1 || $2) + 1) ~ '^[0-9]+$'`, database, aside)
		if err != nil {
			return err
		}
		for _, name := range all {
			if err := Drop(ctx, conn, name); err != nil {
				return postgres.Fault("drop database "+name, err)
			}
		}
		return nil
	})
}

// DropUnfinished drops the unfinished database of u that a killed restore has left. The caller
// must hold the lock that keeps restores from running (instance.Locks.Restore).
func (d *Databases) DropUnfinished(ctx context.Context, u vocab.Username) error {
	database := d.OfUser(u) + Unfinished
	return d.locked(ctx, database, func(conn *pgx.Conn) error {
		return postgres.Fault("drop database "+database, Drop(ctx, conn, database))
	})
}

// Destroy drops the instance database, the named databases of users, and the template if it is
// named after this instance.
func (d *Databases) Destroy(ctx context.Context, users []string) error {
	databases := append([]string{d.name}, users...)
	if strings.HasPrefix(d.template, d.name+"-template-") {
		databases = append(databases, d.template)
	}
	return d.locked(ctx, d.name, func(conn *pgx.Conn) error {
		for _, database := range databases {
			if err := Drop(ctx, conn, database); err != nil {
				return postgres.Fault("drop database "+database, err)
			}
		}
		return nil
	})
}

// ensureTemplate makes a migrated database from which others are cloned, unless it exists.
func (d *Databases) ensureTemplate(ctx context.Context, conn *pgx.Conn, name, set string) error {
	_, err := d.ensure(ctx, conn, name, func() error {
		return d.build(ctx, conn, name, set, `ALTER DATABASE `+postgres.Quote(unbuilt(name))+` WITH ALLOW_CONNECTIONS false`) // a database in use cannot be cloned
	})
	return err
}

// lockSpace makes the advisory locks of this package differ from those of other programs.
const lockSpace = 7305808869232651

// alone runs work under a lock, so that no other process makes, changes or drops the named
// database meanwhile. The lock belongs to the session of conn, and ends with that session even if
// it is not released.
func alone(ctx context.Context, conn *pgx.Conn, database string, work func() error) error {
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtextextended($1, $2))`, database, lockSpace); err != nil {
		return postgres.Fault("wait for another process at database "+database, err)
	}
	err := work()
	if ctx.Err() != nil || conn.IsClosed() {
		return err
	}
	_, unlocked := conn.Exec(ctx, `SELECT pg_advisory_unlock(hashtextextended($1, $2))`, database, lockSpace)
	return errors.Join(err, postgres.Fault("let other processes at database "+database, unlocked))
}

// locked does the same as alone, but opens a connection of its own and passes it to work.
func (d *Databases) locked(ctx context.Context, database string, work func(*pgx.Conn) error) error {
	return d.server.Maintain(ctx, func(conn *pgx.Conn) error {
		return alone(ctx, conn, database, func() error { return work(conn) })
	})
}

// ensure calls create unless the database exists. The result "made" is true when create made the
// database.
func (d *Databases) ensure(ctx context.Context, conn *pgx.Conn, database string, create func() error) (made bool, err error) {
	err = alone(ctx, conn, database, func() error {
		there, err := Exists(ctx, conn, database)
		if err != nil || there {
			return postgres.Fault("look for database "+database, err)
		}
		made = true
		err = create()
		if postgres.HasCode(err, "42501") { // insufficient privilege
			err = fault.Wrap(fault.Config, "the database role may not make databases", err).
				WithHint("ALTER ROLE " + postgres.Quote(conn.Config().User) + " CREATEDB")
		}
		return postgres.Fault("make database "+database, err)
	})
	return made && err == nil, err
}

// Exists reports whether the server has a database of that name.
func Exists(ctx context.Context, conn *pgx.Conn, database string) (there bool, err error) {
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&there)
	return there, err
}

// unbuilt returns the name of a database while it is being built. Usernames have no hyphen, so no
// user's database has such a name.
func unbuilt(name string) string { return name + "-building" }

// build makes a migrated database and then runs the statements in finish. It builds the database
// under another name and renames it at the end, so that an unfinished database never has the
// final name.
func (d *Databases) build(ctx context.Context, conn *pgx.Conn, name, set string, finish ...string) error {
	if err := Drop(ctx, conn, unbuilt(name)); err != nil {
		return err
	}
	if err := createEmpty(ctx, conn, unbuilt(name)); err != nil {
		return err
	}
	if err := d.MigrateUp(ctx, unbuilt(name), set); err != nil {
		return err
	}
	for _, q := range finish {
		if _, err := conn.Exec(ctx, q); err != nil {
			return err
		}
	}
	return Rename(ctx, conn, unbuilt(name), name)
}

// CreateAt makes a database and migrates it to the given version of a set of migrations. The
// migrations of this binary must include that version.
func (d *Databases) CreateAt(ctx context.Context, conn *pgx.Conn, name, set string, version int) error {
	if set == User && version == d.Latest(User) {
		return clone(ctx, conn, name, d.template)
	}
	if err := createEmpty(ctx, conn, name); err != nil {
		return err
	}
	return d.migrateTo(ctx, name, set, version)
}

// Rename gives a database another name. It fails while a session uses the database.
func Rename(ctx context.Context, conn *pgx.Conn, from, to string) error {
	_, err := conn.Exec(ctx, `ALTER DATABASE `+postgres.Quote(from)+` RENAME TO `+postgres.Quote(to))
	return err
}

// Drop drops a database, if it exists, and ends the sessions that use it.
func Drop(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, `DROP DATABASE IF EXISTS `+postgres.Quote(name)+` WITH (FORCE)`)
	return err
}

// createEmpty makes an empty database. The database compares texts byte by byte, instead of by
// the locale of the server.
func createEmpty(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, `CREATE DATABASE `+postgres.Quote(name)+` TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C'`)
	return err
}

// clone copies a template. A clone is complete or does not exist, because PostgreSQL removes the
// copied files if CREATE DATABASE is killed. The strategy FILE_COPY writes a hundredth of the WAL
// that the default strategy writes.
func clone(ctx context.Context, conn *pgx.Conn, name, template string) error {
	_, err := conn.Exec(ctx, `CREATE DATABASE `+postgres.Quote(name)+` TEMPLATE `+postgres.Quote(template)+` STRATEGY FILE_COPY`)
	return err
}
