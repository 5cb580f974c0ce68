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

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
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

// MigrateUsers brings users' databases to the schema of this binary; one that fails does not keep
// the others from it. The fault is Busy when another process does the same on this instance,
// NoUser when somebody named is no user, Config when a database is known to have a newer schema
// than this binary.
func (c *Cluster) MigrateUsers(ctx context.Context, m Migration) (MigrationReport, error) {
	report := MigrationReport{Target: c.schema.Latest(schema.User)}
	users, err := c.Instance.Users.ListWithDatabase(ctx, m.Users)
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
		release, err := c.Instance.Locks.Migrate(ctx)
		if err != nil {
			return report, err
		}
		defer release()
	}
	report.Databases = len(users)
	var mu sync.Mutex
	each(users, m.Concurrency, func(u instance.User) {
		mu.Lock()
		stop := ctx.Err() != nil || m.FailFast && len(report.Failures) > 0
		mu.Unlock()
		if stop {
			return
		}
		changed, v, err := c.migrateUser(ctx, u, m)
		mu.Lock()
		defer mu.Unlock()
		report.add(u.Name, changed, v, err)
		if m.Progress != nil {
			m.Progress(report.done(), len(users))
		}
	})
	slices.SortFunc(report.Failures, func(a, b MigrationFailure) int { return cmp.Compare(a.User.String(), b.User.String()) })
	return report, postgres.Fault(fmt.Sprintf("migrate: %d of %d databases were done", report.done(), len(users)), ctx.Err())
}

func (r *MigrationReport) done() int { return r.Migrated + r.Unchanged + len(r.Failures) }

func (r *MigrationReport) add(u vocab.Username, changed bool, v schema.Version, err error) {
	switch {
	case err != nil:
		f := MigrationFailure{User: u, Version: v.Number, Dirty: v.Dirty, Err: err}
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
func each(users []instance.User, n int, work func(instance.User)) {
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

// migrateUser brings one database to the schema, and returns the one it then has.
func (c *Cluster) migrateUser(ctx context.Context, u instance.User, m Migration) (changed bool, v schema.Version, err error) {
	if m.DryRun {
		return c.schema.WouldMigrateUser(ctx, u.Database, m.Repair)
	}
	defer c.pool.Retry(u.Database)
	changed, v, err = c.schema.MigrateUser(ctx, u.Database, m.Repair, func(ctx context.Context, conn *pgx.Conn, from schema.Version) error {
		return postgres.Fault("make acquaintances of "+u.Name.String(), c.acquaintSpelled(ctx, conn, u.Name, from))
	})
	if v != (schema.Version{}) {
		err = errors.Join(err, c.Instance.Users.SetSchema(context.WithoutCancel(ctx), u.Name, v))
	}
	return changed, v, err
}

// acquaintSpelled commits, before a user's database is brought to canonical ids, that the actors
// it holds under other spellings may concern the user.
func (c *Cluster) acquaintSpelled(ctx context.Context, conn *pgx.Conn, u vocab.Username, from schema.Version) error {
	known, err := c.schema.SpelledActors(ctx, conn, from)
	for follows, actors := range known {
		err = errors.Join(err, c.Instance.Acquaintances.AddActors(ctx, u, actors, follows))
	}
	return err
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

// Status looks at every database, at n of them at once. It says of each what is wrong with it.
func (c *Cluster) Status(ctx context.Context, n int) (Status, error) {
	st := Status{InstanceDatabase: c.schema.Name(), Template: c.schema.Template(), Target: c.schema.Latest(schema.User)}
	var err error
	if st.Server, err = c.Instance.ServerVersion(ctx); err != nil {
		return st, err
	}
	v, err := c.Instance.SchemaVersion(ctx)
	if err != nil {
		return st, err
	}
	st.InstanceSchema = v.Number
	users, err := c.Instance.Users.ListWithDatabase(ctx, nil)
	if err != nil {
		return st, err
	}
	var mu sync.Mutex
	each(users, n, func(u instance.User) {
		v, err := c.schema.Look(ctx, u.Database)
		if err == nil {
			err = c.schema.Check(u.Database, v)
		}
		mu.Lock()
		defer mu.Unlock()
		st.Users = append(st.Users, UserSchema{u.Name, u.Database, v.Number, v.Dirty, err})
	})
	slices.SortFunc(st.Users, func(a, b UserSchema) int { return cmp.Compare(a.User.String(), b.User.String()) })
	return st, postgres.Fault("look at databases", ctx.Err())
}
