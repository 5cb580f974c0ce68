package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Migration says which users' databases are brought to the schema of this binary, and how.
type Migration struct {
	Users       []vocab.Username    // nobody named: everybody who is not deleted
	DryRun      bool                // only look what there is to do
	Repair      bool                // make a change again that did not end
	FailFast    bool                // begin with no other database once one has failed
	Concurrency int                 // databases at once; 1 when 0
	Progress    func(done, all int) // told after each database, by one goroutine at a time; may be nil
}

// MigrationReport says what became of a migration, or with DryRun what would.
type MigrationReport struct {
	Target    int // the schema of this binary
	Databases int
	Migrated  int
	Unchanged int                // had the schema before
	Failures  []MigrationFailure // by name
}

// MigrationFailure is a user's database that could not be brought to the schema.
type MigrationFailure struct {
	User     vocab.Username
	Version  int // with Dirty: of the change that did not end; 0 when it could not be read
	Dirty    bool
	SQLState string // when the server refused
	Err      error
}

// MigrateUsers brings users' databases to the schema of this binary; one that fails does not keep the others from it.
// The fault is Busy when another process does the same on this instance, NoUser when somebody named is no user, Config
// when a database is known to have a newer schema than this binary.
func (c *Cluster) MigrateUsers(ctx context.Context, m Migration) (MigrationReport, error) {
	report := MigrationReport{Target: latest(c.migrations, userSet)}
	users, err := c.withDatabase(ctx, m.Users)
	if err != nil {
		return report, err
	}
	for _, u := range users {
		if u.SchemaVersion > report.Target {
			return report, fault.New(fault.Config, fmt.Sprintf("the database of %s has schema %d, newer than this lightweb knows (%d)", u.Name, u.SchemaVersion, report.Target)).
				WithHint("run the newer lightweb that migrated it")
		}
	}
	if !m.DryRun {
		release, err := c.lockJob(ctx, migrateJob)
		if err != nil {
			return report, err
		}
		defer release()
	}
	report.Databases = len(users)
	var mu sync.Mutex
	each(users, m.Concurrency, func(u User) {
		mu.Lock()
		stop := ctx.Err() != nil || m.FailFast && len(report.Failures) > 0
		mu.Unlock()
		if stop {
			return
		}
		changed, s, err := c.migrateUser(ctx, u, m)
		mu.Lock()
		defer mu.Unlock()
		report.add(u.Name, changed, s, err)
		if m.Progress != nil {
			m.Progress(report.done(), len(users))
		}
	})
	slices.SortFunc(report.Failures, func(a, b MigrationFailure) int { return cmp.Compare(a.User.String(), b.User.String()) })
	return report, storeFault(fmt.Sprintf("migrate: %d of %d databases were done", report.done(), len(users)), ctx.Err())
}

func (r *MigrationReport) done() int { return r.Migrated + r.Unchanged + len(r.Failures) }

func (r *MigrationReport) add(u vocab.Username, changed bool, s schema, err error) {
	switch {
	case err != nil:
		f := MigrationFailure{User: u, Version: s.version, Dirty: s.dirty, Err: err}
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			f.SQLState = pg.Code
		}
		r.Failures = append(r.Failures, f)
	case changed:
		r.Migrated++
	default:
		r.Unchanged++
	}
}

// each runs work for every user, for at most n of them at once.
func each(users []User, n int, work func(User)) {
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, max(n, 1))
	for _, u := range users {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			work(u)
		})
	}
}

