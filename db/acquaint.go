package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
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

// MakeAcquaintances makes the acquaintances again from the users' databases. What is missing is added first. What is
// superfluous is removed only while nothing serves the instance and its journal is empty: a server commits rows before
// what asks for them, and remembers which it has committed. One user's failure does not keep the others from it. The
// fault is Busy when another process does the same, NoUser when somebody named is no user.
func (c *Cluster) MakeAcquaintances(ctx context.Context, a Acquainting) (r AcquaintReport, err error) {
	release, err := c.lockJob(ctx, acquaintJob)
	if err != nil {
		return r, err
	}
	defer release()
	users, err := c.withDatabase(ctx, a.Users)
	if err != nil {
		return r, err
	}
	letServe, removes, err := c.quiet(ctx)
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

// quiet tells whether nothing serves the instance and nothing waits to be applied, and keeps it so until release.
func (c *Cluster) quiet(ctx context.Context) (release func(), is bool, err error) {
	release, _, err = c.LockServe(ctx, acquaintJob.name)
	if fault.KindOf(err) == fault.Conflict {
		return func() {}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if err := c.instance.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM intake)`).Scan(&is); err != nil {
		release()
		return nil, false, postgres.Fault("look into the journal", err)
	}
	return release, is, nil
}

func (c *Cluster) makeAcquaintances(ctx context.Context, a Acquainting, u vocab.Username, removes bool) AcquaintedUser {
	out := AcquaintedUser{User: u}
	type row struct {
		Actor   string
		Follows bool
	}
	var known []row
	out.Err = c.Read(ctx, u, func(ctx context.Context, tx *Tx) (err error) {
		known, err = collect[row](ctx, tx, "list actors", schema.KnownActors(c.schema.Latest(schema.User)), a.ID(u))
		return err
	})
	if out.Err != nil {
		return out
	}
	actors, follows := make([]string, len(known)), make([]bool, len(known))
	for i, k := range known {
		actors[i], follows[i] = k.Actor, k.Follows
	}
	out.Known = len(known)
	err := pgx.BeginFunc(ctx, c.instance, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `INSERT INTO acquaintances AS a (actor_uri, username, follows)
			SELECT actor, $1, follows FROM unnest($2::text[], $3::boolean[]) AS k (actor, follows) ORDER BY actor
			ON CONFLICT (actor_uri, username) DO UPDATE SET follows = true WHERE excluded.follows AND NOT a.follows`, u, actors, follows)
		if err != nil {
			return err
		}
		out.Added = int(tag.RowsAffected())
		if out.Superfluous, err = superfluous(ctx, tx, u, actors, follows, removes); err == nil && a.DryRun {
			err = errTakenBack
		}
		return err
	})
	if !errors.Is(err, errTakenBack) {
		out.Err = postgres.Fault("make acquaintances of "+u.String(), err)
	}
	return out
}

// superfluous removes what acquaintances say beyond what is known, or only counts it.
func superfluous(ctx context.Context, tx pgx.Tx, u vocab.Username, actors []string, follows []bool, remove bool) (n int, err error) {
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		n = 0
		for _, q := range []string{
			`DELETE FROM acquaintances a WHERE username = $1 AND NOT EXISTS (SELECT FROM unnest($2::text[], $3::boolean[]) AS k (actor, follows) WHERE actor = actor_uri)`,
			`UPDATE acquaintances a SET follows = false FROM unnest($2::text[], $3::boolean[]) AS k (actor, follows)
				WHERE username = $1 AND actor = actor_uri AND a.follows AND NOT k.follows`,
		} {
			tag, err := tx.Exec(ctx, q, u, actors, follows)
			if err != nil {
				return err
			}
			n += int(tag.RowsAffected())
		}
		if !remove {
			return errTakenBack
		}
		return nil
	})
	if errors.Is(err, errTakenBack) {
		err = nil
	}
	return n, err
}
