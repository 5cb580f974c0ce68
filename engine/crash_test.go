package engine_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The size of one round of the crash test.
const (
	crashActivities = 160
	crashSenders    = 8
	crashUsers      = 5
	crashAuthors    = 4
)

// victims lists the processes that the test kills: the engine, PostgreSQL, or both.
var victims = []struct {
	name             string
	engine, postgres bool
}{{"the engine", true, false}, {"PostgreSQL", false, true}, {"both", true, true}}

// The engine, PostgreSQL or both are killed at random moments. An activity that was answered 202
// is in the database of each recipient exactly once, with its side effects and its events. No
// other activity is there. LIGHTWEB_CRASH_ROUNDS sets the number of kills (default 5).
// LIGHTWEB_CRASH_SEED repeats a run, as far as other processes allow it.
func TestNothingAcceptedIsLostOrDoubledWhateverIsKilled(t *testing.T) {
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("LIGHTWEB_CRASH_ROUNDS"), "5"))
	if err != nil {
		t.Fatal("LIGHTWEB_CRASH_ROUNDS: ", err)
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("LIGHTWEB_CRASH_SEED"), strconv.FormatUint(rand.Uint64(), 10)), 10, 64)
	if err != nil {
		t.Fatal("LIGHTWEB_CRASH_SEED: ", err)
	}
	t.Logf("LIGHTWEB_CRASH_SEED=%d", seed)
	c := newCrash(t, rand.New(rand.NewPCG(seed, 0)), enginetest.Start(t, "LIGHTWEB_LOG_LEVEL=info"))
	for n := range rounds {
		victim := victims[n%len(victims)]
		c.round(t, n, func(func()) { c.kill(t, victim.engine, victim.postgres) })
		if t.Failed() {
			t.Fatalf("round %d, in which %s was killed, is the first to fail", n+1, victim.name)
		}
	}
	t.Logf("%d rounds; %d activities accepted, %d requests refused or unanswered and made again", rounds, c.accepted.Load(), c.again.Load())
}

// crash is an engine whose users follow the authors on a peer.
type crash struct {
	random  *rand.Rand
	home    *enginetest.Instance
	peer    *peertest.Peer
	authors []*peertest.Actor
	users   []*enginetest.User
	posts   []string      // one post of each user, which Likes are about
	seen    []int64       // the last event of each user that the test has checked
	pauses  bool          // whether nothing is sent while something is broken
	within  int           // the break happens after at most this many activities of a round
	padding int           // bytes of content that each post has in addition
	rest    time.Duration // the pause before a request is repeated

	accepted, again, requests atomic.Int64
}

func newCrash(t *testing.T, random *rand.Rand, home *enginetest.Instance) *crash {
	t.Helper()
	return newCrashOf(t, random, home, crashUsers)
}

// newCrashOf is like newCrash, with another number of users.
func newCrashOf(t *testing.T, random *rand.Rand, home *enginetest.Instance, users int) *crash {
	t.Helper()
	c := &crash{random: random, home: home, peer: peertest.New(t, "127.0.0.2"), within: crashActivities - 1, rest: 20 * time.Millisecond}
	for n := range crashAuthors {
		c.authors = append(c.authors, c.peer.Actor(fmt.Sprint("/author", n)))
	}
	for n := range users {
		u := c.home.CreateUser(t, fmt.Sprint("reader", n))
		_, post := u.Post(t, map[string]any{"content": "like me"})
		c.users, c.posts, c.seen = append(c.users, u), append(c.posts, post), append(c.seen, 0)
		for _, a := range c.authors {
			follow := u.Do(t, "Follow", map[string]any{"actorUri": string(a.ID)}).ActivityID
			accept := vocab.Doc{"id": fmt.Sprint(a.ID, "/accepts/", n), "type": "Accept", "actor": string(a.ID), "object": follow}
			if status := c.post(t, a, u.ID+"/inbox", accept.JSON()); status != http.StatusAccepted {
				t.Fatalf("the Accept was answered %d", status)
			}
		}
	}
	c.home.DB(t) // keeps PostgreSQL running for the checks of the test
	return c
}

