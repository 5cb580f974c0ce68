package admin

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// AcquaintOptions says for which users acquaintances are made again.
type AcquaintOptions struct {
	Users    []vocab.Username    // nobody named: everybody
	DryRun   bool                // only count
	Progress func(done, all int) // told after each user; may be nil
}

// AcquaintReport says what became of it.
type AcquaintReport struct {
	Users       []AcquaintedUser `json:"users"` // by name
	Added       int              `json:"added"`
	Superfluous int              `json:"superfluous"`
	Removed     bool             `json:"removed"` // the superfluous ones; false while a server runs or its journal holds anything
	Failed      int              `json:"failed"`
	Millis      int64            `json:"elapsed_ms"`
	DryRun      bool             `json:"dry_run"`
}

// AcquaintedUser counts the acquaintances of one user.
type AcquaintedUser struct {
	User        vocab.Username `json:"user"`
	Known       int            `json:"known"`       // actors that have anything in the user's database
	Added       int            `json:"added"`       // that were missing, or did not say that the user may follow the actor
	Superfluous int            `json:"superfluous"` // that nothing in the user's database asks for, or that say too much
	Error       string         `json:"error,omitempty"`
	Hint        string         `json:"hint,omitempty"`
}

// Acquaint makes the acquaintances again from the users' databases, as
// db.Cluster.MakeAcquaintances does; one user that fails does not keep the others from it. The
// fault is Busy when another process does the same, NoUser when somebody named is no user.
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
