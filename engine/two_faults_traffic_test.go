package engine_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// twoFaults is an engine whose users follow each other and the authors of a peer. Each user has
// one follower on that peer and one on another peer.
type twoFaults struct {
	*crash
	out    *senderCrash
	disk   *enginetest.Disk // if nil, a disk with enough space
	isFull bool             // whether the disk is full
	isDown bool             // whether the engine is down until the disk has space

	round  int // how many pairs have begun
	made   int // how many activities this pair has
	going  sync.WaitGroup
	posted atomic.Int64 // posts that have ended, with or without an answer

	mu     sync.Mutex
	all    []sending // the activities of this pair
	leaves []leaving
}

// leaving is a post of a user that must reach its recipients.
type leaving struct{ name, id string }

func newTwoFaults(t *testing.T, random *rand.Rand, home *enginetest.Instance, disk *enginetest.Disk) *twoFaults {
	home.Start(t)
	c := &twoFaults{crash: newCrash(t, random, home), out: &senderCrash{home: home, taken: map[owed]taken{}}, disk: disk}
	c.rest = 100 * time.Millisecond
	for _, p := range []*peertest.Peer{c.peer, peertest.New(t, "127.0.0.3")} {
		watcher := p.Actor("/watcher")
		inbox := string(watcher.ID) + "/inbox"
		c.out.inboxes = append(c.out.inboxes, inbox)
		p.Handle("/watcher/inbox", func(w http.ResponseWriter, r *http.Request) { c.out.take(w, r, inbox) })
		for n, u := range c.users {
			follow := vocab.Doc{"id": fmt.Sprint(watcher.ID, "/follows/", n), "type": "Follow", "actor": string(watcher.ID), "object": u.ID}
			if status := c.post(t, watcher, u.ID+"/inbox", follow.JSON()); status != http.StatusAccepted {
				t.Fatalf("the Follow was answered %d", status)
			}
		}
	}
	for n, u := range c.users {
		befriend(t, c.users[c.friend(n)], u)
	}
	c.settle(t)
	return c
}

// friend returns the number of the user that follows a user.
func (c *twoFaults) friend(of int) int { return (of + 1) % len(c.users) }

// begin begins a pair and forgets the activities of the earlier pair.
func (c *twoFaults) begin() {
	c.round++
	c.made, c.all, c.leaves = 0, nil, nil
}

// traffic sends n activities, each in its own goroutine. Then it calls meanwhile(). It waits until
// at least n requests have ended.
func (c *twoFaults) traffic(t *testing.T, n int, meanwhile func()) {
	t.Helper()
	tries := func() int64 { return c.requests.Load() + c.posted.Load() + c.out.again.Load() }
	before := tries()
	for range n {
		c.made++
		kind := c.made % 4
		if kind == 0 {
			c.leave(t, c.made)
			continue
		}
		var chain []sending
		if kind == 1 {
			chain = c.edited(c.made)
		} else {
			chain = []sending{c.invent(t, c.round, 4+c.made*8+c.random.IntN(4))}
		}
		c.mu.Lock()
		c.all = append(c.all, chain...)
		c.mu.Unlock()
		c.going.Go(func() {
			for _, s := range chain {
				c.send(t, s)
				c.accepted.Add(1)
			}
		})
	}
	some := before + c.random.Int64N(int64(n))
	enginetest.Eventually(t, "some requests are answered, or not", func() bool { return tries() >= some })
	meanwhile()
	enginetest.Eventually(t, "requests are answered, or not", func() bool { return tries() >= before+int64(n) })
}

