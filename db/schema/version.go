package schema

import (
	"context"

	migratedb "github.com/golang-migrate/migrate/v4/database"
	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
)

// Version is the version of a database's schema, as golang-migrate stores it.
type Version struct {
	Number int  // if Dirty is true, the version of the interrupted change
	Dirty  bool // a change has begun and was not completed
}

// Whole returns the version of the last change that was completed.
func (v Version) Whole() int {
	if v.Dirty {
		return v.Number - 1
	}
	return v.Number
}

// Read reads the version of a database. It returns the zero Version if the table of versions has
// no row, because then the first change has not begun.
func Read(ctx context.Context, on interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}) (v Version, err error) {
	err = on.QueryRow(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&v.Number, &v.Dirty)
	if postgres.IsNoRows(err) {
		return Version{}, nil
	}
	return v, err
}

// settle reads the version of a database. The fault is Busy while a process migrates the
// database, and while the server still works for such a process that was killed. If an
// interrupted change to a version up to the parameter repair has left the dirty mark, settle
// clears the mark, because such a change has left nothing else (see whole). The caller holds the
// database's lock.
func settle(ctx context.Context, conn *pgx.Conn, repair int) (v Version, err error) {
	name := conn.Config().Database
	key, err := migratedb.GenerateAdvisoryLockId(name, "public", pgxmigrate.DefaultMigrationsTable)
	if err != nil {
		return v, err
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
		if v, err = Read(ctx, tx); err != nil || !v.Dirty || v.Number > repair {
			return err
		}
		v = Version{Number: v.Whole()}
		if v.Number == 0 {
			_, err = tx.Exec(ctx, `DELETE FROM schema_migrations`)
		} else {
			_, err = tx.Exec(ctx, `UPDATE schema_migrations SET version = $1, dirty = false`, v.Number)
		}
		return err
	})
	return v, err
}

// repairable returns the last version whose dirty mark settle may clear. If asked is true, that
// is the last version that this binary knows. Otherwise it is 0.
func repairable(asked bool, known int) int {
	if !asked {
		return 0
	}
	return known
}
