package keyspace_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, c keyspace.Config) *keyspace.Keyspace {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	k, err := keyspace.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func user(t *testing.T, name string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(name)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func entry(ms, seq uint64, text string) keyspace.Entry {
	return keyspace.Entry{ID: keyspace.ID{Milli: ms, Seq: seq}, Fields: []string{"text", text}}
}

// servers lists the kinds of servers that a URL may lead to.
var servers = []struct {
	name string
	url  func(*testing.T) string
}{
	{"one server", func(t *testing.T) string { return redistest.Start(t).URL() }},
	{"Sentinel", func(t *testing.T) string { url, _, _ := redistest.Sentinel(t); return url }},
	{"cluster", func(t *testing.T) string { url, _ := redistest.Cluster(t); return url }},
}

// Streams behave alike on one server, on Sentinel and on a cluster: the test appends to them,
// reads them and waits for entries.
func TestStreams(t *testing.T) {
	t.Parallel()
	for _, tt := range servers {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := open(t, keyspace.Config{CacheURL: tt.url(t)})
			redistest.Eventually(t, "Redis answers", func() bool { return k.Events.Ask(t.Context()) == nil })
			alice, bob := k.Events.Of(user(t, "alice")), k.Events.Of(user(t, "bob"))
			append1 := func(after keyspace.ID, entries ...keyspace.Entry) keyspace.ID {
				t.Helper()
				last, err := alice.Append(t.Context(), "events", after, 100, entries)
				if err != nil {
					t.Fatal(err)
				}
				return last
			}
			first := append1(keyspace.ID{}, entry(5, 1, "a"), entry(5, 3, "b"))
			if first != (keyspace.ID{Milli: 5, Seq: 3}) {
				t.Errorf("the last id is %v, want 5-3", first)
			}
			if last := append1(keyspace.ID{Milli: 5, Seq: 2}, entry(9, 9, "no")); last != first {
				t.Errorf("appending behind another id = %v, want %v and nothing added", last, first)
			}
			append1(first, entry(6, 4, "c"))
			ids, err := k.Events.LastIDs(t.Context(), []vocab.Username{user(t, "alice"), user(t, "bob")}, "events")
			if err != nil || ids[0] != (keyspace.ID{Milli: 6, Seq: 4}) || ids[1] != (keyspace.ID{}) {
				t.Errorf("LastIDs = %v, %v", ids, err)
			}
			if last, err := bob.LastID(t.Context(), "events"); err != nil || last != (keyspace.ID{}) {
				t.Errorf("the last id of no stream = %v, %v", last, err)
			}
			texts := func(entries []keyspace.Entry, err error) string {
				t.Helper()
				var all []string
				for _, e := range entries {
					all = append(all, e.Field("text"))
				}
				if err != nil {
					t.Error(err)
				}
				return strings.Join(all, "")
			}
			if got := texts(alice.Range(t.Context(), "events", keyspace.ID{Milli: 5, Seq: 1}, 10)); got != "bc" {
				t.Errorf("Range after the first = %q", got)
			}
			if got := texts(alice.NewestBefore(t.Context(), "events", keyspace.ID{}, 2)); got != "bc" {
				t.Errorf("the newest two = %q", got)
			}
			if got := texts(alice.Wait(t.Context(), "events", keyspace.ID{Milli: 5, Seq: 3}, 10, time.Second)); got != "c" {
				t.Errorf("Wait = %q", got)
			}
			if got := texts(bob.Wait(t.Context(), "events", keyspace.ID{}, 10, 10*time.Millisecond)); got != "" {
				t.Errorf("Wait for nothing = %q", got)
			}
			if err := alice.Forget(t.Context(), "events"); err != nil {
				t.Error(err)
			}
			if last, err := alice.LastID(t.Context(), "events"); err != nil || last != (keyspace.ID{}) {
				t.Errorf("the last id of a forgotten stream = %v, %v", last, err)
			}
		})
	}
}

func TestAServerThatDoesNotAnswerCostsLittleTime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	k := open(t, keyspace.Config{CacheURL: server.URL()})
	if err := k.Cache.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	for n := range 3 {
		began := time.Now()
		if err := k.Cache.Ask(t.Context()); !keyspace.IsAway(err) || fault.KindOf(err) != fault.Unavailable || time.Since(began) > 500*time.Millisecond {
			t.Errorf("call %d = %v after %v", n, err, time.Since(began))
		}
	}
	if k.Cache.IsUp() {
		t.Error("the server counts as up")
	}
	began := time.Now()
	for range 1000 {
		if err := k.Cache.Ask(t.Context()); !keyspace.IsAway(err) {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a thousand calls took %v", took)
	}
	server.Resume()
	redistest.Eventually(t, "calls are made again", func() bool { return k.Cache.Ask(t.Context()) == nil && k.Cache.IsUp() })
}

