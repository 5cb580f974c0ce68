package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// AcquaintanceBelieved is how long after Acquaint a caller may rely on it for the same actor and users.
const AcquaintanceBelieved = 6 * time.Hour

// Acquaint commits that the actor may concern these users, and with follows that they may follow it. It must be called
// before anything of the actor enters a user's database, and before a Follow leaves. A night that is about to remove the row
// leaves it alone then.
func (c *Cluster) Acquaint(ctx context.Context, actor vocab.ID, users []vocab.Username, follows bool) error {
	_, err := c.instance.Exec(ctx, `INSERT INTO acquaintances AS a (actor_uri, username, follows)
		SELECT DISTINCT $1, u, $3::boolean FROM unnest($2::text[]) u ORDER BY u
		ON CONFLICT (actor_uri, username) DO UPDATE SET follows = a.follows OR excluded.follows, idle_at = NULL
			WHERE excluded.follows AND NOT a.follows OR a.idle_at IS NOT NULL`,
		actor, names(users), follows)
	return postgres.Fault("remember acquaintance", err)
}

// Acquainted returns the active users that the actor may concern; with follows only those who may follow it.
func (c *Cluster) Acquainted(ctx context.Context, actor vocab.ID, follows bool) ([]vocab.Username, error) {
	now := time.Now()
	rows, err := c.instance.Query(ctx, `SELECT username FROM acquaintances JOIN users USING (username)
		WHERE actor_uri = $1 AND (follows OR NOT $2) AND state = 'active' ORDER BY username`, actor, follows)
	if err != nil {
		return nil, postgres.Fault("read acquaintances", err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowTo[vocab.Username])
	if err == nil {
		c.active.add(users, now.Add(believed))
	}
	return users, postgres.Fault("read acquaintances", err)
}

// EachKnownHost tells for every host and every active user who is acquainted with somebody there, and whether the user may
// follow somebody there, in no order. Hosts are as the actors' ids have them, with ports.
func (c *Cluster) EachKnownHost(ctx context.Context, see func(host string, u vocab.Username, follows bool)) error {
	rows, err := c.instance.Query(ctx, `SELECT split_part(actor_uri, '/', 3), username, bool_or(follows)
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

func names(users []vocab.Username) []string {
	out := make([]string, len(users))
	for i, u := range users {
		out[i] = u.String()
	}
	return out
}
