package engine_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// openStandIn opens the stand-in for Redis that an engine runs, as a command does.
func openStandIn(t *testing.T, i *enginetest.Instance) *keyspace.Store {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(i.DataDir, "redis", "process.json"))
	if err != nil {
		t.Fatal(err)
	}
	var at struct{ URL string }
	if err := json.Unmarshal(b, &at); err != nil {
		t.Fatal(err)
	}
	k, err := keyspace.Open(keyspace.Config{CacheURL: at.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // the stand-in may have ended
	return k.Events
}

// hasGroupAt reports whether a group of a user's stream is at an event with this number.
func hasGroupAt(t *testing.T, events *keyspace.Store, u *enginetest.User, group string, number uint64) bool {
	t.Helper()
	name, err := vocab.ParseUsername(u.Name)
	if err != nil {
		t.Fatal(err)
	}
	found, err := events.Groups(t.Context(), []vocab.Username{name}, "events")
	return err == nil && slices.ContainsFunc(found[0], func(g keyspace.Group) bool { return g.Name == group && g.Delivered.Seq == number })
}

// Without a Redis program the engine runs a stand-in. Events, sessions, sockets and commands work
// with it, and after a restart the streams are made again.
func TestAnEngineServesWithTheStandInForRedis(t *testing.T) {
	t.Parallel()
	a := enginetest.Start(t, "LIGHTWEB_REDIS_BIN=none")
	if log := a.Log(); !strings.Contains(log, "a stand-in runs inside this process") || !strings.Contains(log, "no cache of feeds") {
		t.Errorf("the log does not tell the limits of the stand-in:\n%s", log)
	}
	alice, events := a.CreateUser(t, "alice"), openStandIn(t, a)
	for _, group := range []string{"llm", "ws"} {
		enginetest.Eventually(t, "alice's stream has the group "+group, func() bool { return hasGroupAt(t, events, alice, group, 0) })
	}
	open, _ := (&siege{T: t, home: a}).dialRaw(alice.Token)
	create, _ := alice.Post(t, map[string]any{"content": "hello"})
	if got := open.nextText(); !strings.Contains(got, "create.sent") || !strings.Contains(got, create) {
		t.Errorf("the socket is sent %q, want the event of %s", got, create)
	}
	enginetest.Eventually(t, "the group ws is where the socket is", func() bool { return hasGroupAt(t, events, alice, "ws", 1) })

	var made struct{ Session string }
	alice.Ask(t, http.MethodPost, "/api/session", nil).Decode(t, &made)
	session := *alice
	session.Token = made.Session
	if got := session.Ask(t, http.MethodGet, "/api/feed", nil); got.Status != http.StatusOK || !strings.Contains(string(got.Body), create) {
		t.Errorf("the feed with a session is answered %d %s", got.Status, got.Body)
	}
	tail := func() {
		t.Helper()
		ran := a.Run(t, "stream", "tail", "alice", "--since", "1h", "--follow=false", "--json")
		if got := linesOfTail(t, ran.Stdout); ran.Code != 0 || len(got) != 1 || got[0].Payload.ActivityURI != create {
			t.Errorf("stream tail ended with %d and wrote %s %s", ran.Code, ran.Stdout, ran.Stderr)
		}
	}
	tail()
	var rebuilt struct{ Skipped bool }
	ran := a.Run(t, "cache", "rebuild", "alice", "--json")
	if ran.Decode(t, &rebuilt); ran.Code != 0 || !rebuilt.Skipped {
		t.Errorf("cache rebuild ended with %d and wrote %s, want that there is no cache", ran.Code, ran.Stdout)
	}

	enginetest.Eventually(t, "the database has the mark of ws", func() bool {
		return slices.Equal(alice.Column(t, `SELECT acknowledged FROM event_groups WHERE name = 'ws'`), []string{"1"})
	})
	a.Stop(t)
	a.Start(t)
	events = openStandIn(t, a)
	enginetest.Eventually(t, "the group ws is where it was", func() bool { return hasGroupAt(t, events, alice, "ws", 1) })
	tail()
	if got := session.Ask(t, http.MethodGet, "/api/feed", nil); got.Status != http.StatusUnauthorized {
		t.Errorf("a session from before the restart is answered %d, want 401", got.Status)
	}
}
