package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Acquainting says for which users MakeAcquaintances makes the acquaintances again, and how. An
// acquaintance is a row that says that a remote actor may concern a user (see
// instance.Acquaintances).
type Acquainting struct {
	Users    []vocab.Username    // empty: all users that have a database
	DryRun   bool                // count the rows, change none
	Progress func(done, all int) // called after each user; may be nil
}

// AcquaintReport is the result of MakeAcquaintances.
type AcquaintReport struct {
	Users       []AcquaintedUser `json:"users"` // sorted by the users' names
	Added       int              `json:"added"`
	Superfluous int              `json:"superfluous"`
	Removed     bool             `json:"removed"` // whether superfluous rows were removed; if DryRun is true, whether they would be
	Failed      int              `json:"failed"`
	Millis      int64            `json:"elapsed_ms"`
	DryRun      bool             `json:"dry_run"`
}

// AcquaintedUser is the result of MakeAcquaintances for one user.
type AcquaintedUser struct {
	User  vocab.Username `json:"user"`
	Known int            `json:"known"` // actors that the user's database names
	Added int            `json:"added"` // rows that were missing, or lacked the mark that the user may follow the actor
	// Superfluous counts rows of actors that the user's database does not name, and rows that
	// wrongly say that the user may follow the actor.
	Superfluous int    `json:"superfluous"`
	Error       string `json:"error,omitempty"`
	Hint        string `json:"hint,omitempty"`
}

// MakeAcquaintances makes the acquaintances again from the users' databases. The function idOf
// returns the id of a user's actor. MakeAcquaintances adds the missing rows of each user. It
// removes superfluous rows only if no process serves the instance and the journal is empty. The
// reason is that a serving process commits an acquaintance before the data that needs it, and
// relies on the acquaintances that it has committed. If the work for one user fails,
// MakeAcquaintances goes on with the other users. The fault is Busy if another process makes
// acquaintances, and NoUser if a.Users names a user that does not exist or is deleted.
func (c *Cluster) MakeAcquaintances(ctx context.Context, a Acquainting, idOf func(vocab.Username) vocab.ID) (r AcquaintReport, err error) {
	began := time.Now()
	defer func() { r.Millis = time.Since(began).Milliseconds() }()
	r = AcquaintReport{Users: []AcquaintedUser{}, DryRun: a.DryRun}
	release, err := c.Instance.Locks.Acquaint(ctx)
	if err != nil {
		return r, err
	}
	defer release()
	users, err := c.Instance.Users.ListWithDatabase(ctx, a.Users)
	if err != nil {
		return r, err
	}
	letServe := func() {}
	if a.DryRun {
		r.Removed, err = c.Instance.Locks.IsQuiet(ctx)
	} else {
		letServe, r.Removed, err = c.Instance.Locks.Quiet(ctx)
	}
	if err != nil {
		return r, err
	}
	defer letServe()
	for n, u := range users {
		made, err := c.makeAcquaintances(ctx, u.Name, idOf(u.Name), r.Removed, a.DryRun)
		r.addUser(made, err)
		if err := ctx.Err(); err != nil {
			return r, postgres.Fault("make acquaintances", err)
		}
		if a.Progress != nil {
			a.Progress(n+1, len(users))
		}
	}
	return r, nil
}

// addUser adds the counts of one user to the report, and the error if there is one.
func (r *AcquaintReport) addUser(u AcquaintedUser, err error) {
	if err != nil {
		r.Failed++
		u.Error, u.Hint = err.Error(), fault.Hint(err)
	}
	r.Users = append(r.Users, u)
	r.Added += u.Added
	r.Superfluous += u.Superfluous
}

func (c *Cluster) makeAcquaintances(ctx context.Context, u vocab.Username, me vocab.ID, removes, dryRun bool) (AcquaintedUser, error) {
	out := AcquaintedUser{User: u}
	var known []schema.KnownActor
	err := c.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		known, err = tx.Actors.ListKnown(ctx, c.schema.Latest(schema.User), me)
		return err
	})
	if err != nil {
		return out, err
	}
	did, err := c.Instance.Acquaintances.Replace(ctx, u, known, removes, dryRun)
	out.Known, out.Added, out.Superfluous = len(known), did.Added, did.Superfluous
	return out, err
}
