package engine_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The size of one round of the test. Every post goes to a follower on each host.
const (
	senderHosts   = 50
	senderAuthors = 5
	senderPosts   = 100
	senderKills   = 3
)

// The sender is killed at random moments. A post that was answered 201 reaches every inbox under
// one id and with one key. A request for a post without an answer is repeated, and the post then
// exists once. LIGHTWEB_CRASH_DELIVERY_ROUNDS sets the number of rounds of 5,000 deliveries
// (default 3). LIGHTWEB_CRASH_SEED sets the random moments.
func TestNothingOwedIsLostHoweverOftenTheSenderIsKilled(t *testing.T) {
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("LIGHTWEB_CRASH_DELIVERY_ROUNDS"), "3"))
	if err != nil {
		t.Fatal("LIGHTWEB_CRASH_DELIVERY_ROUNDS: ", err)
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("LIGHTWEB_CRASH_SEED"), strconv.FormatUint(rand.Uint64(), 10)), 10, 64)
	if err != nil {
		t.Fatal("LIGHTWEB_CRASH_SEED: ", err)
	}
	t.Logf("LIGHTWEB_CRASH_SEED=%d", seed)
	c := newSenderCrash(t, rand.New(rand.NewPCG(seed, 0)))
	for n := range rounds {
		c.round(t, n)
		if t.Failed() {
			t.Fatalf("round %d is the first to fail", n+1)
		}
	}
	t.Logf("%d rounds, the sender was killed %d times; %d deliveries, %d of them more than once, %d requests for a post made again",
		rounds, c.kills, len(c.taken), c.received.Load()-int64(len(c.taken)), c.again.Load())
}

// senderCrash is an engine whose users have one follower on each of many hosts.
type senderCrash struct {
	random   *rand.Rand
	home     *enginetest.Instance
	authors  []*enginetest.User
	inboxes  []string
	kills    int
	again    atomic.Int64 // how often a request for a post without an answer was repeated
	received atomic.Int64

	mu      sync.Mutex
	taken   map[owed]taken // the deliveries that the hosts accepted, each once
	strange []string       // deliveries that were different when they were repeated
}

// owed identifies a delivery by its inbox and activity.
type owed struct{ inbox, activity string }

type taken struct{ body, key string }

func newSenderCrash(t *testing.T, random *rand.Rand) *senderCrash {
	c := &senderCrash{random: random, home: enginetest.Start(t, "LIGHTWEB_LOG_LEVEL=info"), taken: map[owed]taken{}}
	for n := range senderAuthors {
		c.authors = append(c.authors, c.home.CreateUser(t, fmt.Sprint("author", n)))
	}
	for range senderHosts {
		p := peertest.New(t, "127.0.0.2")
		reader := p.Actor("/users/reader")
		// The host says that it verifies Ed25519. With RSA, signing would cost more than the rest
		// of the test.
		reader.Doc["generator"] = vocab.Doc{"type": "Application", "implements": vocab.Implements()}
		reader.Show()
		inbox := string(reader.ID) + "/inbox"
		c.inboxes = append(c.inboxes, inbox)
		p.Handle("/users/reader/inbox", func(w http.ResponseWriter, r *http.Request) { c.take(w, r, inbox) })
		for n, a := range c.authors {
			follow := vocab.Doc{"id": fmt.Sprint(reader.ID, "/follows/", n), "type": "Follow", "actor": string(reader.ID), "object": a.ID}
			resp, err := crashClient.Do(peertest.Forgery{URL: a.ID + "/inbox", Body: string(follow.JSON()), Key: reader.Keys.RSA, Dialect: signature.RFC9421}.Request(t))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close() // only the status matters
			if resp.StatusCode != http.StatusAccepted {
				t.Fatalf("the Follow was answered %d", resp.StatusCode)
			}
		}
	}
	for _, a := range c.authors {
		enginetest.Eventually(t, "everybody follows "+a.Name, func() bool {
			return slices.Equal(a.Column(t, `SELECT count(*) FROM relationships WHERE type = 'follower' AND status = 'accepted'`), []string{fmt.Sprint(senderHosts)})
		})
	}
	c.settled(t)
	clear(c.taken) // forgets the Accepts that have arrived
	c.received.Store(0)
	return c
}

