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
	Removing bool // the removal of the user's data has begun
}

// deletionColumns are the columns of a Deletion. A schema_version of 0 marks that the removal of
// the user's data has begun.
const deletionColumns = `username, deleted_at AS since, schema_version = 0 AS removing`

// BeginDeletion puts a user into the state deleting, from which there is no way back, and returns
// the deletion. If the deletion had begun before, the time of its beginning stays as it was. The
// fault is NoUser when there is no such user, Gone when the user was deleted, Conflict when the
// creation of the user is unfinished.
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

// ListDeletions returns the users that are being deleted, the earliest deletion first.
func (s Users) ListDeletions(ctx context.Context) ([]Deletion, error) {
	return postgres.Collect[Deletion](ctx, s.on, "list deletions", `SELECT `+deletionColumns+` FROM users WHERE state = 'deleting' ORDER BY deleted_at, username`)
}

// BeginRemoval stores that the removal of the data of a user who is being deleted has begun. It
// is called when no delivery to other servers is owed any more, or when the time limit for these
// deliveries has passed. It must be called before any data is removed from the user's database.
func (s Users) BeginRemoval(ctx context.Context, u vocab.Username) error {
	_, err := s.on.Exec(ctx, `UPDATE users SET schema_version = 0 WHERE username = $1 AND state = 'deleting'`, u)
	return postgres.Fault("begin the removal of "+u.String(), err)
}

// IsRemoved reports whether the data of a deleted user is gone, or is being removed. The database
// of such a user is of no use any more.
func (u User) IsRemoved() bool {
	return u.State == UserDeleted || u.State == UserDeleting && u.SchemaVersion == 0
}

// IsRemoved does what User.IsRemoved does, for a caller that failed to open the user's database.
// The error of that failure does not say whether the user was removed. IsRemoved is true for an
// unknown user, and false if the instance database cannot be read.
func (s Users) IsRemoved(ctx context.Context, u vocab.Username) bool {
	found, err := s.Find(ctx, u)
	return fault.KindOf(err) == fault.NoUser || err == nil && found.IsRemoved()
}

// FinishDeletion puts a user who is being deleted into the state deleted, and removes the user's
// tokens, acquaintances, wishes and marks of parked deliveries. The row in users remains as a
// tombstone.
func (s Users) FinishDeletion(ctx context.Context, u vocab.Username) error {
	err := s.on.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
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
