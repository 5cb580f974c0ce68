package cache_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The cache, the streams and the sessions may be in one Redis. A sweep of all that the cache has
// of some users leaves their streams, sessions and presence, and everything of other users.
func TestASweepTouchesNothingButTheCache(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	cached := []string{"actor:https://peer.example/users/bob", "feed:cards:gen", "feed:main:gen", "feed:main:page:0", "feed:main:page:19", "obj:https://peer.example/notes/1"}
	others := []string{"events", "events:dead", "presence", "session:x", "sessions"}
	for _, user := range []string{"alice", "bob"} {
		for _, name := range slices.Concat(cached, others) {
			switch {
			case strings.HasPrefix(name, "events"):
				s.Do("XADD", user+":"+name, "1-1", "type", "create.received")
			case name == "sessions", strings.Contains(name, ":page:"):
				s.Do("RPUSH", user+":"+name, "session:x")
			default:
				s.Do("SET", user+":"+name, "text")
			}
		}
	}
	s.Do("SET", "instance", "text") // a key of no user
	c := cache.New(cache.Config{Store: open(t, s.URL()), PageSize: 50, Now: time.Now})
	alice := user(t, "alice")
	lists, layers := []string{"main", "notifications", "requests", "cards"}, []string{cache.Objects, cache.Actors}
	before := keysOf(s)
	for _, dryRun := range []bool{true, false} {
		found, err := c.Sweep(t.Context(), []vocab.Username{alice}, lists, layers, dryRun)
		if err != nil || found[alice] != len(cached) || len(found) != 1 {
			t.Errorf("the sweep found %v, %v, want %d keys of alice", found, err, len(cached))
		}
		if dryRun && !slices.Equal(keysOf(s), before) {
			t.Error("a dry run changes the keys")
		}
	}
	want := slices.DeleteFunc(before, func(key string) bool {
		name, isAlices := strings.CutPrefix(key, "alice:")
		return isAlices && slices.Contains(cached, name)
	})
	if d := cmp.Diff(want, keysOf(s)); d != "" {
		t.Error("left (-want +got):\n", d)
	}
}

// keysOf returns all keys of a server, in order.
func keysOf(s *redistest.Server) []string {
	keys := strings.Fields(s.Do("KEYS", "*"))
	slices.Sort(keys)
	return keys
}