// edited returns a public post and two edits of it. Each is sent after the one before it was
// accepted.
func (c *twoFaults) edited(k int) (chain []sending) {
	a, began, name := c.authors[c.random.IntN(len(c.authors))], time.Now().Add(-time.Hour), fmt.Sprint(c.round, "-edited", k)
	note := c.note(a, name, string(vocab.Public))
	note["published"] = began.UTC().Format(time.RFC3339)
	for n, kind := range []string{"Create", "Update", "Update"} {
		s := sending{actor: a, id: fmt.Sprint(a.ID, "/activities/", name, "-", n), inboxes: []string{c.home.URL + "/inbox"},
			readers: []int{0, 1, 2, 3, 4}, event: strings.ToLower(kind) + ".received", effect: `SELECT count(*) FROM feed WHERE activity_uri = $1`, args: []any{fmt.Sprint(a.ID, "/activities/", name, "-0")}}
		if n > 0 {
			note["content"], note["updated"] = fmt.Sprint("version ", n), began.Add(time.Duration(n)*time.Minute).UTC().Format(time.RFC3339)
			s.effect, s.args = `SELECT count(*) FROM objects WHERE uri = $1 AND raw ->> 'content' = 'version 2'`, []any{note["id"]}
		}
		s.body = vocab.Doc{"id": s.id, "type": kind, "actor": string(a.ID), "to": []any{string(vocab.Public)}, "object": note}.JSON()
		chain = append(chain, s)
	}
	return chain
}

// leave lets a user post to both peers and to another user.
func (c *twoFaults) leave(t *testing.T, k int) {
	author, name := k/4%len(c.users), fmt.Sprint("out-", c.round, "-", k, ".")
	c.going.Go(func() {
		id := c.out.post(t, c.users[author], name)
		c.posted.Add(1)
		c.accepted.Add(1)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leaves = append(c.leaves, leaving{name, id})
		c.all = append(c.all, sending{id: id, readers: []int{c.friend(author)}, event: "create.received",
			effect: `SELECT count(*) FROM feed WHERE activity_uri = $1`, args: []any{id}})
	})
}

// settle waits until no delivery is owed. A failed delivery is due again in a minute, or at once
// if the operator retries it.
func (c *twoFaults) settle(t *testing.T) {
	t.Helper()
	enginetest.Eventually(t, "the engine is ready", func() bool { return c.home.Ready(t) == http.StatusOK })
	var retried time.Time
	for _, u := range c.users {
		enginetest.Eventually(t, "nothing is owed by "+u.Name, func() bool {
			if time.Since(retried) > 5*time.Second {
				c.home.Run(t, "deliver", "retry", "--all", "--quiet")
				retried = time.Now()
			}
			return slices.Equal(u.Column(t, `SELECT count(*) FROM deliveries WHERE status IN ('pending', 'parked')`), []string{"0"})
		})
	}
}

// find counts the results of everything that was accepted since begin was called.
func (c *twoFaults) find(t *testing.T) *tally {
	t.Helper()
	c.settle(t)
	found := c.look(t, c.round, c.all)
	c.findPosts(t, found)
	c.findAnswers(t, found)
	return found
}

// findPosts counts the ids under which each post reached each inbox.
func (c *twoFaults) findPosts(t *testing.T, found *tally) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	for _, s := range c.out.strange {
		t.Error("delivered in two ways: ", s)
	}
	for _, p := range c.leaves {
		for _, inbox := range c.out.inboxes {
			ids := 0
			for at, what := range c.out.taken {
				if at.inbox == inbox && strings.Contains(what.body, p.name) {
					ids++
				}
			}
			found.once(ids, p.id+" came to "+inbox)
		}
	}
}

// findAnswers counts the ids under which each Follow was answered.
func (c *twoFaults) findAnswers(t *testing.T, found *tally) {
	answers := map[string]map[vocab.ID]bool{}
	for _, p := range c.peer.Posted() {
		a, err := vocab.ParseActivity(p.Content)
		if err != nil {
			t.Error(err)
			continue
		}
		if follow := string(a.Object.ID); answers[follow] == nil {
			answers[follow] = map[vocab.ID]bool{}
		}
		answers[string(a.Object.ID)][a.ID] = true
	}
	for _, s := range c.all {
		if s.event == "follow.received" {
			found.once(len(answers[s.id]), s.id+" was answered")
		}
	}
}
