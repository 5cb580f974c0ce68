package admin

import (
	"context"
	"fmt"
	"time"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// keptRetired is the least time for which a retired key stays published. During that time other
// servers may have documents or requests that the key signed and that they have not verified yet.
const keptRetired = 30 * 24 * time.Hour

// RotatedKeys has the ids of the keys that a user signs with after the rotation.
type RotatedKeys struct {
	User    vocab.Username `json:"user"`
	RSA     string         `json:"rsa"` // the id does not change, so servers find the new RSA key in the place of the old one
	Ed25519 string         `json:"ed25519"`
}

// RotateKeys replaces the keys of a user. A serving engine, or the next one that starts, signs
// with the new keys and announces them to other servers. The fault is NoUser when there is no
// such user, or the user is neither active nor suspended.
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

// pruneKeys removes retired keys of u that were retired at least keptRetired ago, unless a
// delivery from before the retirement is still owed.
func (dbs Databases) pruneKeys(ctx context.Context, u vocab.Username) error {
	return dbs.in.Keys.PruneRetired(u, func(since time.Time) (needed bool, err error) {
		if dbs.in.Now().Sub(since) < keptRetired {
			return true, nil
		}
		err = dbs.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
			needed, err = tx.Deliveries.IsOwing(ctx, since)
			return err
		})
		return needed, err
	})
}
