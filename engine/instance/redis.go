package instance

import (
	"context"
	"errors"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/embedded"
)

// OpenRedis prepares for calls to Redis, which need not answer yet, until Close. It starts the
// private Redis unless redis.url names another one; serves says that this process is the one that
// serves.
func (in *Instance) OpenRedis(ctx context.Context, serves bool) (err error) {
	c := keyspace.Config{CacheURL: in.Config.Redis.URL.Reveal(), EventsURL: in.Config.Redis.EventsURL.Reveal(),
		Log: in.Log.With("component", "redis"), Metrics: in.Metrics}
	if c.CacheURL == "" {
		in.Redis, err = embedded.Open(ctx, embedded.Config{Dir: in.Config.DataDir, EventsMemory: in.Config.Events.Memory, Host: serves, Log: c.Log})
		if err != nil {
			return err
		}
		c.CacheURL, c.EventsURL = in.Redis.CacheURL(), in.Redis.EventsURL()
	}
	in.Keyspace, err = keyspace.Open(c)
	return err
}

// NewFeeds returns the feeds in the users' databases.
func (in *Instance) NewFeeds(databases *db.Cluster) *feed.Database {
	return feed.NewDatabase(databases, in.Local, in.Registry, handler.HasEmoji)
}

// NewCachedFeeds returns the feeds with a cache before them, in the Redis that OpenRedis has
// prepared for; nil where nothing would bound what the cache holds.
func (in *Instance) NewCachedFeeds(databases *db.Cluster) *feed.Cached {
	if in.Redis != nil && in.Redis.IsStandIn() {
		return nil
	}
	c := cache.New(cache.Config{Store: in.Keyspace.Cache, PageSize: in.Config.Cache.PageEntries, Metrics: in.Metrics, Now: in.Now})
	return feed.NewCached(in.NewFeeds(databases), c, in.Config.Cache.ActorTTL, in.Log.With("component", "cache"))
}

// closeRedis lets go of what OpenRedis took.
func (in *Instance) closeRedis(ctx context.Context) (err error) {
	if in.Keyspace != nil {
		err = in.Keyspace.Close()
	}
	if in.Redis != nil {
		err = errors.Join(err, in.Redis.Close(ctx))
	}
	return err
}

// tellServing has the process that serves emit the events which this one added, and read anew what
// this one changed, within a second.
func (in *Instance) tellServing(ctx context.Context, c db.Commit) {
	if c.Touched.IsZero() && len(c.Events) == 0 {
		return
	}
	if err := in.DB.Instance.Users.MarkEventsDue(ctx, c.User); err != nil {
		in.Log.WarnContext(ctx, "a change reaches readers and programs with the user's next one", "user", c.User, "err", err)
	}
}
