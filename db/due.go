package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Due says by when somebody has to look at a user's deliveries.
type Due struct {
	User vocab.Username
	At   *time.Time // nil: nothing is owed
	Was  *time.Time // what is remembered until now
}

// Owing returns the active users who owe something by then, or whenever when that is zero; who waits longest comes first.
// It opens no user's database.
func (c *Cluster) Owing(ctx context.Context, by time.Time) ([]Due, error) {
	rows, err := c.instance.Query(ctx, `SELECT username, next_due, next_due FROM users
		WHERE state = 'active' AND next_due IS NOT NULL AND ($1::timestamptz IS NULL OR next_due <= $1) ORDER BY next_due, username LIMIT 10000`, orNull(by))
	if err != nil {
		return nil, postgres.Fault("list who owes deliveries", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Due])
	return all, postgres.Fault("list who owes deliveries", err)
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// MarkDue remembers by when the users' deliveries want looking at, but not where somebody else has changed what was
// remembered: it returns what stands there.
func (c *Cluster) MarkDue(ctx context.Context, all []Due) ([]Due, error) {
	users, at, was := make([]string, len(all)), make([]*time.Time, len(all)), make([]*time.Time, len(all))
	for n, d := range all {
		users[n], at[n], was[n] = d.User.String(), d.At, d.Was
	}
	rows, err := c.instance.Query(ctx, `WITH d AS (
			SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[]) AS d (username, at, was)
		), marked AS (
			UPDATE users u SET next_due = d.at FROM d WHERE u.username = d.username AND u.next_due IS NOT DISTINCT FROM d.was RETURNING u.username
		)
		SELECT username, next_due, next_due FROM users JOIN d USING (username) WHERE username NOT IN (SELECT username FROM marked)`, users, at, was)
	if err != nil {
		return nil, postgres.Fault("remember who owes deliveries", err)
	}
	changed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Due])
	return changed, postgres.Fault("remember who owes deliveries", err)
}

// WantDeliveries makes whoever serves look at the deliveries of these users at once.
func (c *Cluster) WantDeliveries(ctx context.Context, users []vocab.Username) error {
	names := make([]string, len(users))
	for n, u := range users {
		names[n] = u.String()
	}
	_, err := c.instance.Exec(ctx, `UPDATE users SET next_due = date_trunc('milliseconds', now()) WHERE username = ANY($1)`, names)
	return postgres.Fault("ask for deliveries", err)
}
