// Package keyspace is the only package that reads and writes data in Redis. Every key belongs to a
// user, and begins with the user's name. No other package builds keys.
//
// Redis has two roles, and one server may have both. The cache holds data that can be rebuilt, and
// may lose any key at any time. The events are streams that programs depend on. A call ends within
// a quarter of a second, unless it waits for an entry of a stream. After three failed calls in a
// row the server is considered away. Then calls fail immediately, except for one call every half
// second, until the server answers again.
package keyspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// callLimit is the longest time that a call waits for an answer.
const callLimit = 250 * time.Millisecond

// Config has the URLs of the servers for the two roles.
type Config struct {
	CacheURL  string // in a form that CheckURL accepts
	EventsURL string // empty: the same as CacheURL
	// IsStandIn says that the server is the stand-in of package embedded, which does not have
	// all commands.
	IsStandIn bool
	Log       *slog.Logger
	Metrics   prometheus.Registerer // may be nil
}

// Keyspace gives access to Redis in its two roles. Its methods may be called concurrently.
type Keyspace struct {
	Cache  *Store
	Events *Store // equal to Cache if one server has both roles
}

// Open prepares the clients, and makes no call, so that an engine can start without Redis.
func Open(c Config) (*Keyspace, error) {
	if c.EventsURL == "" {
		c.EventsURL = c.CacheURL
	}
	redis.SetLogger(silent{}) // Watch logs once when a server is away
	m := newMetrics(c.Metrics)
	cache, err := newStore(cacheRole, c.CacheURL, c.Log, m)
	if err != nil {
		return nil, err
	}
	if c.EventsURL == c.CacheURL {
		cache.role, cache.isStandIn = bothRoles, c.IsStandIn
		return &Keyspace{Cache: cache, Events: cache}, nil
	}
	events, err := newStore(eventsRole, c.EventsURL, c.Log, m)
	if err != nil {
		return nil, errors.Join(err, cache.client.Close())
	}
	return &Keyspace{Cache: cache, Events: events}, nil
}

// silent is an empty log for the client library, which would otherwise write to standard error.
type silent struct{}

// Printf does nothing.
func (silent) Printf(context.Context, string, ...any) {}

// Watch checks every second whether the servers answer, until ctx ends. It warns once about
// settings that do not suit the role of a server, such as those by which it may lose events.
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

// Look checks the servers once, as Watch does every second.
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

// The roles of a server, with their names in logs and metrics.
const (
	cacheRole  = "cache"
	eventsRole = "events"
	bothRoles  = "cache and events"
)

// Store is one Redis server, cluster or Sentinel group.
type Store struct {
	role    string
	client  redis.UniversalClient
	cluster bool // cluster mode: keys of one user share a slot
	breaker breaker
	log     *slog.Logger
	metrics *metrics

	isStandIn bool // see Config

	watched watched // used only by the method watch
}

func newStore(role, url string, log *slog.Logger, m *metrics) (*Store, error) {
	o, err := parse(url)
	if err != nil {
		return nil, err
	}
	s := &Store{role: role, client: redis.NewUniversalClient(o), cluster: o.IsClusterMode, log: log, metrics: m}
	return s, nil
}

// Space is the keys of one user: those that begin with the user's name.
type Space struct {
	store  *Store
	prefix string
}

// Of returns the key space of a user. In cluster mode all its keys share a slot.
func (s *Store) Of(u vocab.Username) Space { return Space{s, prefixOf(u.String(), s.cluster)} }

func prefixOf(name string, cluster bool) string {
	if cluster {
		return "{" + name + "}:"
	}
	return name + ":"
}

func (k Space) key(name string) string { return k.prefix + name }

// errAway says that Redis did not answer a call.
var errAway = errors.New("no answer from Redis")

// IsAway reports whether err says that Redis does not answer now.
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
		// The caller gave up, which is no failure of the server.
		return fmt.Errorf("%s: %w", attempt, ctx.Err())
	}
	isAway := err != nil && !isAnswer(err)
	s.breaker.record(time.Now(), isAway)
	switch {
	case isAway:
		s.metrics.calls.WithLabelValues(s.role, "away").Inc()
		return s.away(attempt, err)
	case err != nil && !errors.Is(err, redis.Nil):
		s.metrics.calls.WithLabelValues(s.role, "refused").Inc()
		return refusal(attempt, err)
	}
	s.metrics.calls.WithLabelValues(s.role, "ok").Inc()
	return err
}

func (s *Store) away(attempt string, err error) error {
	return fault.Wrap(fault.Unavailable, "Redis does not answer", fmt.Errorf("%s: %w: %w", attempt, errAway, err))
}

// refusal returns the error for an answer that refuses a call. Only a refusal for a while has a
// kind. The cause of any other refusal is a bug, or a right that the engine lacks in Redis.
func refusal(attempt string, err error) error {
	err = fmt.Errorf("%s: %w", attempt, err)
	if IsRefusal(err) {
		return fault.Wrap(fault.Unavailable, "Redis refuses this for now", err)
	}
	return err
}

// transact makes calls in one transaction. If the server refuses one of them, it executes none.
// Then transact returns the error of the refused call, and not the server's answer to the whole
// transaction.
func (s *Store) transact(ctx context.Context, add func(redis.Pipeliner)) error {
	calls, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error { add(p); return nil })
	if !redis.HasErrorPrefix(err, aborted) {
		return err
	}
	for _, c := range calls {
		if c.Err() != nil && !redis.HasErrorPrefix(c.Err(), aborted) {
			return c.Err()
		}
	}
	return err
}

// aborted begins the answer of a server that executed nothing of a transaction. The cause is
// either the answer to an earlier call of the transaction, or follows after abortedBy.
const (
	aborted   = "EXECABORT "
	abortedBy = aborted + "Transaction discarded because of: "
)

// beginsWith reports whether the server gave one of these words as the cause of err.
func beginsWith(err error, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return redis.HasErrorPrefix(err, word) || redis.HasErrorPrefix(err, abortedBy+word)
	})
}

// notNow lists the first words of errors by which a server says that it cannot serve at the
// moment.
var notNow = []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS"}

// isAnswer reports whether err is the server's answer to a call. A failure to reach the server is
// no answer, and neither is an error that begins with a word in notNow.
func isAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok && !beginsWith(err, notNow)
}

// passing lists the beginnings of errors by which a server refuses commands for a while: it has no
// memory for them, cannot write to its disk, or runs a script. The server still answers other
// commands, so it is not away.
var passing = []string{"OOM ", "MISCONF ", "BUSY "}

// IsRefusal reports whether err says that the server refuses a command for a while.
func IsRefusal(err error) bool { return beginsWith(err, passing) }
