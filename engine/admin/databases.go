package admin

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/instance"
)

// Databases are the databases of the instance and its users.
type Databases struct{ in *instance.Instance }

// Migration says which users' databases to migrate, and how.
type Migration = db.Migration

// MigrationReport is the result of Migrate, or its preview if DryRun is set.
type MigrationReport = db.MigrationReport

// MigrationFailure is a user's database that could not be migrated.
type MigrationFailure = db.MigrationFailure

// DatabaseStatus is the state of all databases.
type DatabaseStatus = db.Status

// Migrate brings users' databases to the schema of this binary. An error with one database does
// not stop the others unless m.FailFast is true. The fault is Busy when another process migrates,
// NoUser when a named user does not exist or is deleted, and Config when a database has a newer
// schema.
func (dbs Databases) Migrate(ctx context.Context, m Migration) (MigrationReport, error) {
	return dbs.in.DB.MigrateUsers(ctx, m)
}

// Status opens every user's database and reports its state.
func (dbs Databases) Status(ctx context.Context) (DatabaseStatus, error) {
	const atOnce = 4
	return dbs.in.DB.Status(ctx, atOnce)
}
