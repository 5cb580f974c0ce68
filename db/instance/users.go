package instance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The states of a user.
const (
	UserCreating  = "creating" // unfinished; creating the user again completes it
	UserActive    = "active"
	UserSuspended = "suspended"
	UserDeleting  = "deleting" // closed for good; other servers are told, then the data is removed
	UserDeleted   = "deleted"  // a tombstone: the name is never used again
)

// Users are the users of the instance, with the names of their databases.
type Users struct {
	on       conns
	lookups  conns // for State
	active   *active
	version  int // the schema version of users' databases that this binary uses
	database func(vocab.Username) string
}

// User is a row of Users.
type User struct {
	Name          vocab.Username `db:"username"`
	State         string
	Database      string
	SchemaVersion int
	CreatedAt     time.Time
}

const userColumns = `username, state, database, schema_version, created_at`

// Find returns the row of u. The fault is NoUser when there is none.
func (s Users) Find(ctx context.Context, u vocab.Username) (User, error) {
	return findUser(ctx, s.on, u)
}

// FindUndeleted returns the row of u. The fault is NoUser when there is no such user, or when the
// user is deleted.
func (s Users) FindUndeleted(ctx context.Context, u vocab.Username) (User, error) {
	row, err := s.Find(ctx, u)
	if err == nil && row.State == UserDeleted {
		return User{}, fault.New(fault.NoUser, fmt.Sprintf("the user %q is deleted", u)).WithHint("lightweb user list")
	}
	return row, err
}

// State returns the state of u. The answer that u is active may be up to a second old. The fault
// is NoUser when there is no such user. State does not wait for other work on the instance
// database.
func (s Users) State(ctx context.Context, u vocab.Username) (string, error) {
	now := time.Now()
	if known, _ := s.active.split([]vocab.Username{u}, now); len(known) > 0 {
		return UserActive, nil
	}
	row, err := findUser(ctx, s.lookups, u)
	if row.State == UserActive {
		s.active.add([]vocab.Username{u}, now.Add(believed))
	}
	return row.State, err
}

func findUser(ctx context.Context, on conns, u vocab.Username) (User, error) {
	row, err := postgres.First[User](ctx, on, "read user", `SELECT `+userColumns+` FROM users WHERE username = $1`, u)
	if err == nil && row == nil {
		err = fault.New(fault.NoUser, fmt.Sprintf("there is no user %q", u)).WithHint("lightweb user list")
	}
	if err != nil {
		return User{}, err
	}
	return *row, nil
}

// All returns every user's row, including those of deleted users, sorted by name.
func (s Users) All(ctx context.Context) ([]User, error) { return ListUsers(ctx, s.on) }

// ListUsers does what All does, but over the caller's connection or transaction. A backup calls
// it in the transaction of its snapshot.
func ListUsers(ctx context.Context, on postgres.Querier) ([]User, error) {
	return postgres.Collect[User](ctx, on, "list users", `SELECT `+userColumns+` FROM users ORDER BY username`)
}

// ListWithDatabase returns the named users, or all users when none is named, sorted by name. It
// leaves out deleted users, and users whose creation has not made a database yet. The fault is
// NoUser when a named user does not exist or is deleted.
func (s Users) ListWithDatabase(ctx context.Context, named []vocab.Username) ([]User, error) {
	for _, name := range named {
		if _, err := s.FindUndeleted(ctx, name); err != nil {
			return nil, err
		}
	}
	users, err := postgres.Collect[User](ctx, s.on, "list users", `SELECT `+userColumns+` FROM users WHERE state <> 'deleted'
		AND (state <> 'creating' OR EXISTS (SELECT FROM pg_database WHERE datname = database)) ORDER BY username`)
	if len(named) > 0 {
		users = slices.DeleteFunc(users, func(u User) bool { return !slices.Contains(named, u.Name) })
	}
	return users, err
}

// ListByUse returns up to n active users. The user whose tokens were used last comes first. That
// is known to the hour, and users without a used token come at the end, sorted by name.
func (s Users) ListByUse(ctx context.Context, n int) ([]vocab.Username, error) {
	return postgres.CollectColumn[vocab.Username](ctx, s.on, "list users by use", `SELECT u.username FROM users u
		LEFT JOIN (SELECT username, max(last_used_at) AS at FROM tokens GROUP BY username) t USING (username)
		WHERE u.state = 'active' ORDER BY t.at DESC NULLS LAST, u.username LIMIT $1`, n)
}

// CountActive returns how many users are active.
func (s Users) CountActive(ctx context.Context) (n int, err error) {
	err = s.on.QueryRow(ctx, `SELECT count(*) FROM users WHERE state = 'active'`).Scan(&n)
	return n, postgres.Fault("count users", err)
}

// Reserve stores a user in the state creating, and returns the row. If a user has the name
// already, Reserve changes nothing and returns that user's row. So the caller must look at the
// state of the row.
func (s Users) Reserve(ctx context.Context, u vocab.Username) (User, error) {
	_, err := s.on.Exec(ctx, `INSERT INTO users (username, state, database) VALUES ($1, 'creating', $2)
		ON CONFLICT DO NOTHING`, u, s.database(u))
	if err != nil {
		return User{}, postgres.Fault("reserve user", err)
	}
	return s.Find(ctx, u)
}

