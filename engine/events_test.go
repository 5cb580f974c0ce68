package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/daemon"
	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// onStream reports whether the activity is told of on the user's stream.
func onStream(server *redistest.Server, u *enginetest.User, kind, activity string) bool {
	all := server.Do("XRANGE", u.Name+":events", "-", "+")
	return strings.Contains(all, kind) && strings.Contains(all, activity)
}

// A post is told of on the streams of its author and of a follower. Without Redis the engine
// serves on, and tells later; so does an engine that was killed before it could.
func TestEventsReachTheStreams(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := enginetest.Start(t, "LIGHTWEB_REDIS_URL="+server.URL())
	alice, bob := a.CreateUser(t, "alice"), a.CreateUser(t, "bob")
	told := func(activity string) {
		t.Helper()
		enginetest.Eventually(t, "both streams tell of "+activity, func() bool {
			return onStream(server, alice, "create.sent", activity) && onStream(server, bob, "create.received", activity)
		})
	}
	bob.Do(t, "Follow", map[string]any{"actorUri": alice.ID})
	enginetest.Eventually(t, "the follow is told of", func() bool { return strings.Contains(server.Do("XRANGE", "alice:events", "-", "+"), "follow.received") })
	create, _ := alice.Post(t, map[string]any{"content": "with Redis"})
	told(create)

	server.Kill()
	create, _ = alice.Post(t, map[string]any{"content": "without Redis"})
	enginetest.Eventually(t, "Redis counts as away", func() bool { return a.Metric(t, `lightweb_redis_up{role="cache and events"}`) == 0 })
	if code := a.Ready(t); code != 200 {
		t.Errorf("/readyz without Redis: %d, want 200", code)
	}
	server.Restart()
	told(create)

	server.Kill()
	create, _ = alice.Post(t, map[string]any{"content": "before a crash"})
	a.Kill()
	server.Restart()
	a.Start(t)
	told(create)
}

// The private Redis is started with the engine and stopped after it.
func TestThePrivateRedisEndsWithTheEngine(t *testing.T) {
	t.Parallel()
	redistest.Program(t) // skips the test where there is none
	a := enginetest.Start(t)
	alice := a.CreateUser(t, "alice")
	alice.Post(t, map[string]any{"content": "hello"})
	enginetest.Eventually(t, "the event is emitted", func() bool { return a.Metric(t, "lightweb_events_emitted_total") >= 1 })
	for _, role := range []string{"cache", "events"} {
		if !isRunning(a, role) {
			t.Errorf("the server of %s does not run", role)
		}
	}
	a.Stop(t)
	for _, role := range []string{"cache", "events"} {
		if isRunning(a, role) {
			t.Errorf("the server of %s outlived the engine", role)
		}
	}
}

// isRunning reports whether a server of the instance's private Redis runs.
func isRunning(i *enginetest.Instance, role string) bool {
	dir := filepath.Join(i.DataDir, "redis", role)
	_, s := daemon.StandingOf(filepath.Join(dir, "redis.pid"), dir)
	return s.IsAlive()
}
