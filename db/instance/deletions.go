package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Deletion is a user who is being deleted.
type Deletion struct {
	User     vocab.Username `db:"username"`
	Since    time.Time
	Removing bool // nobody is told any more: what there is of the user is being removed
}

// deletionColumns are those of a Deletion. A user that is being removed has no database.
const deletionColumns = `username, deleted_at AS since, schema_version = 0 AS removing`

// BeginDeletion closes a user to everybody for good, and returns since when. It changes nothing
// for one who is being deleted. The fault is NoUser when there is no such user, Gone when it was
// deleted, Conflict when it is half-made.
func (s Users) BeginDeletion(ctx context.Context, u vocab.Username, now time.Time) (Deletion, error) {
	defer s.active.forget(u)
	begun, err := postgres.First[Deletion](ctx, s.on, "begin a deletion", `UPDATE users SET state = 'deleting', deleted_at = coalesce(deleted_at, $2)
		WHERE username = $1 AND state IN ('active', 'suspended', 'deleting') RETURNING `+deletionColumns, u, now)
	if err != nil {
		return Deletion{}, err
	}
	if begun != nil {
		return *begun, nil
	}
	row, err := s.Find(ctx, u)
	switch {
	case err != nil:
		return Deletion{}, err
	case row.State == UserCreating:
		return Deletion{}, fault.New(fault.Conflict, fmt.Sprintf("the user %q is half-made, and nobody knows it", u)).WithHint("finish it first: lightweb user create " + u.String())
	}
	return Deletion{}, fault.New(fault.Gone, fmt.Sprintf("the user %q was deleted before", u)).WithHint("lightweb user list")
}

// ListDeletions returns who is being deleted, the first asked for first.
func (s Users) ListDeletions(ctx context.Context) ([]Deletion, error) {
	return postgres.Collect[Deletion](ctx, s.on, "list deletions", `SELECT `+deletionColumns+` FROM users WHERE state = 'deleting' ORDER BY deleted_at, username`)
}

// BeginRemoval notes, before anything is removed, that a user who is being deleted has nothing any
// more that could be told or waited for.
func (s Users) BeginRemoval(ctx context.Context, u vocab.Username) error {
	_, err := s.on.Exec(ctx, `UPDATE users SET schema_version = 0 WHERE username = $1 AND state = 'deleting'`, u)
	return postgres.Fault("begin the removal of "+u.String(), err)
}

// FinishDeletion leaves the tombstone of a user who is being deleted, and nothing else.
func (s Users) FinishDeletion(ctx context.Context, u vocab.Username) error {
	err := pgx.BeginFunc(ctx, s.on, func(tx pgx.Tx) error {
		for _, table := range []string{"tokens", "acquaintances", "parked", "wishes"} {
			if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE username = $1`, u); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `UPDATE users SET state = 'deleted', next_due = NULL, events_due = NULL, told_profile = NULL WHERE username = $1 AND state = 'deleting'`, u)
		return err
	})
	return postgres.Fault("finish the deletion of "+u.String(), err)
}