// take is the handler of a host's inbox. It stores each delivery once, and notes a delivery that
// is different when it is repeated.
func (c *senderCrash) take(w http.ResponseWriter, r *http.Request, inbox string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	a, err := vocab.ParseActivity(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	got := taken{string(body), r.Header.Get("Idempotency-Key")}
	c.mu.Lock()
	what := owed{inbox, string(a.ID)}
	if before, known := c.taken[what]; known && before != got {
		c.strange = append(c.strange, fmt.Sprintf("%s at %s: %v, and before %v", what.activity, inbox, got, before))
	}
	c.taken[what] = got
	c.mu.Unlock()
	c.received.Add(1)
	w.WriteHeader(http.StatusAccepted)
}

// round lets users post, and kills the sender meanwhile. Then it checks that every host has every
// post exactly once.
func (c *senderCrash) round(t *testing.T, n int) {
	before, base := len(c.taken), c.received.Load()
	at := make([]int64, senderKills) // the sender is killed when so many deliveries have arrived
	for k := range at {
		at[k] = base + int64(c.random.IntN(senderPosts*senderHosts*9/10))
	}
	slices.Sort(at)
	next, ids := make(chan int), make([]string, senderPosts)
	var senders sync.WaitGroup
	for range crashSenders {
		senders.Go(func() {
			for k := range next {
				ids[k] = c.post(t, c.authors[k%senderAuthors], fmt.Sprint(n, "-", k))
			}
		})
	}
	senders.Go(func() {
		defer close(next)
		for k := range ids {
			next <- k
		}
	})
	for _, k := range at {
		enginetest.Eventually(t, "deliveries arrive", func() bool { return c.received.Load() >= k })
		c.kill(t)
	}
	senders.Wait()
	c.settled(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.strange {
		t.Error("delivered in two ways: ", s)
	}
	for _, inbox := range c.inboxes {
		for _, id := range ids {
			if c.taken[owed{inbox, id}].key == "" {
				t.Errorf("%s never reached %s, or without a key", id, inbox)
			}
		}
	}
	if got, want := len(c.taken)-before, senderPosts*senderHosts; got != want {
		t.Errorf("the hosts have %d things of the round, want the %d that were asked for", got, want)
	}
}

// kill kills the sender and starts it again. In between it makes the claimed deliveries due in an
// hour, so that they are sent sooner only if the next process releases them.
func (c *senderCrash) kill(t *testing.T) {
	t.Helper()
	c.home.Kill()
	c.kills++
	for _, a := range c.authors {
		a.Column(t, `UPDATE deliveries SET next_at = now() + interval '1 hour' WHERE lease_owner IS NOT NULL AND status = 'pending'`)
	}
	c.home.Start(t)
}

// post lets an author post. It repeats the request with one key until there is an answer, and
// returns the activity's id.
func (c *senderCrash) post(t *testing.T, author *enginetest.User, name string) string {
	body := fmt.Appendf(nil, `{"action":"CreateNote","params":{"content":"number %s","visibility":"public"}}`, name)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	for {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.home.URL+"/api/activity", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return ""
		}
		r.Header = http.Header{"Authorization": {"Bearer " + author.Token}, "Content-Type": {"application/json"}, "Idempotency-Key": {name}}
		if answer, ok := answered(r); ok {
			if answer.Status != http.StatusCreated {
				t.Errorf("post %s was answered %d %s", name, answer.Status, answer.Body)
				return ""
			}
			var d enginetest.Dispatched
			answer.Decode(t, &d)
			return d.ActivityID
		}
		c.again.Add(1)
		select {
		case <-tick.C:
		case <-limit.C:
			t.Errorf("post %s was never answered", name)
			return ""
		}
	}
}

// answered sends a request. It reports whether the answer is final.
func answered(r *http.Request) (a enginetest.Answer, ok bool) {
	resp, err := crashClient.Do(r)
	if err != nil {
		return a, false
	}
	defer resp.Body.Close()
	a = enginetest.Answer{Status: resp.StatusCode, Header: resp.Header}
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		return a, false
	}
	return a, a.Status != http.StatusServiceUnavailable && a.Status != http.StatusConflict // 409: an earlier request is still running
}

// settled waits until every delivery is done. Each must have succeeded at its first attempt and
// have no lease.
func (c *senderCrash) settled(t *testing.T) {
	t.Helper()
	for _, a := range c.authors {
		enginetest.Eventually(t, "nothing is owed by "+a.Name, func() bool {
			return slices.Equal(a.Column(t, `SELECT count(*) FROM deliveries WHERE status = 'pending'`), []string{"0"})
		})
		if got := a.Column(t, `SELECT DISTINCT status || ' ' || attempts || ' ' || (lease_owner IS NULL) FROM deliveries`); !slices.Equal(got, []string{"delivered 1 true"}) {
			t.Errorf("the deliveries of %s are %q, want all delivered, at the first attempt that counts, and nobody's", a.Name, got)
		}
	}
}