// Activate makes a user active after its creation is complete. It also does what MarkEventsDue
// does, so that the serving process makes the consumer groups of the user's stream before the
// first event. The fault is Conflict when the user is not in the state creating, for instance
// because another process has activated it.
func (s Users) Activate(ctx context.Context, u vocab.Username) error {
	tag, err := s.on.Exec(ctx, `UPDATE users SET state = 'active', schema_version = $2, events_due = now() WHERE username = $1 AND state = 'creating'`, u, s.version)
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.Conflict, fmt.Sprintf("the user %q exists already", u)).WithHint("lightweb user show " + u.String())
	}
	return postgres.Fault("activate user", err)
}

// SetState suspends a user or activates it again. A suspension gives the user's password and
// identities new ids and digests. This ends the sessions that were made from the old ones, and
// the sockets of these sessions. The fault is NoUser when there is no such user, or when the user
// is neither active nor suspended.
func (s Users) SetState(ctx context.Context, u vocab.Username, state string) error {
	defer s.active.forget(u)
	tag, err := s.on.Exec(ctx, `WITH changed AS (UPDATE users SET state = $2 WHERE username = $1 AND state IN ('active', 'suspended') RETURNING username),
			ended AS (UPDATE tokens t SET id = gen_random_uuid(), digest = sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) FROM changed
				WHERE t.username = changed.username AND $2 = 'suspended' AND (t.password IS NOT NULL OR t.oidc_subject IS NOT NULL))
		SELECT username FROM changed`, u, state)
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.NoUser, fmt.Sprintf("there is no user %q to change", u)).WithHint("lightweb user list")
	}
	return postgres.Fault("change the state of a user", err)
}

// SetSchema stores the schema version of a user's database.
func (s Users) SetSchema(ctx context.Context, u vocab.Username, v schema.Version) error {
	_, err := s.on.Exec(ctx, `UPDATE users SET schema_version = $2 WHERE username = $1 AND schema_version <> $2`, u, v.Whole())
	return postgres.Fault("note schema of "+u.String(), err)
}

// ListToPrune returns the users whose databases were never pruned, or were last pruned before the
// time in the parameter since; all users if since is zero. A time in the future does not count,
// because the clock was wrong then. If any users are named, ListToPrune considers only these. It
// leaves out users that are still being created. The user whose database was pruned longest ago
// comes first.
func (s Users) ListToPrune(ctx context.Context, named []vocab.Username, since time.Time) ([]vocab.Username, error) {
	users, err := s.ListWithDatabase(ctx, named)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(users))
	for i, u := range users {
		all[i] = u.Name.String()
	}
	return postgres.CollectColumn[vocab.Username](ctx, s.on, "list users to prune", `SELECT username FROM users WHERE username = ANY($1) AND state <> 'creating'
		AND ($3 OR pruned_at IS NULL OR pruned_at < $2 OR pruned_at > now() + interval '1 hour') ORDER BY pruned_at NULLS FIRST, username`, all, since, since.IsZero())
}

// MarkPruned stores that all of the user's database was pruned.
func (s Users) MarkPruned(ctx context.Context, u vocab.Username, now time.Time) error {
	_, err := s.on.Exec(ctx, `UPDATE users SET pruned_at = $2 WHERE username = $1`, u, now)
	return postgres.Fault("note pruning", err)
}

// MarkEventsDue asks the serving process to emit the events that another process has added to u's
// database.
func (s Users) MarkEventsDue(ctx context.Context, u vocab.Username) error {
	_, err := s.on.Exec(ctx, `UPDATE users SET events_due = now() WHERE username = $1`, u)
	return postgres.Fault("ask for events", err)
}

// EventsDue says that another process has added events to a user's database.
type EventsDue struct {
	User vocab.Username `db:"username"`
	At   time.Time      // when MarkEventsDue was last called for the user
}

// ListEventsDue returns the users that MarkEventsDue named, until ClearEventsDue is called for
// them.
func (s Users) ListEventsDue(ctx context.Context) ([]EventsDue, error) {
	return postgres.Collect[EventsDue](ctx, s.on, "list users with events", `SELECT username, events_due AS at FROM users WHERE events_due IS NOT NULL ORDER BY username`)
}

// ClearEventsDue removes users from the results of ListEventsDue. It keeps a user for which
// MarkEventsDue was called again since.
func (s Users) ClearEventsDue(ctx context.Context, all []EventsDue) error {
	users, at := make([]string, len(all)), make([]time.Time, len(all))
	for n, d := range all {
		users[n], at[n] = d.User.String(), d.At
	}
	_, err := s.on.Exec(ctx, `UPDATE users u SET events_due = NULL FROM unnest($1::text[], $2::timestamptz[]) AS d (username, at)
		WHERE u.username = d.username AND u.events_due = d.at`, users, at)
	return postgres.Fault("clear users with events", err)
}
