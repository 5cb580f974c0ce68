package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Migration selects the users whose databases are migrated to the schema of this binary, and says
// how.
type Migration struct {
	Users       []vocab.Username    // empty: all users that have a database
	DryRun      bool                // report the work, change nothing
	Repair      bool                // repeat a change that was interrupted
	FailFast    bool                // begin no other database after one has failed
	Concurrency int                 // how many databases are migrated in parallel; 1 when 0
	Progress    func(done, all int) // called after each database, by one goroutine at a time; may be nil
}

// MigrationReport is the result of a migration. If DryRun is true, it is the result that the
// migration would have.
type MigrationReport struct {
	Target    int                `json:"target"` // the schema of this binary
	Databases int                `json:"databases"`
	Migrated  int                `json:"migrated"`
	Unchanged int                `json:"unchanged"` // had the target schema already
	Failed    int                `json:"failed"`
	Millis    int64              `json:"elapsed_ms"`
	Failures  []MigrationFailure `json:"failures"` // sorted by the users' names
	DryRun    bool               `json:"dry_run"`
}

// MigrationFailure is a user's database that could not be migrated.
type MigrationFailure struct {
	User     vocab.Username `json:"user"`
	Version  int            `json:"version"` // if Dirty is true, the version of the interrupted change; 0 if the version could not be read
	Dirty    bool           `json:"dirty"`
	SQLState string         `json:"sqlstate"` // of the server's error; empty for any other error
	Error    string         `json:"error"`
	Hint     string         `json:"-"`
}

// MigrateUsers migrates users' databases to the schema of this binary. If the migration of one
// database fails, the others are still migrated unless m.FailFast is true. The fault is Busy when
// another process migrates users of this instance, NoUser when a named user does not exist or is
// deleted, and Config when, according to the instance database, a user's database has a newer
// schema than that of this binary.
func (c *Cluster) MigrateUsers(ctx context.Context, m Migration) (MigrationReport, error) {
	began := time.Now()
	report, err := c.migrateUsers(ctx, m)
	report.Millis = time.Since(began).Milliseconds()
	return report, err
}

func (c *Cluster) migrateUsers(ctx context.Context, m Migration) (MigrationReport, error) {
	report := MigrationReport{Target: c.schema.Latest(schema.User), Failures: []MigrationFailure{}, DryRun: m.DryRun}
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
		stop := ctx.Err() != nil || m.FailFast && report.Failed > 0
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

func (r *MigrationReport) done() int { return r.Migrated + r.Unchanged + r.Failed }

func (r *MigrationReport) add(u vocab.Username, changed bool, v schema.Version, err error) {
	switch {
	case err != nil:
		f := MigrationFailure{User: u, Version: v.Number, Dirty: v.Dirty, Error: err.Error(), Hint: fault.Hint(err)}
		if f.Hint == "" && f.Dirty {
			f.Hint = "lightweb db migrate " + u.String() + " --repair"
		}
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
			f.SQLState = pg.Code
		}
		r.Failures = append(r.Failures, f)
		r.Failed++
	case changed:
		r.Migrated++
	default:
		r.Unchanged++
	}
}

// each runs work for every user, for at most n users in parallel.
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

// migrateUser migrates one database, and returns the version that the database has afterwards. If
// m.DryRun is true, it changes nothing, and returns the present version. The result "changed" is
// true when there was something to migrate.
func (c *Cluster) migrateUser(ctx context.Context, u instance.User, m Migration) (changed bool, v schema.Version, err error) {
	if m.DryRun {
		return c.schema.WouldMigrateUser(ctx, u.Database, m.Repair)
	}
	defer c.pool.Retry(u.Database)
	changed, v, err = c.schema.MigrateUser(ctx, u.Database, m.Repair, func(ctx context.Context, conn *pgx.Conn, from schema.Version) error {
		return postgres.Fault("make acquaintances of "+u.Name.String(), c.acquaintSpelled(ctx, conn, u.Name, from))
	})
	if v != (schema.Version{}) {
		last, cancel := postgres.Outlive(ctx, 5*time.Second)
		defer cancel()
		err = errors.Join(err, c.Instance.Users.SetSchema(last, u.Name, v))
	}
	return changed, v, err
}

// acquaintSpelled stores acquaintances for the actors whose ids in the user's database are not
// canonical. It stores these acquaintances under the canonical ids. It runs before the database
// is changed to canonical ids.
func (c *Cluster) acquaintSpelled(ctx context.Context, conn *pgx.Conn, u vocab.Username, from schema.Version) error {
	known, err := c.schema.SpelledActors(ctx, conn, from)
	for follows, actors := range known {
		err = errors.Join(err, c.Instance.Acquaintances.AddActors(ctx, u, actors, follows))
	}
	return err
}

// UserSchema is the schema of one user's database.
type UserSchema struct {
	User     vocab.Username `json:"user"`
	Database string         `json:"database"`
	Version  int            `json:"version"` // 0 when it could not be read
	Dirty    bool           `json:"dirty"`   // the change to Version was interrupted
	Usable   bool           `json:"usable"`  // whether this binary can use the database
	Error    string         `json:"error,omitempty"`
	Hint     string         `json:"hint,omitempty"`
}

// InstanceSchema is the schema of the instance database.
type InstanceSchema struct {
	Database string `json:"database"`
	Version  int    `json:"version"`
}

// Status describes the databases of an instance and their schemas.
type Status struct {
	Server   string         `json:"server"` // version of PostgreSQL
	Instance InstanceSchema `json:"instance"`
	Template string         `json:"template"`
	Target   int            `json:"target"` // the schema version of users' databases that this binary uses
	Users    []UserSchema   `json:"users"`
}

// Status reads the schema of every database. It reads n users' databases in parallel. For each of
// them it reports whether this binary can use the database, and if not, why.
func (c *Cluster) Status(ctx context.Context, n int) (Status, error) {
	st := Status{Instance: InstanceSchema{Database: c.schema.Name()}, Template: c.schema.Template(), Target: c.schema.Latest(schema.User), Users: []UserSchema{}}
	var err error
	if st.Server, err = c.Instance.ServerVersion(ctx); err != nil {
		return st, err
	}
	v, err := c.Instance.SchemaVersion(ctx)
	if err != nil {
		return st, err
	}
	st.Instance.Version = v.Number
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
		s := UserSchema{User: u.Name, Database: u.Database, Version: v.Number, Dirty: v.Dirty, Usable: err == nil}
		if err != nil {
			s.Error, s.Hint = err.Error(), fault.Hint(err)
		}
		mu.Lock()
		defer mu.Unlock()
		st.Users = append(st.Users, s)
	})
	slices.SortFunc(st.Users, func(a, b UserSchema) int { return cmp.Compare(a.User.String(), b.User.String()) })
	return st, postgres.Fault("look at databases", ctx.Err())
}
