package instance

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// CountOwed counts the deliveries of u that have not ended.
func (in *Instance) CountOwed(ctx context.Context, u vocab.Username) (n int, err error) {
	err = in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		open, err := tx.Deliveries.CountOpen(ctx)
		for _, o := range open {
			n += o.Count
		}
		return err
	})
	return n, err
}

// RemoveUser removes everything of a user who is being deleted, except the name, which is never
// used again. A call that was cut short may be repeated, because the state of the user changes
// last. The fault is Busy while a backup is made, because a backup holds each user as a whole.
func (in *Instance) RemoveUser(ctx context.Context, u vocab.Username) error {
	release, err := in.DB.Instance.Locks.Removal(ctx)
	if err != nil {
		return fmt.Errorf("remove user %s: %w", u, err)
	}
	defer release()
	for _, step := range []func(context.Context, vocab.Username) error{
		in.dropWaiting, in.DB.Instance.Users.BeginRemoval, in.DB.DropUserDatabase, in.revokeRedis, in.sweepRedis, in.removeFiles, in.DB.Instance.Users.FinishDeletion,
	} {
		if err := step(ctx, u); err != nil {
			return fmt.Errorf("remove user %s: %w", u, err)
		}
	}
	return nil
}

func (in *Instance) dropWaiting(ctx context.Context, u vocab.Username) error {
	_, err := in.DB.Instance.Journal.DropWaiting(ctx, u)
	return err
}

// revokeRedis removes the Redis user of programs that read the user's stream, before sweepRedis
// removes the data that these programs may write. A Redis that refuses this does not stop the
// removal.
func (in *Instance) revokeRedis(ctx context.Context, u vocab.Username) error {
	if in.Redis != nil && in.Redis.IsStandIn() { // it has no users
		return nil
	}
	err := in.Keyspace.Events.RevokeAccess(ctx, u)
	if err != nil && !keyspace.IsAway(err) && ctx.Err() == nil {
		in.Log.WarnContext(ctx, "Redis user of a deleted user not removed: remove it if there is one", "user", u, "err", err)
		return nil
	}
	return err
}

// sweepRedis deletes the user's stream, sessions and cache in Redis.
func (in *Instance) sweepRedis(ctx context.Context, u vocab.Username) error {
	for _, store := range []*keyspace.Store{in.Keyspace.Cache, in.Keyspace.Events} {
		if err := store.Sweep(ctx, false, func(user, _ string) bool { return user == u.String() }); err != nil {
			return err
		}
	}
	return nil
}

// removeFiles removes the user's files. It removes the keys last; from then on the actor's
// document is no longer served.
func (in *Instance) removeFiles(_ context.Context, u vocab.Username) error {
	if err := in.Registry.RemoveUser(u); err != nil {
		return err
	}
	return in.Keys.Remove(u)
}
