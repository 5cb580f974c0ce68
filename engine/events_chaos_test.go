package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

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

// disordered returns how many events came after one with a higher number, or with the same one.
func (s *sights) disordered() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := uint64(0)
	for _, number := range s.numbers {
		if number <= last {
			n++
		}
		last = max(last, number)
	}
	return n
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

// disturbance is something that happens to Redis or to the engine. The function begin begins it,
// and returns the function that ends it.
type disturbance struct {
	name  string
	begin func(t *testing.T, c *chaos) (end func())
}

func ended() {} // ends a disturbance that is over when it has begun

var (
	disturbances = []disturbance{
		{"Redis killed", func(_ *testing.T, c *chaos) func() {
			c.redis.Kill()
			return c.redis.Restart
		}},
		{"Redis emptied", func(_ *testing.T, c *chaos) func() {
			c.redis.Do("FLUSHALL")
			return ended
		}},
		{"Redis paused", func(_ *testing.T, c *chaos) func() {
			c.redis.Pause()
			return c.redis.Resume
		}},
		{"Redis evicting", func(_ *testing.T, c *chaos) func() {
			c.redis.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
			c.redis.Do("CONFIG", "SET", "maxmemory", "1mb") // an empty Redis needs more, so Redis evicts every key
			return func() { c.redis.Do("CONFIG", "SET", "maxmemory", "0") }
		}},
	}
	engineKilled = disturbance{"engine killed", func(t *testing.T, c *chaos) func() {
		c.kill(t, true, false)
		return ended
	}}
)

// chaosRounds is the number of disturbances.
const chaosRounds = 20

// trouble is the disturbance of one round. It begins when so many activities of the round were
// accepted, and ends when so many more were.
type trouble struct {
	disturbance
	after, lasts int
}

// drawTroubles draws the troubles of all rounds. Every disturbance of Redis occurs, and the engine
// is killed twice. The parameter batch is the number of activities of a round.
func drawTroubles(random *rand.Rand, batch int) []trouble {
	drawn := append([]disturbance{engineKilled, engineKilled}, disturbances...)
	for len(drawn) < chaosRounds {
		drawn = append(drawn, disturbances[random.IntN(len(disturbances))])
	}
	random.Shuffle(len(drawn), func(i, k int) { drawn[i], drawn[k] = drawn[k], drawn[i] })
	all := make([]trouble, len(drawn))
	for n, d := range drawn {
		after := random.IntN(batch)
		all[n] = trouble{d, after, random.IntN(batch - after)}
	}
	return all
}

// chaos is an engine and its Redis, which are disturbed while activities arrive.
type chaos struct {
	*crash
	redis    *redistest.Server
	accepted [][]string // the activities that were sent to each user
	told     []*sights  // of each user
}

// While activities arrive, Redis is killed, emptied, paused and made to evict keys, and the engine
// is killed twice, in an order and at moments that are drawn. In the end a consumer of the group
// llm has received every accepted activity, in the order of the event numbers.
// LIGHTWEB_CHAOS_ACTIVITIES sets the number of activities (default 400). LIGHTWEB_CHAOS_SEED
// repeats a run, as far as other processes allow it.
func TestAConsumerIsHandedEverythingWhateverBecomesOfRedis(t *testing.T) {
	t.Parallel()
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("LIGHTWEB_CHAOS_SEED"), strconv.FormatUint(rand.Uint64(), 10)), 10, 64)
	if err != nil {
		t.Fatal("LIGHTWEB_CHAOS_SEED: ", err)
	}
	t.Logf("LIGHTWEB_CHAOS_SEED=%d", seed)
	batch := max(amount(t, "LIGHTWEB_CHAOS_ACTIVITIES", "400")/chaosRounds, 1)
	random := rand.New(rand.NewPCG(seed, 0))
	troubles := drawTroubles(random, batch)
	redis := redistest.Start(t)
	c := &chaos{crash: newCrashOf(t, random, enginetest.Start(t, "LIGHTWEB_REDIS_URL="+redis.URL(), "LIGHTWEB_LOG_LEVEL=info"), 20), redis: redis}
	c.accepted = make([][]string, len(c.users))
	end := c.consume(t)
	began := time.Now()
	for n, one := range troubles {
		c.disturbRound(t, n, batch, one)
	}
	sent := time.Since(began)
	for n, s := range c.told {
		enginetest.Eventually(t, fmt.Sprint("the consumer of reader ", n, " was handed everything"), func() bool { return s.missing(c.accepted[n]) == 0 })
	}
	t.Logf("%d activities accepted within %s, the last one handed over after %s, %d requests made again, none lost",
		batch*chaosRounds, sent.Round(time.Second), time.Since(began).Round(time.Second), c.again.Load())
	end()
	wantEveryDisturbance(t, troubles)
	for n, s := range c.told {
		if wrong := s.disordered(); wrong > 0 {
			t.Errorf("reader %d was handed %d events out of order or twice: %v", n, wrong, s.numbers)
		}
	}
}

