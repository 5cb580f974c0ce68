package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/db"
	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// keptRetired is how long a retired key is shown at least: so long others may hold what it has
// proven without having looked at it.
const keptRetired = 30 * 24 * time.Hour

// RotatedKeys says which keys a user signs with from now on.
type RotatedKeys struct {
	User    vocab.Username `json:"user"`
	RSA     string         `json:"rsa"` // ids of keys; other servers find the RSA key where the one before it was
	Ed25519 string         `json:"ed25519"`
}

// RotateKeys replaces the keys of a user. The engine that serves, now or when it starts, signs with
// the new ones and tells others. The fault is NoUser when there is no such user, or it is deleted.
func (us Users) RotateKeys(ctx context.Context, name vocab.Username) (RotatedKeys, error) {
	row, err := us.in.DB.Instance.Users.Find(ctx, name)
	if err != nil {
		return RotatedKeys{}, err
	}
	if row.State != dbinstance.UserActive && row.State != dbinstance.UserSuspended {
		return RotatedKeys{}, fault.New(fault.NoUser, fmt.Sprintf("the user %q is %s", name, row.State)).WithHint("lightweb user list")
	}
	id, err := us.in.Keys.Rotate(name)
	if err != nil {
		return RotatedKeys{}, err
	}
	if err := us.in.Registry.TouchUser(name); err != nil {
		return RotatedKeys{}, fmt.Errorf("have others told of the keys of %s: %w", name, err)
	}
	keys, err := us.in.Keys.Keys(name)
	return RotatedKeys{User: name, RSA: keys.RSA.ID, Ed25519: id}, err
}

// pruneKeys forgets keys of u that were retired long ago and have proven nothing that is still
// owed to somebody.
func (dbs Databases) pruneKeys(ctx context.Context, u vocab.Username) error {
	return dbs.in.Keys.PruneRetired(u, func(since time.Time) (needed bool, err error) {
		if dbs.in.Now().Sub(since) < keptRetired {
			return true, nil
		}
		err = dbs.in.DB.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
			needed, err = tx.OwesFromBefore(ctx, since)
			return err
		})
		return needed, err
	})
}
