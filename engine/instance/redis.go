package instance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/embedded"
)

// OpenRedis makes calls to Redis possible until Close. Redis need not answer yet. OpenRedis
// starts the private Redis unless redis.url names another one. The parameter serves says whether
// this process serves the instance.
func (in *Instance) OpenRedis(ctx context.Context, serves bool) (err error) {
	c := keyspace.Config{CacheURL: in.Config.Redis.URL.Reveal(), EventsURL: in.Config.Redis.EventsURL.Reveal(),
		Log: in.Log.With("component", "redis"), Metrics: in.Metrics}
	if c.CacheURL == "" {
		in.Redis, err = embedded.Open(ctx, embedded.Config{Dir: in.Config.DataDir, EventsMemory: in.Config.Events.Memory, Host: serves, Log: c.Log})
		if err != nil {
			return err
		}
		c.CacheURL, c.EventsURL, c.IsStandIn = in.Redis.CacheURL(), in.Redis.EventsURL(), in.Redis.IsStandIn()
	}
	in.Keyspace, err = keyspace.Open(c)
	return err
}

// NewFeeds returns the feeds in the users' databases.
func (in *Instance) NewFeeds(databases *user.Databases) *feed.Database {
	return feed.NewDatabase(databases, in.Local, in.Registry, handler.HasEmoji)
}

// NewCachedFeeds returns feeds with a cache in the Redis that OpenRedis opened. It returns nil
// when the private Redis is a stand-in, because nothing would limit the size of the cache.
func (in *Instance) NewCachedFeeds(databases *user.Databases) *feed.Cached {
	if in.Redis != nil && in.Redis.IsStandIn() {
		return nil
	}
	return feed.NewCached(in.NewFeeds(databases), in.newCache(in.Keyspace, in.Metrics), in.Config.Cache.ActorTTL, in.Log.With("component", "cache"))
}

func (in *Instance) newCache(k *keyspace.Keyspace, reg prometheus.Registerer) *cache.Cache {
	return cache.New(cache.Config{Store: k.Cache, PageSize: in.Config.Cache.PageEntries, Metrics: reg, Now: in.Now})
}

// serving holds this process's access to the cache of the process that serves.
type serving struct {
	once     sync.Once
	telling  sync.WaitGroup     // calls of tellServing
	keyspace *keyspace.Keyspace // nil: there is no cache
	cache    *cache.Cache
}

// tellTime limits the time for telling the process that serves about a commit. The writer waits
// for only a part of it (see user.Subscriber), and Close for all of it.
const tellTime = 10 * time.Second

// tellServing tells the process that serves about a commit of this process. That process then
// emits the new events within a second, and its cache no longer shows the data that c changed.
func (in *Instance) tellServing(ctx context.Context, c user.Commit) {
	if c.Touched.IsZero() && len(c.Events) == 0 {
		return
	}
	s := &in.serving
	s.telling.Add(1)
	defer s.telling.Done()
	s.once.Do(func() { in.openServing(ctx) })
	var err error
	if s.cache != nil {
		err = feed.Drop(ctx, s.cache, c)
	}
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
	defer cancel()
	if err = errors.Join(err, in.DB.Instance.Users.MarkEventsDue(longer, c.User)); err != nil {
		in.Log.WarnContext(ctx, "a change may reach readers and programs late", "user", c.User, "err", err)
	}
}

// openServing opens the cache of the process that serves. If the cache cannot be reached now,
// readers see changes of this process within a second.
func (in *Instance) openServing(ctx context.Context) {
	url, err := in.Config.Redis.URL.Reveal(), error(nil)
	if url == "" {
		url, err = embedded.FindCache(ctx, embedded.Config{Dir: in.Config.DataDir})
	}
	if err == nil && url != "" {
		in.serving.keyspace, err = keyspace.Open(keyspace.Config{CacheURL: url, Log: in.Log.With("component", "redis")})
	}
	if err != nil {
		in.Log.WarnContext(ctx, "the cache of the engine cannot be reached: readers see changes within a second", "err", err)
	} else if url != "" {
		in.serving.cache = in.newCache(in.serving.keyspace, nil)
	}
}

// closeRedis releases everything that OpenRedis and openServing acquired.
func (in *Instance) closeRedis(ctx context.Context) (err error) {
	for _, k := range []*keyspace.Keyspace{in.Keyspace, in.serving.keyspace} {
		if k != nil {
			err = errors.Join(err, k.Close())
		}
	}
	if in.Redis != nil {
		err = errors.Join(err, in.Redis.Close(ctx))
	}
	return err
}
