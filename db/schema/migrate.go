package schema

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4"
	migratedb "github.com/golang-migrate/migrate/v4/database"
	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/lightweb/lightweb/db/postgres"
)

// MigrateUser migrates a user's database to the version of this binary, and returns the version
// that the database has afterwards. The result "changed" is true when there was something to
// migrate. If repair is true, it repeats a change that was interrupted. It calls the function in
// the parameter "before" ahead of the first change, with the version that the database has then.
// Each change ends the sessions that lightweb has to the database (see endSessions).
func (d *Databases) MigrateUser(ctx context.Context, database string, repair bool,
	before func(ctx context.Context, conn *pgx.Conn, from Version) error) (changed bool, v Version, err error) {
	known := d.Latest(User)
	err = d.locked(ctx, database, func(*pgx.Conn) error {
		conn, err := d.Reach(ctx, database)
		if err != nil {
			return err
		}
		defer postgres.Shut(conn)
		if err = keepSession(ctx, conn); err != nil {
			return err
		}
		if v, err = settle(ctx, conn, repairable(repair, known)); err != nil {
			return postgres.Fault("read schema of "+database, err)
		}
		misfit := d.Check(database, v)
		if changed = misfit != nil && !v.Dirty && v.Number < known; !changed {
			return misfit
		}
		if misfit = before(ctx, conn, v); misfit == nil {
			misfit = d.MigrateUp(ctx, database, User)
		}
		last, cancel := postgres.Outlive(ctx, 5*time.Second) // because the caller reports the version
		defer cancel()
		if v, err = Read(last, conn); err != nil {
			return errors.Join(misfit, postgres.Fault("read schema of "+database, err))
		}
		return misfit
	})
	return changed, v, err
}

// WouldMigrateUser reports whether MigrateUser would change the database, and returns the version
// that the database has now. It returns the error of a database that MigrateUser would refuse.
func (d *Databases) WouldMigrateUser(ctx context.Context, database string, repair bool) (changed bool, v Version, err error) {
	if v, err = d.Look(ctx, database); err != nil {
		return false, v, err
	}
	misfit := d.Check(database, v)
	if v.Number <= d.Latest(User) && (!v.Dirty || repair) {
		return misfit != nil, v, nil
	}
	return false, v, misfit
}

// MigrateUp migrates a database to the latest version of a set, and does the preparations that the
// changes need on the way.
func (d *Databases) MigrateUp(ctx context.Context, database, set string) error {
	if err := d.prepare(ctx, database, set); err != nil {
		return err
	}
	return d.migrate(ctx, database, set, (*migrate.Migrate).Up)
}

// migrateTo migrates a database up to a version of a set. The database's version must not be
// higher.
func (d *Databases) migrateTo(ctx context.Context, database, set string, version int) error {
	return d.migrate(ctx, database, set, func(m *migrate.Migrate) error { return m.Migrate(uint(version)) })
}

func (d *Databases) migrate(ctx context.Context, database, set string, run func(*migrate.Migrate) error) (err error) {
	defer func() { err = postgres.Fault("migrate database "+database, err) }()
	src, err := iofs.New(d.migrations, set)
	if err != nil {
		return err
	}
	pool := stdlib.OpenDB(*d.server.Config(database))
	pool.SetMaxOpenConns(2)
	driver, err := pgxmigrate.WithInstance(pool, &pgxmigrate.Config{})
	if err != nil {
		return errors.Join(err, pool.Close())
	}
	files := whole{Driver: src}
	if set == User {
		files.last = endSessions
	}
	m, err := migrate.NewWithInstance("iofs", files, "pgx5", driver)
	if err != nil {
		return errors.Join(err, driver.Close())
	}
	// The migration stops after the current file; the channel has a buffer of one.
	stop := context.AfterFunc(ctx, func() { m.GracefulStop <- true })
	defer stop()
	if err = run(m); errors.Is(err, migrate.ErrNoChange) {
		err = nil
	}
	srcErr, dbErr := m.Close()
	return errors.Join(serverError(err), ctx.Err(), srcErr, dbErr)
}

// serverError returns the server's error that err wraps, or err if it wraps none. It leaves out
// golang-migrate's own error, because that error quotes the whole file.
func serverError(err error) error {
	if quoting, ok := errors.AsType[migratedb.Error](err); ok && quoting.OrigErr != nil {
		return quoting.OrigErr
	}
	if pointer, ok := errors.AsType[*migratedb.Error](err); ok && pointer.OrigErr != nil {
		return pointer.OrigErr
	}
	return err
}

// endSessions ends the sessions of lightweb to the database, except those of keepSession. It is a
// part of the change. Otherwise a release that does not know the change would go on in its open
// sessions, because Connect checks the version only when it opens a session. Until the change
// ends, the dirty mark makes Connect refuse the database. A change that fails ends no session.
const endSessions = `;SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
	WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'lightweb' AND pg_has_role(usesysid, 'USAGE')`

// keepSession gives a session a name that endSessions leaves out.
func keepSession(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SET application_name = 'lightweb db migrate'`)
	return postgres.Fault("name the session", err)
}

// whole is a source of migrations that appends a statement to each file. The statement clears the
// dirty mark, which golang-migrate sets before it runs the file. PostgreSQL runs a file as one
// transaction. So whenever a process is killed, a database with the mark has nothing of the
// interrupted change, and a database with the change has no mark. Therefore a file must not end
// the transaction, and must not hold a statement that cannot run in one, such as CREATE INDEX
// CONCURRENTLY.
type whole struct {
	source.Driver
	last string // a further statement, at the end of the transaction; it begins with a semicolon
}

func (w whole) ReadUp(version uint) (io.ReadCloser, string, error) {
	r, name, err := w.Driver.ReadUp(version)
	if err != nil {
		// The error is not wrapped, because golang-migrate recognizes the end of the set by
		// fs.ErrNotExist.
		return nil, "", err
	}
	unmark := strings.NewReader("\n;UPDATE schema_migrations SET dirty = false" + w.last)
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(r, unmark), r}, name, nil
}
