package engine_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// onStream reports whether a user's stream has an event of the given kind about the activity.
func onStream(server *redistest.Server, u *enginetest.User, kind, activity string) bool {
	all := server.Do("XRANGE", u.Name+":events", "-", "+")
	return strings.Contains(all, kind) && strings.Contains(all, activity)
}

// groupsOf returns the answer of Redis about the consumer groups of a user's stream, or an empty
// text if there is no stream.
func groupsOf(server *redistest.Server, name string) string {
	all, err := redistest.Ask("tcp", server.Addr, "XINFO", "GROUPS", name+":events")
	if err != nil {
		return ""
	}
	return all
}

// hasGroups reports whether a user's stream has both consumer groups.
func hasGroups(server *redistest.Server, name string) bool {
	all := groupsOf(server, name)
	return strings.Contains(all, "name llm ") && strings.Contains(all, "name ws ")
}

// A program can read with a consumer group as soon as the user exists, before the first event.
func TestAUserMadeBesideTheEngineHasConsumerGroups(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := enginetest.Start(t, "LIGHTWEB_REDIS_URL="+server.URL())
	a.CreateUser(t, "alice")
	enginetest.Eventually(t, "alice's stream has its groups", func() bool { return hasGroups(server, "alice") })
	if n := server.Do("XLEN", "alice:events"); n != "0" {
		t.Errorf("the stream has %s events, want none", n)
	}
}

// A post causes an event on its author's stream and on a follower's stream. Without Redis the
// engine continues to serve. It emits the events later, even if it was killed in between.
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

// The engine starts while Redis is away. It serves feeds, and refuses sessions. The events wait
// until Redis is back.
func TestAnEngineStartsWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := enginetest.Make(t, "LIGHTWEB_REDIS_URL="+server.URL())
	alice := a.CreateUser(t, "alice")
	server.Kill()
	a.Start(t)
	if code := a.Ready(t); code != http.StatusOK {
		t.Errorf("/readyz without Redis: %d, want 200", code)
	}
	create, _ := alice.Post(t, map[string]any{"content": "without Redis"})
	if got := alice.Ask(t, http.MethodGet, "/api/feed", nil); got.Status != http.StatusOK || !strings.Contains(string(got.Body), create) {
		t.Errorf("the feed without Redis is answered %d %s", got.Status, got.Body)
	}
	if got := alice.Ask(t, http.MethodPost, "/api/session", nil); got.Status != http.StatusServiceUnavailable {
		t.Errorf("a new session without Redis is answered %d, want 503", got.Status)
	}
	if n := a.Metric(t, "lightweb_events_waiting"); n < 1 {
		t.Errorf("%v events wait, want that of the post", n)
	}
	server.Restart()
	enginetest.Eventually(t, "the stream tells of the post", func() bool { return onStream(server, alice, "create.sent", create) })
	enginetest.Eventually(t, "the stream has its groups", func() bool { return hasGroups(server, "alice") })
	enginetest.Eventually(t, "sessions are made", func() bool { return alice.Ask(t, http.MethodPost, "/api/session", nil).Status == http.StatusCreated })
}

// The private Redis starts with the engine and stops after it.
func TestThePrivateRedisEndsWithTheEngine(t *testing.T) {
	t.Parallel()
	redistest.Program(t) // skips the test if there is no Redis program
	a := enginetest.Start(t)
	alice := a.CreateUser(t, "alice")
	alice.Post(t, map[string]any{"content": "hello"})
	enginetest.Eventually(t, "the event is emitted", func() bool { return a.Metric(t, "lightweb_events_emitted_total") >= 1 })
	for _, role := range []string{"cache", "events"} {
		if a.Redis(role) == 0 {
			t.Errorf("the server of %s does not run", role)
		}
	}
	a.Stop(t)
	for _, role := range []string{"cache", "events"} {
		if a.Redis(role) != 0 {
			t.Errorf("the server of %s outlived the engine", role)
		}
	}
}

// When the engine stops, a client first receives all earlier events. Then it learns that the
// engine stops. Redis stops after that, and PostgreSQL last.
func TestSocketsAreClosedFirstWhenTheEngineStops(t *testing.T) {
	t.Parallel()
	a := enginetest.Start(t)
	alice := a.CreateUser(t, "alice")
	s := &siege{T: t, home: a}
	open, _ := s.dialRaw(alice.Token)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+alice.Token)
	stream, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }() // the stream has ended
	create, _ := alice.Post(t, map[string]any{"content": "the last"})
	a.Stop(t)
	if got := open.nextText(); !strings.Contains(got, create) {
		t.Errorf("the socket is sent %q, want the event of %s", got, create)
	}
	open.wantClosed(1001)
	if b, err := io.ReadAll(stream.Body); err != nil || !strings.Contains(string(b), create) || !strings.Contains(string(b), `"code":1001`) {
		t.Errorf("the stream ends with %q, %v", b, err)
	}
	_, end, _ := strings.Cut(a.Log(), create) // commands of CreateUser stop nothing while the engine runs
	if redis, postgres := strings.Index(end, "private Redis stopped"), strings.Index(end, "private PostgreSQL stopped"); redis < 0 || postgres < redis {
		t.Errorf("Redis stops at %d of the log and PostgreSQL at %d, want Redis first, which is rebuilt from the databases", redis, postgres)
	}
}