// sending is an activity that an actor sends until it is accepted, with its expected effects.
type sending struct {
	actor   *peertest.Actor // if nil, a user of the instance is the actor
	id      string
	body    []byte
	inboxes []string // the activity is posted to each inbox at the same time
	readers []int    // the numbers of the users who must have it
	event   string
	effect  string // a query that counts its effects on a reader; empty if it has none
	args    []any
}

// round sends many activities and calls breaks() meanwhile. Afterwards it checks the data of all
// users. If c.pauses is set, nothing is sent from the break until goOn() is called.
func (c *crash) round(t *testing.T, n int, breaks func(goOn func())) {
	all := make([]sending, crashActivities)
	for k := range all {
		all[k] = c.invent(t, n, k)
	}
	var accepted atomic.Int64
	kill := int64(1 + c.random.IntN(c.within))
	due, going := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(going) })
	if !c.pauses {
		goOn()
	}
	next := make(chan sending)
	var senders sync.WaitGroup
	for range crashSenders {
		senders.Go(func() {
			for s := range next {
				c.send(t, s)
				if accepted.Add(1) == kill {
					close(due)
				}
			}
		})
	}
	senders.Go(func() {
		defer close(next)
		for k, s := range all {
			if int64(k) == kill {
				<-going
			}
			next <- s
		}
	})
	<-due
	breaks(goOn)
	senders.Wait()
	c.accepted.Add(accepted.Load())
	c.look(t, n, all).report(t)
}

func (c *crash) kill(t *testing.T, engine, postgres bool) {
	t.Helper()
	pid := c.home.Postmaster()
	if postgres && pid > 0 {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if engine {
		c.home.Kill()
		c.home.Start(t)
	}
	if postgres { // the checks below read the databases
		enginetest.Eventually(t, "another PostgreSQL", func() bool {
			now := c.home.Postmaster()
			return now > 0 && now != pid && c.home.Ready(t) == http.StatusOK
		})
	}
}

// invent makes up an activity. Most are public posts, which all users read. The others are for one
// user.
func (c *crash) invent(t *testing.T, round, k int) sending {
	name := fmt.Sprint(round, "-", k)
	a := c.authors[c.random.IntN(len(c.authors))]
	reader := c.random.IntN(len(c.users))
	u := c.users[reader]
	own, shared := u.ID+"/inbox", c.home.URL+"/inbox"
	one := sending{actor: a, id: fmt.Sprint(a.ID, "/activities/", name), inboxes: []string{own}, readers: []int{reader}}
	doc := vocab.Doc{"id": one.id, "actor": string(a.ID), "to": []any{u.ID}}
	switch k % 8 {
	case 5: // a private post, sent to both inboxes
		one.inboxes = append(one.inboxes, shared)
		doc["type"], doc["object"] = "Create", c.note(a, name, u.ID)
		one.event, one.effect, one.args = "create.received", `SELECT count(*) FROM feed WHERE activity_uri = $1`, []any{one.id}
	case 6:
		doc["type"], doc["object"] = "Like", c.posts[reader]
		one.event, one.effect, one.args = "like.received", `SELECT count(*) FROM reactions WHERE object_uri = $1 AND actor_uri = $2`, []any{c.posts[reader], string(a.ID)}
	case 7: // a new actor follows the user, and the user's server answers once
		one.actor = c.peer.Actor("/follower" + name)
		one.id = fmt.Sprint(one.actor.ID, "/follows/1")
		doc = vocab.Doc{"id": one.id, "actor": string(one.actor.ID), "type": "Follow", "object": u.ID}
		one.event, one.args = "follow.received", []any{one.id, string(one.actor.ID)}
		one.effect = `SELECT count(*) FROM relationships r JOIN delivery_jobs j ON j.object_uri = $1 WHERE r.actor_uri = $2 AND r.type = 'follower' AND j.type = 'Accept'`
	default:
		doc["to"] = []any{string(vocab.Public)}
		doc["type"], doc["object"] = "Create", c.note(a, name, string(vocab.Public))
		one.inboxes, one.readers = []string{shared}, []int{0, 1, 2, 3, 4}
		one.event, one.effect, one.args = "create.received", `SELECT count(*) FROM feed WHERE activity_uri = $1`, []any{one.id}
	}
	one.body = doc.JSON()
	return one
}

func (c *crash) note(a *peertest.Actor, name, to string) vocab.Doc {
	padding := make([]byte, c.padding)
	for n := range padding {
		padding[n] = byte('a' + c.random.IntN(26)) // the disk would not fill up with content that can be compressed
	}
	return vocab.Doc{"id": fmt.Sprint(a.ID, "/notes/", name), "type": "Note", "attributedTo": string(a.ID), "content": "number " + name + string(padding), "to": []any{to}}
}

// send posts an activity to its inboxes. It repeats each request until the activity is accepted,
// as other servers do.
func (c *crash) send(t *testing.T, s sending) {
	var all sync.WaitGroup
	for _, inbox := range s.inboxes {
		all.Go(func() {
			tick := time.NewTicker(c.rest)
			defer tick.Stop()
			limit := time.NewTimer(2 * time.Minute)
			defer limit.Stop()
			for {
				status := c.post(t, s.actor, inbox, s.body)
				switch status {
				case http.StatusAccepted:
					return
				case 0, http.StatusServiceUnavailable:
					c.again.Add(1)
				default:
					t.Errorf("%s was answered %d, want 202, or 503 while something is down", s.id, status)
					return
				}
				select {
				case <-tick.C:
				case <-limit.C:
					t.Errorf("%s was never accepted", s.id)
					return
				}
			}
		})
	}
	all.Wait()
}

// crashClient keeps no connections, because the next request may go to another process of the
// engine.
var crashClient = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

// post sends a signed request and returns the status, or 0 if there was no answer.
func (c *crash) post(t *testing.T, a *peertest.Actor, inbox string, body []byte) int {
	defer c.requests.Add(1)
	status, _ := postBy(t, crashClient, a, inbox, body) // the engine may have been killed
	return status
}

// postBy sends a request that its actor has signed, and returns the status. It signs with Ed25519,
// because signing with RSA costs more than the engine needs to receive the request. A 503 must say
// when to come again.
func postBy(t *testing.T, client *http.Client, a *peertest.Actor, inbox string, body []byte) (status int, err error) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, inbox, bytes.NewReader(body))
	if err == nil {
		r.Header.Set("Content-Type", vocab.ActivityJSON)
		err = signature.Sign(r, body, a.Keys.Ed25519, signature.RFC9421, time.Now())
	}
	if err != nil {
		t.Error(err)
		return 0, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close() // only the status and the header matter
	if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
		t.Error("a 503 does not say when to come again")
	}
	return resp.StatusCode, nil
}

