package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The states of a user.
const (
	UserCreating  = "creating" // half-made: creating it again finishes it
	UserActive    = "active"
	UserSuspended = "suspended"
	UserDeleted   = "deleted" // a tombstone: the name is never used again
)

// User is a row of the instance's users.
type User struct {
	Name          vocab.Username
	State         string
	Database      string
	SchemaVersion int
	CreatedAt     time.Time
}

const userColumns = `username, state, database, schema_version, created_at`

// User returns the row of u; the fault is NoUser when there is none. It opens no user's database.
func (c *Cluster) User(ctx context.Context, u vocab.Username) (User, error) {
	return user(ctx, c.instance, u)
}

// State returns the state of u, which was within the last second if it is active; the fault is NoUser when there is no
// such user. It does not wait for anything else that is done with the instance database.
func (c *Cluster) State(ctx context.Context, u vocab.Username) (string, error) {
	now := time.Now()
	if known, _ := c.active.split([]vocab.Username{u}, now); len(known) > 0 {
		return UserActive, nil
	}
	row, err := user(ctx, c.lookups, u)
	if row.State == UserActive {
		c.active.add([]vocab.Username{u}, now.Add(believed))
	}
	return row.State, err
}

func user(ctx context.Context, on instance, u vocab.Username) (User, error) {
	rows, err := on.Query(ctx, `SELECT `+userColumns+` FROM users WHERE username = $1`, u)
	if err != nil {
		return User{}, postgres.Fault("read user", err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[User])
	if postgres.IsNoRows(err) {
		return User{}, fault.New(fault.NoUser, fmt.Sprintf("there is no user %q", u)).WithHint("lightweb user list")
	}
	return row, postgres.Fault("read user", err)
}

// Users returns every user's row, deleted ones too, by name.
func (c *Cluster) Users(ctx context.Context) ([]User, error) {
	return users(ctx, c.instance)
}

func users(ctx context.Context, on interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}) ([]User, error) {
	rows, err := on.Query(ctx, `SELECT `+userColumns+` FROM users ORDER BY username`)
	if err != nil {
		return nil, postgres.Fault("list users", err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowToStructByPos[User])
	return users, postgres.Fault("list users", err)
}

// CountUsers returns how many users are active.
func (c *Cluster) CountUsers(ctx context.Context) (n int, err error) {
	err = c.instance.QueryRow(ctx, `SELECT count(*) FROM users WHERE state = 'active'`).Scan(&n)
	return n, postgres.Fault("count users", err)
}

// ReserveUser takes the name for a user that is about to be made, and returns its row. A row that is there is left as
// it is: the caller looks at its state.
func (c *Cluster) ReserveUser(ctx context.Context, u vocab.Username) (User, error) {
	_, err := c.instance.Exec(ctx, `INSERT INTO users (username, state, database) VALUES ($1, 'creating', $2)
		ON CONFLICT DO NOTHING`, u, c.schema.OfUser(u))
	if err != nil {
		return User{}, postgres.Fault("reserve user", err)
	}
	return c.User(ctx, u)
}

// CreateUserDatabase clones the template for u, unless that was done before; then it brings the database up to date.
func (c *Cluster) CreateUserDatabase(ctx context.Context, u vocab.Username) error {
	defer c.pool.Retry(c.schema.OfUser(u))
	return c.schema.CreateUser(ctx, u)
}

// ActivateUser publishes a user whose parts are all made. The fault is Conflict when somebody else has: the user is theirs.
func (c *Cluster) ActivateUser(ctx context.Context, u vocab.Username) error {
	tag, err := c.instance.Exec(ctx, `UPDATE users SET state = 'active', schema_version = $2 WHERE username = $1 AND state = 'creating'`, u, c.schema.Latest(schema.User))
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.Conflict, fmt.Sprintf("the user %q exists already", u)).WithHint("lightweb user show " + u.String())
	}
	return postgres.Fault("activate user", err)
}

// SetUserState suspends a whole user, lets one act again, or leaves its tombstone: what is deleted stays so. The fault is
// NoUser when there is no such user.
func (c *Cluster) SetUserState(ctx context.Context, u vocab.Username, state string) error {
	defer c.active.forget(u)
	tag, err := c.instance.Exec(ctx, `UPDATE users SET state = $2, deleted_at = CASE WHEN $2 = 'deleted' THEN now() END
		WHERE username = $1 AND state IN ('active', 'suspended')`, u, state)
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.NoUser, fmt.Sprintf("there is no user %q to change", u)).WithHint("lightweb user list")
	}
	return postgres.Fault("change the state of a user", err)
}

// Destroy drops the instance database, every user's, with all they hold, and the template that has this instance's name.
// c is of no use afterwards.
func (c *Cluster) Destroy(ctx context.Context) error {
	users, err := c.Users(ctx)
	if err != nil {
		return err
	}
	c.Close()
	databases := make([]string, len(users))
	for n, u := range users {
		databases[n] = u.Database
	}
	return c.schema.Destroy(ctx, databases)
}
