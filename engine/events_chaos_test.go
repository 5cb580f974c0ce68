package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/event/consumer"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sights holds the events that the consumer of one user received, without repeats.
type sights struct {
	mu      sync.Mutex
	numbers []uint64
	seen    map[string]bool // whether an activity has an event
}

func (s *sights) handle(_ context.Context, e event.Event) error {
	var payload struct{ ActivityURI string }
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers = append(s.numbers, e.ID.Seq)
	s.seen[payload.ActivityURI] = true
	return nil
}

// missing returns how many of the activities had no event.
func (s *sights) missing(ids []string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if !s.seen[id] {
			n++
		}
	}
	return n
}

// While activities arrive, Redis is killed, emptied, paused and made to evict keys in turn, and
// the engine is killed twice. In the end a consumer of the group llm has received every accepted
// activity, in the order of the event numbers. LIGHTWEB_CHAOS_ACTIVITIES sets the number of
// activities (default 400).
func TestAConsumerIsHandedEverythingWhateverBecomesOfRedis(t *testing.T) {
	t.Parallel()
	all := 400
	if n, err := strconv.Atoi(os.Getenv("LIGHTWEB_CHAOS_ACTIVITIES")); err == nil {
		all = n
	}
	redis := redistest.Start(t)
	c := newCrashOf(t, rand.New(rand.NewPCG(1, 2)), enginetest.Start(t, "LIGHTWEB_REDIS_URL="+redis.URL(), "LIGHTWEB_LOG_LEVEL=info"), 20)
	k, err := keyspace.Open(keyspace.Config{CacheURL: redis.URL(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var consumers sync.WaitGroup
	told := make([]*sights, len(c.users))
	for n, u := range c.users {
		told[n] = &sights{seen: map[string]bool{}}
		name, err := vocab.ParseUsername(u.Name)
		if err != nil {
			t.Fatal(err)
		}
		one := consumer.New(consumer.Config{Events: k.Events, User: name, Group: "llm", Name: "chaos", Log: slog.New(slog.DiscardHandler)}, told[n].handle)
		consumers.Go(func() {
			if err := one.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the consumer of %s ended: %v", u.Name, err)
			}
		})
	}
	accepted := c.sendUnderChaos(t, redis, all)
	for n := range c.users {
		enginetest.Eventually(t, fmt.Sprint("the consumer of reader ", n, " was handed everything"), func() bool { return told[n].missing(accepted[n]) == 0 })
	}
	end()
	consumers.Wait()
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	for n, s := range told {
		if !slices.IsSorted(s.numbers) || len(slices.Compact(slices.Clone(s.numbers))) != len(s.numbers) {
			t.Errorf("reader %d was handed events out of order or twice: %v", n, s.numbers)
		}
	}
	t.Logf("%d activities were accepted, %d requests made again", all, c.again.Load())
}

// sendUnderChaos sends activities in batches, from four authors at once. It disturbs Redis or the
// engine during each batch. It returns the activities that were sent to each user.
func (c *crash) sendUnderChaos(t *testing.T, redis *redistest.Server, all int) (accepted [][]string) {
	accepted = make([][]string, len(c.users))
	batch := all / 20
	for round := range 20 {
		var sending sync.WaitGroup
		for side := range crashAuthors {
			var ids [][2]string // each pair is a user's number and an activity
			for k := side; k < batch; k += crashAuthors {
				user := k % len(c.users)
				id := fmt.Sprintf("chaos-%d-%d", round, k)
				ids = append(ids, [2]string{strconv.Itoa(user), id})
				accepted[user] = append(accepted[user], string(c.authors[side].ID)+"/activities/"+id)
			}
			sending.Go(func() {
				for _, one := range ids {
					// the number was written above, so it is valid
					user, _ := strconv.Atoi(one[0])
					c.send(t, c.chaosNote(side, user, one[1]))
				}
			})
		}
		c.disturb(t, redis, round)
		sending.Wait()
	}
	return accepted
}

// chaosNote returns a post of an author to one user.
func (c *crash) chaosNote(author, user int, name string) sending {
	a := c.authors[author]
	one := sending{actor: a, id: fmt.Sprint(a.ID, "/activities/", name), inboxes: []string{c.users[user].ID + "/inbox"}, readers: []int{user}}
	doc := vocab.Doc{"id": one.id, "type": "Create", "actor": string(a.ID), "to": []any{c.users[user].ID}, "object": c.note(a, name, c.users[user].ID)}
	one.body = doc.JSON()
	return one
}

// disturb disturbs Redis. In two of the rounds it disturbs the engine.
func (c *crash) disturb(t *testing.T, redis *redistest.Server, round int) {
	switch {
	case round == 7 || round == 14:
		c.kill(t, true, false)
	case round%4 == 0:
		redis.Kill()
		redis.Restart()
	case round%4 == 1:
		redis.Do("FLUSHALL")
	case round%4 == 2:
		redis.Pause()
		c.post(t, c.authors[0], c.users[0].ID+"/inbox", []byte(`{}`)) // the engine refuses the request; it only takes a moment
		redis.Resume()
	default:
		redis.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
		redis.Do("CONFIG", "SET", "maxmemory", "1mb") // an empty Redis needs more, so Redis evicts every key
		redis.Do("CONFIG", "SET", "maxmemory", "0")
	}
}
