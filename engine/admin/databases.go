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

// Migration says which users' databases are brought to the schema of this binary, and how.
type Migration = db.Migration

// MigrationReport says what became of a migration, or with DryRun what would.
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

// MigrationFailure is a user's database that could not be brought to the schema.
type MigrationFailure struct {
	User     vocab.Username `json:"user"`
	Version  int            `json:"version"` // with dirty: of the change that did not end; 0 when it could not be read
	Dirty    bool           `json:"dirty"`
	SQLState string         `json:"sqlstate"` // empty unless the server refused
	Error    string         `json:"error"`
	Hint     string         `json:"-"`
}

// Migrate brings users' databases to the schema of this binary; one that fails does not keep the
// others from it. The fault is Busy when another process does the same, NoUser when somebody named
// is no user, Config when a database is known to have a newer schema.
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

// DatabaseStatus is what there is of databases.
type DatabaseStatus struct {
	Server   string `json:"server"` // version of PostgreSQL
	Instance struct {
		Database string `json:"database"`
		Version  int    `json:"version"`
	} `json:"instance"`
	Template string           `json:"template"`
	Target   int              `json:"target"` // schema of users' databases that this binary uses
	Users    []DatabaseOfUser `json:"users"`
}

// DatabaseOfUser is a user's database and whether it can be used.
type DatabaseOfUser struct {
	User     vocab.Username `json:"user"`
	Database string         `json:"database"`
	Version  int            `json:"version"` // 0 when it could not be read
	Dirty    bool           `json:"dirty"`   // the change to that version did not end
	Usable   bool           `json:"usable"`
	Error    string         `json:"error,omitempty"`
	Hint     string         `json:"hint,omitempty"`
}

// Status looks at every user's database; what is wrong with one is said there.
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