// wantEveryDisturbance fails the test unless every disturbance occurred, and the engine was killed
// twice.
func wantEveryDisturbance(t *testing.T, troubles []trouble) {
	t.Helper()
	struck := map[string]int{}
	for _, one := range troubles {
		struck[one.name]++
	}
	t.Logf("disturbances: %v", struck)
	if len(struck) != len(disturbances)+1 || struck[engineKilled.name] != 2 {
		t.Errorf("there was %v, want every disturbance, and the engine killed twice", struck)
	}
}

// consume starts a consumer of the group llm for each user. The function end ends them.
func (c *chaos) consume(t *testing.T) (end func()) {
	k, err := keyspace.Open(keyspace.Config{CacheURL: c.redis.URL(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var consumers sync.WaitGroup
	for _, u := range c.users {
		name, err := vocab.ParseUsername(u.Name)
		if err != nil {
			t.Fatal(err)
		}
		told := &sights{seen: map[string]bool{}}
		c.told = append(c.told, told)
		one := consumer.New(consumer.Config{Events: k.Events, User: name, Group: "llm", Name: "chaos", Log: slog.New(slog.DiscardHandler)}, told.handle)
		consumers.Go(func() {
			if err := one.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the consumer of %s ended: %v", u.Name, err)
			}
		})
	}
	return func() {
		cancel()
		consumers.Wait()
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

// disturbRound sends the activities of a round, from four authors at once, with trouble meanwhile.
func (c *chaos) disturbRound(t *testing.T, round, batch int, one trouble) {
	arrived := make(chan struct{}, batch) // has an element for each accepted activity
	var senders sync.WaitGroup
	for side := range crashAuthors {
		var all []sending
		for k := side; k < batch; k += crashAuthors {
			user := k % len(c.users)
			s := c.chaosNote(side, user, fmt.Sprintf("chaos-%d-%d", round, k))
			c.accepted[user] = append(c.accepted[user], s.id)
			all = append(all, s)
		}
		senders.Go(func() {
			for _, s := range all {
				c.send(t, s)
				arrived <- struct{}{}
			}
		})
	}
	await := func(n int) {
		for range n {
			<-arrived
		}
	}
	await(one.after)
	end := one.begin(t, c)
	await(one.lasts)
	end()
	senders.Wait()
}

// chaosNote returns a post of an author to one user.
func (c *crash) chaosNote(author, user int, name string) sending {
	a := c.authors[author]
	one := sending{actor: a, id: fmt.Sprint(a.ID, "/activities/", name), inboxes: []string{c.users[user].ID + "/inbox"}, readers: []int{user}}
	doc := vocab.Doc{"id": one.id, "type": "Create", "actor": string(a.ID), "to": []any{c.users[user].ID}, "object": c.note(a, name, c.users[user].ID)}
	one.body = doc.JSON()
	return one
}
