package db

import (
	"context"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Acquainting says for which users acquaintances are made again, and how.
type Acquainting struct {
	Users    []vocab.Username              // nobody named: everybody who is not deleted
	DryRun   bool                          // only count
	ID       func(vocab.Username) vocab.ID // of the user's actor
	Progress func(done, all int)           // told after each user; may be nil
}

// AcquaintReport says what became of it.
type AcquaintReport struct {
	Users   []AcquaintedUser // by name
	Removes bool             // whether superfluous rows were removed, or with DryRun would be
}

// AcquaintedUser counts the rows of one user.
type AcquaintedUser struct {
	User        vocab.Username
	Known       int // actors that have anything in the user's database
	Added       int // rows that were missing, or did not say that the user may follow the actor
	Superfluous int // rows that nothing in the user's database asks for, or that say too much
	Err         error
}

// MakeAcquaintances makes the acquaintances again from the users' databases. Missing rows
// are added first. Superfluous ones are removed only while nothing serves the instance and its
// journal is empty: a server commits rows before what asks for them, and remembers which it has
// committed. One user's failure does not keep the others from it. The fault is Busy when another
// process does the same, NoUser when somebody named is no user.
func (c *Cluster) MakeAcquaintances(ctx context.Context, a Acquainting) (r AcquaintReport, err error) {
	release, err := c.Instance.Locks.Acquaint(ctx)
	if err != nil {
		return r, err
	}
	defer release()
	users, err := c.Instance.Users.ListWithDatabase(ctx, a.Users)
	if err != nil {
		return r, err
	}
	letServe, removes, err := c.Instance.Locks.Quiet(ctx)
	if err != nil {
		return r, err
	}
	defer letServe()
	r.Removes = removes
	for n, u := range users {
		r.Users = append(r.Users, c.makeAcquaintances(ctx, a, u.Name, removes))
		if err := ctx.Err(); err != nil {
			return r, postgres.Fault("make acquaintances", err)
		}
		if a.Progress != nil {
			a.Progress(n+1, len(users))
		}
	}
	return r, nil
}

func (c *Cluster) makeAcquaintances(ctx context.Context, a Acquainting, u vocab.Username, removes bool) AcquaintedUser {
	out := AcquaintedUser{User: u}
	var known []instance.KnownActor
	out.Err = c.Read(ctx, u, func(ctx context.Context, tx *Tx) (err error) {
		known, err = collect[instance.KnownActor](ctx, tx, "list actors", schema.KnownActors(c.schema.Latest(schema.User)), a.ID(u))
		return err
	})
	if out.Err != nil {
		return out
	}
	did, err := c.Instance.Acquaintances.Replace(ctx, u, known, removes, a.DryRun)
	out.Known, out.Added, out.Superfluous, out.Err = len(known), did.Added, did.Superfluous, err
	return out
}
