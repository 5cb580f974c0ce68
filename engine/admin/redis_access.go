package admin

import (
	"context"

	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// RedisAccess returns the Redis access for a program that reads the user's events. The fault is
// NoUser when the user does not exist or is being deleted.
func (us Users) RedisAccess(ctx context.Context, u vocab.Username, password string) (keyspace.Access, error) {
	if err := checkStays(ctx, us.in, u); err != nil {
		return keyspace.Access{}, err
	}
	if err := us.in.OpenRedis(ctx, false); err != nil {
		return keyspace.Access{}, err
	}
	return us.in.Keyspace.Events.StreamAccess(u, event.Stream, password), nil
}

// GrantRedisAccess creates in Redis the access that RedisAccess returned. It reports whether the
// access survives a restart of Redis.
func (us Users) GrantRedisAccess(ctx context.Context, a keyspace.Access) (saved bool, err error) {
	saved, err = us.in.Keyspace.Events.GrantAccess(ctx, a)
	if err != nil && !keyspace.IsAway(err) {
		return false, fault.Wrap(fault.Config, "this Redis takes no users", err).WithHint("install redis-server 7 or newer, or set redis.events_url")
	}
	return saved, err
}