// look checks that each reader has exactly the activities that were sent to the reader. It returns
// how often it found each of their events and effects.
func (c *crash) look(t *testing.T, round int, all []sending) *tally {
	t.Helper()
	enginetest.Eventually(t, "the journal is empty", func() bool {
		var left int
		err := c.home.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT count(*) FROM intake`).Scan(&left)
		return err == nil && left == 0
	})
	found := &tally{}
	for reader, u := range c.users {
		told := map[string]int{}
		for _, e := range u.Events(t, c.seen[reader]) {
			var p struct{ ActivityURI string }
			enginetest.Answer{Body: e.Payload}.Decode(t, &p)
			told[e.Type+" "+p.ActivityURI]++
			c.seen[reader] = e.Seq
		}
		var want []string
		for _, s := range all {
			if !slices.Contains(s.readers, reader) {
				continue
			}
			if s.actor != nil {
				want = append(want, s.id)
			}
			found.once(told[s.event+" "+s.id], u.Name+" was told of "+s.id)
			effects, err := strconv.Atoi(strings.Join(u.Column(t, s.effect, s.args...), " "))
			if err != nil {
				t.Errorf("%s: %v", s.effect, err)
			}
			found.once(effects, s.id+" had an effect on "+u.Name)
		}
		got := u.Column(t, `SELECT uri FROM activities WHERE direction = 'inbound' AND (uri LIKE '%/activities/' || $1::text || '-%' OR uri LIKE '%/follower' || $1 || '-%')`, strconv.Itoa(round))
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s holds %d activities of the round, want the %d that were accepted for it", u.Name, len(got), len(want))
		}
		if n := u.Column(t, `SELECT count(*) FROM poison`); !slices.Equal(n, []string{"0"}) {
			t.Errorf("%s has %s activities set aside", u.Name, n)
		}
	}
	return found
}
