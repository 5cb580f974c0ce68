package instance

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// AcquaintanceBelieved limits how long a caller of Add may rely on the rows that Add has stored.
// During that time it need not call Add again for the same actor and users.
const AcquaintanceBelieved = 6 * time.Hour

// Acquaintances records which remote actors may concern which users. There may be superfluous
// rows, but no row may be missing.
type Acquaintances struct {
	on     conns
	active *active
}

// Add stores that the actor possibly concerns these users, and commits it before it returns. If
// follows is true, it also stores that they possibly follow the actor. Add must be called before
// data of the actor enters a user's database, and before a Follow is sent. Add clears the mark of
// an idle row, so that RemoveIdle does not remove the row.
func (a Acquaintances) Add(ctx context.Context, actor vocab.ID, users []vocab.Username, follows bool) error {
	_, err := a.on.Exec(ctx, `INSERT INTO acquaintances AS a (actor_uri, username, follows)
		SELECT DISTINCT $1, u, $3::boolean FROM unnest($2::text[]) u ORDER BY u
		ON CONFLICT (actor_uri, username) DO UPDATE SET follows = a.follows OR excluded.follows, idle_at = NULL
			WHERE excluded.follows AND NOT a.follows OR a.idle_at IS NOT NULL`,
		actor, names(users), follows)
	return postgres.Fault("store acquaintance", err)
}

// AddActors commits that these actors may concern a user. If follows is true, it also commits
// that the user may follow them.
func (a Acquaintances) AddActors(ctx context.Context, u vocab.Username, actors []vocab.ID, follows bool) error {
	_, err := a.on.Exec(ctx, `INSERT INTO acquaintances AS a (actor_uri, username, follows) SELECT DISTINCT k, $1, $3::boolean FROM unnest($2::text[]) AS k ORDER BY k
		ON CONFLICT (actor_uri, username) DO UPDATE SET follows = true WHERE excluded.follows AND NOT a.follows`, u, texts(actors), follows)
	return postgres.Fault("store acquaintances", err)
}

// Users returns the active users that the actor may concern. If follows is true, it returns only
// the users that may follow the actor.
func (a Acquaintances) Users(ctx context.Context, actor vocab.ID, follows bool) ([]vocab.Username, error) {
	now := time.Now()
	users, err := postgres.CollectColumn[vocab.Username](ctx, a.on, "read acquaintances", `SELECT username FROM acquaintances JOIN users USING (username)
		WHERE actor_uri = $1 AND (follows OR NOT $2) AND state = 'active' ORDER BY username`, actor, follows)
	if err == nil {
		a.active.add(users, now.Add(believed))
	}
	return users, err
}

// MayFollow reports whether the user, who may be in any state, may follow the actor.
func (a Acquaintances) MayFollow(ctx context.Context, u vocab.Username, actor vocab.ID) (may bool, err error) {
	err = a.on.QueryRow(ctx, `SELECT EXISTS (SELECT FROM acquaintances WHERE actor_uri = $1 AND username = $2 AND follows)`, actor, u).Scan(&may)
	return may, postgres.Fault("read acquaintance", err)
}

// UsersOfServer returns the users that actors of one server may concern. The server is the one
// that the parameter id belongs to. The users may be in any state. No other user's database holds
// anything from that server.
func (a Acquaintances) UsersOfServer(ctx context.Context, id vocab.ID) ([]vocab.Username, error) {
	return postgres.CollectColumn[vocab.Username](ctx, a.on, "read acquaintances", `SELECT DISTINCT username FROM acquaintances
		WHERE actor_uri >= $1 || '/' AND actor_uri < $1 || '0' ORDER BY username`, id.Origin())
}

// IsFollowed reports whether an active user may follow any actor whose id has this origin. Ids
// sort byte by byte, so the ids of an origin are neighbours in the index.
func (a Acquaintances) IsFollowed(ctx context.Context, origin string) (followed bool, err error) {
	err = a.on.QueryRow(ctx, `SELECT EXISTS (SELECT FROM acquaintances JOIN users USING (username)
		WHERE actor_uri >= $1 || '/' AND actor_uri < $1 || '0' AND follows AND state = 'active')`, origin).Scan(&followed)
	return followed, postgres.Fault("read acquaintances", err)
}

// EachHost calls the function see once for every pair of a host and an active user who has an
// acquaintance on that host. The pairs are in no particular order. The last argument of see says
// whether the user may follow an actor on the host. Hosts are written as in the actors' ids, with
// ports.
func (a Acquaintances) EachHost(ctx context.Context, see func(host string, u vocab.Username, follows bool)) error {
	rows, err := a.on.Query(ctx, `SELECT split_part(actor_uri, '/', 3), username, bool_or(follows)
		FROM acquaintances JOIN users USING (username) WHERE state = 'active' GROUP BY 1, 2`)
	if err != nil {
		return postgres.Fault("read acquaintances", err)
	}
	var host string
	var u vocab.Username
	var follows bool
	_, err = pgx.ForEachRow(rows, []any{&host, &u, &follows}, func() error {
		see(host, u, follows)
		return nil
	})
	return postgres.Fault("read acquaintances", err)
}