// A server cannot write and refuses a command. The refusal counts as a temporary failure. The
// server does not count as away, and the engine is not at fault.
func TestARefusalOfAServerThatCannotWriteIsPassing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	k := open(t, keyspace.Config{CacheURL: server.URL()})
	alice := k.Events.Of(user(t, "alice"))
	text := []keyspace.Text{{Key: "session", Value: "a", While: time.Hour}}
	if err := alice.SetTexts(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	server.FailWrites()
	for name, call := range map[string]func() error{
		"a text":        func() error { return alice.SetTexts(t.Context(), text) },
		"a use":         func() error { _, err := alice.Use(t.Context(), "session", time.Hour); return err },
		"a transaction": func() error { _, err := alice.Delist(t.Context(), []string{"all"}, "session"); return err },
		"a script of the engine": func() error {
			_, err := alice.Append(t.Context(), "events", keyspace.ID{}, 10, []keyspace.Entry{entry(1, 1, "a")})
			return err
		},
	} {
		if err := call(); fault.KindOf(err) != fault.Unavailable || keyspace.IsAway(err) || !keyspace.IsRefusal(err) {
			t.Errorf("%s: %v, want a refusal that passes", name, err)
		}
	}
	if texts, err := alice.Texts(t.Context(), []string{"session"}); err != nil || texts[0] != "a" || !k.Events.IsUp() {
		t.Errorf("reading = %v, %v, want the text, and a server that is up", texts, err)
	}
}

func TestSentinelsFailoverIsFollowed(t *testing.T) {
	t.Parallel()
	url, primary, _ := redistest.Sentinel(t)
	k := open(t, keyspace.Config{CacheURL: url})
	alice := k.Events.Of(user(t, "alice"))
	if _, err := alice.Append(t.Context(), "events", keyspace.ID{}, 10, []keyspace.Entry{entry(1, 1, "a")}); err != nil {
		t.Fatal(err)
	}
	primary.Kill()
	redistest.Eventually(t, "the replica takes entries", func() bool {
		last, err := alice.LastID(t.Context(), "events")
		if err == nil {
			_, err = alice.Append(t.Context(), "events", last, 10, []keyspace.Entry{entry(2, last.Seq+1, "b")})
		}
		return err == nil
	})
}

func TestPoliciesThatLoseEventsAreToldOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		// memory, cache and events are policies; if events is empty, there is only one
		// server
		name, memory, cache, events string
		want                        string
	}{
		{"both in one that evicts all", "10mb", "allkeys-lfu", "", "maxmemory-policy volatile-lfu"},
		{"both in one that evicts keys with an end", "10mb", "volatile-lfu", "", ""},
		{"both in one that evicts nothing", "10mb", "noeviction", "", "set maxmemory-policy volatile-lfu on the server of redis.url"},
		{"both in one without a limit", "0", "noeviction", "", "set maxmemory and maxmemory-policy volatile-lfu on the server of redis.url"},
		{"each in its own", "10mb", "allkeys-lfu", "noeviction", ""},
		{"events in one that evicts", "10mb", "allkeys-lfu", "allkeys-lru", "set maxmemory-policy noeviction on the server of redis.events_url"},
		{"a cache that does not evict", "10mb", "noeviction", "noeviction", "set maxmemory-policy allkeys-lfu on the server of redis.url"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			c := keyspace.Config{CacheURL: redistest.Start(t, "--maxmemory", tt.memory, "--maxmemory-policy", tt.cache).URL(),
				Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: prometheus.NewRegistry()}
			if tt.events != "" {
				c.EventsURL = redistest.Start(t, "--maxmemory", tt.memory, "--maxmemory-policy", tt.events).URL()
			}
			k := open(t, c)
			k.Look(t.Context())
			k.Look(t.Context())
			if tt.want == "" && log.String() != "" || strings.Count(log.String(), "level=WARN") > 1 || !strings.Contains(log.String(), tt.want) {
				t.Errorf("it warned %q, want %q once", log.String(), tt.want)
			}
		})
	}
}

func TestURLsAreChecked(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://127.0.0.1:6379":                     "",
		"redis://alice:secret@h:6379/3":              "",
		"rediss://h:6379":                            "",
		"unix:///run/redis/redis.sock":               "",
		"redis://h:26379?master_name=m&addr=i:26379": "",
		"redis://h:7000?cluster=true&addr=i:7000":    "",
		"http://secret@h":                            "not one of",
		"redis://h:6379/?secret=1":                   "not known",
		"redis://h:7000?addr=i:7000":                 "what they are",
		"redis://h:7000/2?cluster=true":              "cluster",
		"unix:///run/redis.sock?cluster=true":        "socket",
		"redis://:secret@h:port":                     "not a URL",
		"://secret":                                  "not a URL",
	} {
		err := keyspace.CheckURL(url)
		if want == "" && err != nil || want != "" && (fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), want)) {
			t.Errorf("CheckURL(%q) = %v, want %q", url, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "secret@") || errors.Unwrap(err) != nil) {
			t.Errorf("CheckURL(%q) repeats the address: %v", url, err)
		}
	}
}
