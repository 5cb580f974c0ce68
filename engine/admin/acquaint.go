package admin

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// AcquaintOptions says for which users to rebuild acquaintances.
type AcquaintOptions struct {
	Users    []vocab.Username    // none: all
	DryRun   bool                // only count
	Progress func(done, all int) // called after each user; may be nil
}

// AcquaintReport is the result of Acquaint.
type AcquaintReport struct {
	Users       []AcquaintedUser `json:"users"` // by name
	Added       int              `json:"added"`
	Superfluous int              `json:"superfluous"`
	Removed     bool             `json:"removed"` // the superfluous ones; false while a server runs or the journal is not empty
	Failed      int              `json:"failed"`
	Millis      int64            `json:"elapsed_ms"`
	DryRun      bool             `json:"dry_run"`
}

// AcquaintedUser counts the acquaintances of one user.
type AcquaintedUser struct {
	User        vocab.Username `json:"user"`
	Known       int            `json:"known"`       // actors with rows in the user's database
	Added       int            `json:"added"`       // missing, or without the mark that the user may follow the actor
	Superfluous int            `json:"superfluous"` // without a reason in the user's database, or with a wrong mark
	Error       string         `json:"error,omitempty"`
	Hint        string         `json:"hint,omitempty"`
}

// Acquaint rebuilds the acquaintances from users' databases, as db.Cluster.MakeAcquaintances does.
// A user that fails does not stop the others. The fault is Busy when another process does the
// same, NoUser when a named user does not exist.
func (dbs Databases) Acquaint(ctx context.Context, a AcquaintOptions) (AcquaintReport, error) {
	began := time.Now()
	made, err := dbs.in.DB.MakeAcquaintances(ctx, db.Acquainting{Users: a.Users, DryRun: a.DryRun, ID: dbs.in.Local.ID, Progress: a.Progress})
	r := AcquaintReport{Users: make([]AcquaintedUser, len(made.Users)), Removed: made.Removes, Millis: time.Since(began).Milliseconds(), DryRun: a.DryRun}
	for i, u := range made.Users {
		r.Users[i] = AcquaintedUser{User: u.User, Known: u.Known, Added: u.Added, Superfluous: u.Superfluous}
		r.Added += u.Added
		r.Superfluous += u.Superfluous
		if u.Err != nil {
			r.Failed++
			r.Users[i].Error, r.Users[i].Hint = u.Err.Error(), fault.Hint(u.Err)
		}
	}
	return r, err
}
