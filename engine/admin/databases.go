package admin

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Databases are the databases of the instance and its users.
type Databases struct{ in *instance.Instance }

// Migration says which users' databases to migrate, and how.
type Migration = db.Migration

// MigrationReport is the result of Migrate, or with DryRun its preview.
type MigrationReport struct {
	Target    int                `json:"target"` // the schema of this binary
	Databases int                `json:"databases"`
	Migrated  int                `json:"migrated"`
	Unchanged int                `json:"unchanged"`
	Failed    int                `json:"failed"`
	Millis    int64              `json:"elapsed_ms"`
	Failures  []MigrationFailure `json:"failures"` // by name
	DryRun    bool               `json:"dry_run"`
}

// MigrationFailure is a user's database that could not be migrated.
type MigrationFailure struct {
	User     vocab.Username `json:"user"`
	Version  int            `json:"version"` // with dirty: of the unfinished change; 0 when it could not be read
	Dirty    bool           `json:"dirty"`
	SQLState string         `json:"sqlstate"` // empty unless the server refused
	Error    string         `json:"error"`
	Hint     string         `json:"-"`
}

// Migrate brings users' databases to the schema of this binary. A database that fails does not
// stop the others. The fault is Busy when another process migrates, NoUser when a named user does
// not exist, Config when a database has a newer schema.
func (dbs Databases) Migrate(ctx context.Context, m Migration) (MigrationReport, error) {
	began := time.Now()
	r, err := dbs.in.DB.MigrateUsers(ctx, m)
	out := MigrationReport{Target: r.Target, Databases: r.Databases, Migrated: r.Migrated, Unchanged: r.Unchanged, Failed: len(r.Failures),
		Millis: time.Since(began).Milliseconds(), Failures: make([]MigrationFailure, len(r.Failures)), DryRun: m.DryRun}
	for i, f := range r.Failures {
		hint := fault.Hint(f.Err)
		if hint == "" && f.Dirty {
			hint = "lightweb db migrate " + f.User.String() + " --repair"
		}
		out.Failures[i] = MigrationFailure{f.User, f.Version, f.Dirty, f.SQLState, f.Err.Error(), hint}
	}
	return out, err
}

// DatabaseStatus is the state of all databases.
type DatabaseStatus struct {
	Server   string `json:"server"` // version of PostgreSQL
	Instance struct {
		Database string `json:"database"`
		Version  int    `json:"version"`
	} `json:"instance"`
	Template string           `json:"template"`
	Target   int              `json:"target"` // schema of users' databases in this binary
	Users    []DatabaseOfUser `json:"users"`
}

// DatabaseOfUser is the state of a user's database.
type DatabaseOfUser struct {
	User     vocab.Username `json:"user"`
	Database string         `json:"database"`
	Version  int            `json:"version"` // 0 when it could not be read
	Dirty    bool           `json:"dirty"`   // the change to that version is unfinished
	Usable   bool           `json:"usable"`
	Error    string         `json:"error,omitempty"`
	Hint     string         `json:"hint,omitempty"`
}

// Status opens every user's database and reports its state.
func (dbs Databases) Status(ctx context.Context) (DatabaseStatus, error) {
	const atOnce = 4
	st, err := dbs.in.DB.Status(ctx, atOnce)
	if err != nil {
		return DatabaseStatus{}, err
	}
	out := DatabaseStatus{Server: st.Server, Template: st.Template, Target: st.Target, Users: make([]DatabaseOfUser, len(st.Users))}
	out.Instance.Database, out.Instance.Version = st.InstanceDatabase, st.InstanceSchema
	for i, u := range st.Users {
		out.Users[i] = DatabaseOfUser{User: u.User, Database: u.Database, Version: u.Version, Dirty: u.Dirty, Usable: u.Err == nil}
		if u.Err != nil {
			out.Users[i].Error, out.Users[i].Hint = u.Err.Error(), fault.Hint(u.Err)
		}
	}
	return out, nil
}
