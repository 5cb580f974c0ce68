package keyspace

import (
	"context"
	"strconv"
	"strings"
)

// oldest is the oldest major version of Redis that has all commands that the engine uses. All
// versions of Valkey are newer.
const oldest = 7

// watched has the facts that Watch remembers about a server.
type watched struct {
	told   bool // the server was checked before, so up has a value
	up     bool
	probed bool
}

// watch checks whether the server answers, and logs when that has changed.
func (s *Store) watch(ctx context.Context) {
	err := s.call(ctx, "ask Redis", func(ctx context.Context) error { return s.client.Ping(ctx).Err() })
	if ctx.Err() != nil {
		return
	}
	up := err == nil
	s.metrics.up.WithLabelValues(s.role).Set(map[bool]float64{true: 1}[up])
	switch before := s.watched; {
	case up && before.told && !before.up:
		s.log.InfoContext(ctx, "Redis reached again", "role", s.role)
	case !up && (!before.told || before.up):
		s.log.WarnContext(ctx, "Redis does not answer", "role", s.role, "err", err)
	}
	s.watched.told, s.watched.up = true, up
	if up && !s.watched.probed {
		s.watched.probed = s.probe(ctx)
	}
}

// probe reads the version and the settings of the server, and warns of settings that do not suit
// the server's role. It returns false if the server has to be probed again.
func (s *Store) probe(ctx context.Context) bool {
	var info string
	err := s.call(ctx, "probe Redis", func(ctx context.Context) (err error) {
		info, err = s.client.Info(ctx, "server", "memory").Result()
		return err
	})
	if err != nil {
		return !IsAway(err) // some hosted servers refuse INFO, and so does the stand-in of package embedded
	}
	told := parseInfo(info)
	if problem, hint := s.unsuited(told); problem != "" {
		s.log.WarnContext(ctx, problem, "role", s.role, "hint", hint)
	}
	return true
}

// parseInfo parses the answer of INFO.
func parseInfo(info string) map[string]string {
	told := map[string]string{}
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			told[key] = value
		}
	}
	return told
}

// unsuited returns why the settings of a server do not suit its role, and how to change them. It
// returns empty strings if the settings suit it.
func (s *Store) unsuited(info map[string]string) (problem, hint string) {
	policy, full := info["maxmemory_policy"], info["maxmemory"] != "" && info["maxmemory"] != "0"
	major, _, _ := strings.Cut(info["redis_version"], ".")
	version, err := strconv.Atoi(major)
	all := strings.HasPrefix(policy, "allkeys-")
	switch {
	case err == nil && version < oldest:
		return "Redis is too old: version " + info["redis_version"], "take Redis 7 or newer, or Valkey"
	case info["redis_mode"] == "cluster" && !s.cluster:
		return "Redis is a cluster, and its address does not say so", "add ?cluster=true to the address"
	case s.role == bothRoles && full && all:
		return "Redis may evict streams of events when its memory is full: maxmemory-policy " + policy,
			"give the events a server with maxmemory-policy noeviction as redis.events_url, or set maxmemory-policy volatile-lfu"
	case s.role == bothRoles && full && policy != "" && !strings.HasPrefix(policy, "volatile-"):
		return "Redis refuses events once the cache has filled its memory: maxmemory-policy " + policy,
			"set maxmemory-policy volatile-lfu on the server of redis.url, or give the events a server of their own as redis.events_url"
	case s.role == bothRoles && !full && info["maxmemory"] != "":
		return "the cache in Redis may grow without end, and leave the events no memory",
			"set maxmemory and maxmemory-policy volatile-lfu on the server of redis.url"
	case s.role == eventsRole && full && policy != "noeviction" && !strings.HasPrefix(policy, "volatile-"):
		return "Redis may evict streams of events when its memory is full: maxmemory-policy " + policy,
			"set maxmemory-policy noeviction on the server of redis.events_url"
	case s.role == cacheRole && full && !all:
		return "Redis does not make room in the cache when its memory is full: maxmemory-policy " + policy,
			"set maxmemory-policy allkeys-lfu on the server of redis.url"
	case s.role == cacheRole && !full && info["maxmemory"] != "":
		return "the cache in Redis may grow without end", "set maxmemory and maxmemory-policy allkeys-lfu on the server of redis.url"
	}
	return "", ""
}

// Ask returns nil if Redis answers.
func (s *Store) Ask(ctx context.Context) error {
	return s.call(ctx, "ask Redis", func(ctx context.Context) error { return s.client.Ping(ctx).Err() })
}

// IsUp reports whether the server is considered up. If it is not, most calls fail immediately.
func (s *Store) IsUp() bool { return !s.breaker.isOpen() }