// Replacing counts the rows of a user that Replace changed, or would change.
type Replacing struct {
	Added int // rows that were missing, or lacked the mark that the user may follow the actor
	// Superfluous counts rows of actors that are not in the parameter known, and rows that
	// wrongly say that the user may follow the actor.
	Superfluous int
}

// errTakenBack rolls back a transaction that changes rows only to count them.
var errTakenBack = errors.New("it was a dry run")

// Replace adds the user's missing rows of the known actors, and removes superfluous rows. If
// remove is false, it only counts the superfluous rows. If dryRun is true, it changes nothing.
func (a Acquaintances) Replace(ctx context.Context, u vocab.Username, known []schema.KnownActor, remove, dryRun bool) (r Replacing, err error) {
	args := pgx.NamedArgs{"user": u, "actors": make([]string, len(known)), "follows": make([]bool, len(known))}
	for i, k := range known {
		args["actors"].([]string)[i], args["follows"].([]bool)[i] = k.Actor, k.Follows
	}
	err = a.on.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `INSERT INTO acquaintances AS a (actor_uri, username, follows)
			SELECT actor, @user, follows FROM unnest(@actors::text[], @follows::boolean[]) AS k (actor, follows) ORDER BY actor
			ON CONFLICT (actor_uri, username) DO UPDATE SET follows = true WHERE excluded.follows AND NOT a.follows`, args)
		if err != nil {
			return err
		}
		r.Added = int(tag.RowsAffected())
		if r.Superfluous, err = removeSuperfluous(ctx, tx, args, remove); err == nil && dryRun {
			err = errTakenBack
		}
		return err
	})
	if errors.Is(err, errTakenBack) {
		err = nil
	}
	return r, postgres.Fault("make acquaintances of "+u.String(), err)
}

// removeSuperfluous removes the user's rows of actors that args does not list, and clears the
// mark "follows" in the rows of listed actors that the user may not follow. If remove is false,
// it only counts the rows that it would change.
func removeSuperfluous(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs, remove bool) (n int, err error) {
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		n = 0
		for _, q := range []string{
			`DELETE FROM acquaintances a WHERE username = @user
				AND NOT EXISTS (SELECT FROM unnest(@actors::text[], @follows::boolean[]) AS k (actor, follows) WHERE actor = actor_uri)`,
			`UPDATE acquaintances a SET follows = false FROM unnest(@actors::text[], @follows::boolean[]) AS k (actor, follows)
				WHERE username = @user AND actor = actor_uri AND a.follows AND NOT k.follows`,
		} {
			tag, err := tx.Exec(ctx, q, args)
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

// List returns up to n actors of a user's acquaintances, in the order of their ids. It returns
// only actors whose ids are greater than the parameter after. It returns none while the journal
// has an activity for the user.
func (a Acquaintances) List(ctx context.Context, u vocab.Username, after vocab.ID, n int) ([]vocab.ID, error) {
	return postgres.CollectColumn[vocab.ID](ctx, a.on, "list acquaintances", `SELECT actor_uri FROM acquaintances WHERE username = $1 AND actor_uri > $2
			AND NOT EXISTS (SELECT FROM intake_waiting WHERE username = $1) AND NOT EXISTS (SELECT FROM intake WHERE $1 = ANY(recipients))
		ORDER BY actor_uri LIMIT $3`, u, after, n)
}

// CountIdle counts the user's rows of these actors that were marked as idle before a time.
func (a Acquaintances) CountIdle(ctx context.Context, u vocab.Username, actors []string, before time.Time) (n int, err error) {
	err = a.on.QueryRow(ctx, `SELECT count(*) FROM acquaintances WHERE username = $1 AND actor_uri = ANY($2) AND idle_at < $3`, u, actors, before).Scan(&n)
	return n, postgres.Fault("count idle acquaintances", err)
}

// RemoveIdle removes the user's rows of idle actors that were marked before a time. It marks the
// rows of idle actors that have no mark yet, and clears the marks of the held actors. It returns
// how many rows it removed.
func (a Acquaintances) RemoveIdle(ctx context.Context, u vocab.Username, idle, held []string, before, now time.Time) (n int, err error) {
	args := pgx.NamedArgs{"user": u, "idle": idle, "held": held, "before": before, "now": now}
	err = a.on.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM acquaintances WHERE username = @user AND actor_uri = ANY(@idle) AND idle_at < @before`, args)
		if err != nil {
			return err
		}
		n = int(tag.RowsAffected())
		_, err = tx.Exec(ctx, `UPDATE acquaintances SET idle_at = CASE WHEN actor_uri = ANY(@idle) THEN @now::timestamptz END
			WHERE username = @user AND (actor_uri = ANY(@idle) AND idle_at IS NULL OR actor_uri = ANY(@held) AND idle_at IS NOT NULL)`, args)
		return err
	})
	return n, postgres.Fault("prune acquaintances", err)
}
