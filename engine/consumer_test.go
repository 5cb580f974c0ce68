package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/event/consumer"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A program reads alice's events in a consumer group. It has the access that user redis-acl gives.
// It handles each post once, even when Redis loses the group and the engine is killed.
func TestAConsumerHandlesEachPostOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := enginetest.Start(t, "LIGHTWEB_REDIS_URL="+server.URL())
	alice := a.CreateUser(t, "alice")
	keys, err := keyspace.Open(keyspace.Config{CacheURL: applyRedisAccess(t, a, server, "alice"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	name, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	handled, want := map[string]int{}, map[string]int{}
	c := consumer.New(consumer.Config{Events: keys.Events, User: name, Group: "llm", Name: "llm-1", Log: slog.New(slog.NewTextHandler(t.Output(), nil))},
		func(_ context.Context, e event.Event) error {
			var p struct{ ActivityURI string }
			if err := json.Unmarshal(e.Payload, &p); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if e.Type == "create.sent" {
				handled[p.ActivityURI]++
			}
			return nil
		})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the consumer ended with %v", err)
		}
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
	})

	postAndWait := func(after string) {
		t.Helper()
		for range 3 {
			create, _ := alice.Post(t, map[string]any{"content": "hello"})
			want[create] = 1
		}
		enginetest.Eventually(t, "each post is handled once "+after, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return maps.Equal(handled, want)
		})
	}
	postAndWait("at the start")
	server.Do("FLUSHALL")
	postAndWait("after Redis was emptied")
	server.Do("XGROUP", "DESTROY", "alice:events", "llm")
	postAndWait("after the group was lost")
	a.Kill()
	a.Start(t)
	postAndWait("after the engine was killed")
}
