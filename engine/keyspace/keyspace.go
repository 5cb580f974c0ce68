// Package keyspace is the only door to Redis. Every key begins with the name of the user it
// belongs to, or with one that no user can have; nothing else in the engine makes a key.
//
// There are two roles, which one server may have both: the cache holds what can be rebuilt and may
// lose any key at any time, the events are streams that programs live on. A call ends within a
// quarter of a second. After three that fail the server counts as away, and calls fail at once
// until it answers again.
package keyspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// callLimit is when a call ends that got no answer.
const callLimit = 250 * time.Millisecond

// Config says where the two roles are.
type Config struct {
	CacheURL  string // as CheckURL takes it
	EventsURL string // empty: the cache's
	Log       *slog.Logger
	Metrics   prometheus.Registerer // may be nil
}

// Keyspace is Redis in its two roles. Its methods may be called concurrently.
type Keyspace struct {
	Cache  *Store
	Events *Store // the cache's, where one server has both roles
}

// Open prepares for calls, and makes none: an engine starts without Redis too.
func Open(c Config) (*Keyspace, error) {
	if c.EventsURL == "" {
		c.EventsURL = c.CacheURL
	}
	redis.SetLogger(silent{}) // Watch tells when a server is away, once
	m := newMetrics(c.Metrics)
	cache, err := newStore(cacheRole, c.CacheURL, c.Log, m)
	if err != nil {
		return nil, err
	}
	if c.EventsURL == c.CacheURL {
		cache.role = bothRoles
		return &Keyspace{Cache: cache, Events: cache}, nil
	}
	events, err := newStore(eventsRole, c.EventsURL, c.Log, m)
	if err != nil {
		return nil, errors.Join(err, cache.client.Close())
	}
	return &Keyspace{Cache: cache, Events: events}, nil
}

// silent is the log of the client library, which would write to standard error.
type silent struct{}

// Printf does nothing.
func (silent) Printf(context.Context, string, ...any) {}

// Watch asks the servers every second whether they answer, until ctx ends. It warns once of
// settings by which they lose what they should keep.
func (k *Keyspace) Watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		k.Look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look is one turn of Watch.
func (k *Keyspace) Look(ctx context.Context) {
	k.Cache.watch(ctx)
	if k.Events != k.Cache {
		k.Events.watch(ctx)
	}
}

// Close ends all connections.
func (k *Keyspace) Close() error {
	err := k.Cache.client.Close()
	if k.Events != k.Cache {
		err = errors.Join(err, k.Events.client.Close())
	}
	return err
}

// The roles of a server, as logs and metrics name them.
const (
	cacheRole  = "cache"
	eventsRole = "events"
	bothRoles  = "cache and events"
)

// Store is one Redis.
type Store struct {
	role    string
	client  redis.UniversalClient
	cluster bool // keys of one user share a slot
	breaker breaker
	log     *slog.Logger
	metrics *metrics

	watched watched // of Watch alone
}

func newStore(role, url string, log *slog.Logger, m *metrics) (*Store, error) {
	o, err := parse(url)
	if err != nil {
		return nil, err
	}
	s := &Store{role: role, client: redis.NewUniversalClient(o), cluster: o.IsClusterMode, log: log, metrics: m}
	return s, nil
}

// Space is what belongs to one user, or to no user: the keys that begin with its name.
type Space struct {
	store  *Store
	prefix string
}

// Of returns the user's keys. In cluster mode all of them share a slot.
func (s *Store) Of(u vocab.Username) Space { return Space{s, prefixOf(u.String(), s.cluster)} }

func prefixOf(name string, cluster bool) string {
	if cluster {
		return "{" + name + "}:"
	}
	return name + ":"
}

func (k Space) key(name string) string { return k.prefix + name }

// errAway is the fault of a call that Redis does not answer.
var errAway = errors.New("no answer from Redis")

// IsAway reports whether err is that Redis does not answer now.
func IsAway(err error) bool { return errors.Is(err, errAway) }

// call makes a call that ends within callLimit.
func (s *Store) call(ctx context.Context, attempt string, work func(context.Context) error) error {
	return s.callWithin(ctx, callLimit, attempt, work)
}

func (s *Store) callWithin(ctx context.Context, limit time.Duration, attempt string, work func(context.Context) error) error {
	if !s.breaker.admitCall(time.Now()) {
		s.metrics.calls.WithLabelValues(s.role, "skipped").Inc()
		return s.away(attempt, errors.New("it did not answer before"))
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := work(limited)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", attempt, ctx.Err()) // the caller gave up: that says nothing of the server
	}
	isAway := err != nil && !isAnswer(err)
	s.breaker.record(time.Now(), isAway)
	switch {
	case isAway:
		s.metrics.calls.WithLabelValues(s.role, "away").Inc()
		return s.away(attempt, err)
	case err != nil && !errors.Is(err, redis.Nil):
		s.metrics.calls.WithLabelValues(s.role, "refused").Inc()
		return fmt.Errorf("%s: %w", attempt, err)
	}
	s.metrics.calls.WithLabelValues(s.role, "ok").Inc()
	return err
}

func (s *Store) away(attempt string, err error) error {
	return fault.Wrap(fault.Unavailable, "Redis does not answer", fmt.Errorf("%s: %w: %w", attempt, errAway, err))
}

// notNow are the first words of answers by which a server says that it cannot serve for the
// moment.
var notNow = []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS"}

// isAnswer reports whether err is what the server thinks of a call, and not that it cannot be
// reached.
func isAnswer(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	for _, word := range notNow {
		if redis.HasErrorPrefix(err, word) {
			return false
		}
	}
	return true
}