// withDatabase returns those who are named, or all, as far as they have a database. A user who is still being made may
// have none.
func (c *Cluster) withDatabase(ctx context.Context, names []vocab.Username) ([]User, error) {
	for _, name := range names {
		u, err := c.User(ctx, name)
		if err != nil {
			return nil, err
		}
		if u.State == UserDeleted {
			return nil, fault.New(fault.NoUser, fmt.Sprintf("the user %q is deleted", name)).WithHint("lightweb user list")
		}
	}
	rows, err := c.instance.Query(ctx, `SELECT `+userColumns+` FROM users WHERE state <> 'deleted'
		AND (state <> 'creating' OR EXISTS (SELECT FROM pg_database WHERE datname = database)) ORDER BY username`)
	if err != nil {
		return nil, storeFault("list users", err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowToStructByPos[User])
	if len(names) > 0 {
		users = slices.DeleteFunc(users, func(u User) bool { return !slices.Contains(names, u.Name) })
	}
	return users, storeFault("list users", err)
}

// migrateUser brings one database to the schema, and returns the one it then has.
func (c *Cluster) migrateUser(ctx context.Context, u User, m Migration) (changed bool, s schema, err error) {
	if m.DryRun {
		return c.wouldMigrate(ctx, u, m.Repair)
	}
	known := latest(c.migrations, userSet)
	defer c.users.retry(u.Database)
	err = c.locked(ctx, u.Database, func(*pgx.Conn) error {
		conn, err := c.reachUser(ctx, u.Database)
		if err != nil {
			return err
		}
		defer shut(conn)
		if s, err = untouched(ctx, conn, repairable(m.Repair, known)); err != nil {
			return storeFault("read schema of "+u.Database, err)
		}
		misfit := c.fits(u.Database, s)
		if changed = misfit != nil && !s.dirty && s.version < known; changed {
			misfit = c.upgrade(ctx, conn, u, s)
			ctx := context.WithoutCancel(ctx) // what was done is reported although time ran out
			if s, err = schemaOf(ctx, conn); err != nil {
				return errors.Join(misfit, storeFault("read schema of "+u.Database, err))
			}
		}
		return errors.Join(misfit, c.noteSchema(context.WithoutCancel(ctx), u.Name, s))
	})
	return changed, s, err
}

// upgrade brings a user's database from a schema to that of this binary.
func (c *Cluster) upgrade(ctx context.Context, conn *pgx.Conn, u User, from schema) error {
	if c.lacks(from, userSet, "written_ids") {
		if err := c.acquaintSpelled(ctx, conn, u.Name, from); err != nil {
			return storeFault("make acquaintances of "+u.Name.String(), err)
		}
	}
	return c.migrateUp(ctx, u.Database, userSet)
}

// wouldMigrate tells what migrateUser would do.
func (c *Cluster) wouldMigrate(ctx context.Context, u User, repair bool) (changed bool, s schema, err error) {
	if s, err = c.look(ctx, u.Database); err != nil {
		return false, s, err
	}
	misfit := c.fits(u.Database, s)
	if s.version <= latest(c.migrations, userSet) && (!s.dirty || repair) {
		return misfit != nil, s, nil
	}
	return false, s, misfit
}

// look reads the schema of a user's database.
func (c *Cluster) look(ctx context.Context, database string) (schema, error) {
	conn, err := c.reachUser(ctx, database)
	if err != nil {
		return schema{}, err
	}
	defer shut(conn)
	return userSchema(ctx, conn)
}

// noteSchema keeps what the instance knows of a user's schema true.
func (c *Cluster) noteSchema(ctx context.Context, u vocab.Username, s schema) error {
	_, err := c.instance.Exec(ctx, `UPDATE users SET schema_version = $2 WHERE username = $1 AND schema_version <> $2`, u, s.whole())
	return storeFault("note schema of "+u.String(), err)
}

// UserSchema is the schema of one user's database.
type UserSchema struct {
	User     vocab.Username
	Database string
	Version  int   // 0 when it could not be read
	Dirty    bool  // the change to Version did not end
	Err      error // why this binary cannot use the database; nil when it can
}

// Status is what there is of databases.
type Status struct {
	Server           string // version of PostgreSQL
	InstanceDatabase string
	InstanceSchema   int
	Template         string
	Target           int // schema of users' databases that this binary uses
	Users            []UserSchema
}

// Status looks at every database, at n of them at once. What is wrong with one is said there.
func (c *Cluster) Status(ctx context.Context, n int) (Status, error) {
	st := Status{InstanceDatabase: c.name, Template: c.template, Target: latest(c.migrations, userSet)}
	var err error
	if st.Server, err = c.ServerVersion(ctx); err != nil {
		return st, err
	}
	s, err := schemaOf(ctx, c.instance)
	if err != nil {
		return st, storeFault("read the instance schema", err)
	}
	st.InstanceSchema = s.version
	users, err := c.withDatabase(ctx, nil)
	if err != nil {
		return st, err
	}
	var mu sync.Mutex
	each(users, n, func(u User) {
		s, err := c.look(ctx, u.Database)
		if err == nil {
			err = c.fits(u.Database, s)
		}
		mu.Lock()
		defer mu.Unlock()
		st.Users = append(st.Users, UserSchema{u.Name, u.Database, s.version, s.dirty, err})
	})
	slices.SortFunc(st.Users, func(a, b UserSchema) int { return cmp.Compare(a.User.String(), b.User.String()) })
	return st, storeFault("look at databases", ctx.Err())
}
