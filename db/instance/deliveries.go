package instance

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Deliveries records for which users deliveries are due, and for which users and hosts deliveries
// are parked. A parked delivery waits because its host has failed for days. The wait ends when the
// host answers again, or when the delivery is too old and is given up.
type Deliveries struct{ on conns }

// Due is the time by which the dispatcher has to look at a user's deliveries.
type Due struct {
	User vocab.Username `db:"username"`
	At   *time.Time     // nil: the user has no deliveries left
	Was  *time.Time     // the time that was stored when the caller read it
}

// ListDue returns the users that have deliveries due no later than the time in the parameter by.
// If by is zero, it returns all users that have deliveries. The users are active, or are being
// deleted and still have their data. It returns at most 10000 users, the earliest due first, and
// opens no user's database.
func (s Deliveries) ListDue(ctx context.Context, by time.Time) ([]Due, error) {
	return postgres.Collect[Due](ctx, s.on, "list users with due deliveries", `SELECT username, next_due AS at, next_due AS was FROM users
		WHERE (state = 'active' OR state = 'deleting' AND schema_version > 0) AND next_due IS NOT NULL AND ($1::timestamptz IS NULL OR next_due <= $1) ORDER BY next_due, username LIMIT 10000`, postgres.TimeOrNull(by))
}

// MarkDue stores At for the user of each entry, if the stored time still equals Was. If another
// process has stored another time, MarkDue keeps that time and returns it among the results. It
// locks the rows first, because otherwise it would return an old time after waiting for that
// process.
func (s Deliveries) MarkDue(ctx context.Context, all []Due) ([]Due, error) {
	users, at, was := make([]string, len(all)), make([]*time.Time, len(all)), make([]*time.Time, len(all))
	for n, d := range all {
		users[n], at[n], was[n] = d.User.String(), d.At, d.Was
	}
	return postgres.Collect[Due](ctx, s.on, "store when deliveries are due", `WITH d AS (
			SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[]) AS d (username, at, was)
		), held AS (
			SELECT username, d.at, d.was, next_due FROM users JOIN d USING (username) ORDER BY username FOR NO KEY UPDATE OF users
		), marked AS (
			UPDATE users u SET next_due = h.at FROM held h WHERE u.username = h.username AND h.next_due IS NOT DISTINCT FROM h.was
		)
		SELECT username, next_due AS at, next_due AS was FROM held WHERE next_due IS DISTINCT FROM was`, users, at, was)
}

// Want marks deliveries of these users as due now, so that the serving process looks at them.
func (s Deliveries) Want(ctx context.Context, users []vocab.Username) error {
	_, err := s.on.Exec(ctx, `UPDATE users SET next_due = date_trunc('milliseconds', now()) WHERE username = ANY($1)`, names(users))
	return postgres.Fault("ask for deliveries", err)
}

// Parked says that deliveries of a user to a host are parked (see Deliveries).
type Parked struct {
	Host string
	User vocab.Username `db:"username"`
}

// ListParked returns the pairs of a host and a user with parked deliveries, sorted by host. A
// pair may have no parked deliveries any more.
func (s Deliveries) ListParked(ctx context.Context) ([]Parked, error) {
	return postgres.Collect[Parked](ctx, s.on, "read parked deliveries", `SELECT host, username FROM parked ORDER BY host, username`)
}

// MarkParked stores that the users' deliveries to the hosts are parked. If resumed is true, it
// removes the rows of these pairs instead.
func (s Deliveries) MarkParked(ctx context.Context, all []Parked, resumed bool) error {
	hosts, users := make([]string, len(all)), make([]string, len(all))
	for n, p := range all {
		hosts[n], users[n] = p.Host, p.User.String()
	}
	query := `INSERT INTO parked (host, username) SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING`
	if resumed {
		query = `DELETE FROM parked p USING unnest($1::text[], $2::text[]) AS r (host, username) WHERE p.host = r.host AND p.username = r.username`
	}
	_, err := s.on.Exec(ctx, query, hosts, users)
	return postgres.Fault("store parked deliveries", err)
}
