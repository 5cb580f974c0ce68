package engine_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// amount returns the number in an environment variable. If the variable is not set, it returns the
// number in the parameter ordinary.
func amount(t *testing.T, variable, ordinary string) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(variable), ordinary))
	if err != nil {
		t.Fatal(variable, ": ", err)
	}
	return n
}

// While the database of one user is away, the activities for that user wait in the journal,
// outside of memory. When the database is back, each activity arrives once and in order.
// LIGHTWEB_FLOOD sets the number of activities (default 2,000).
func TestAFloodForOneUserWhoseDatabaseIsAway(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, amount(t, "LIGHTWEB_FLOOD", "2000"))
	f.play(t, f.users[0].ID+"/inbox")
}

// The databases of many users are away at once. When they are back, each user gets all activities,
// once and in order. LIGHTWEB_FLOOD_USERS sets the number of users (default 10), and
// LIGHTWEB_FLOOD_EACH the number of activities for each user (default 200).
func TestAFloodForManyUsersWhoseDatabasesAreAway(t *testing.T) {
	t.Parallel()
	f := newFlood(t, amount(t, "LIGHTWEB_FLOOD_USERS", "10"), amount(t, "LIGHTWEB_FLOOD_EACH", "200"))
	f.play(t, f.home.URL+"/inbox")
}

// flood is an engine that receives activities while the databases of its users are away.
type flood struct {
	home    *enginetest.Instance
	authors []*peertest.Actor
	users   []*enginetest.User
	each    int // the number of activities for each user
}

// floodSenders is how many senders run at once. Each sends the activities of one author, which
// must stay in order.
const floodSenders = 8

func newFlood(t *testing.T, users, each int) *flood {
	f := &flood{home: enginetest.Start(t, "LIGHTWEB_LOG_LEVEL=info"), each: each / floodSenders * floodSenders}
	peer := peertest.New(t, "127.0.0.2")
	c := &crash{home: f.home, peer: peer, random: rand.New(rand.NewPCG(5, 0))}
	for n := range floodSenders {
		f.authors = append(f.authors, peer.Actor(fmt.Sprint("/author", n)))
	}
	for n := range users {
		u := f.home.CreateUser(t, fmt.Sprint("reader", n))
		f.users = append(f.users, u)
		for _, a := range f.authors {
			follow := u.Do(t, "Follow", map[string]any{"actorUri": string(a.ID)}).ActivityID
			accept := vocab.Doc{"id": fmt.Sprint(a.ID, "/accepts/", n), "type": "Accept", "actor": string(a.ID), "object": follow}
			if status := c.post(t, a, u.ID+"/inbox", accept.JSON()); status != http.StatusAccepted {
				t.Fatalf("the Accept was answered %d", status)
			}
		}
	}
	return f
}

func (f *flood) play(t *testing.T, inbox string) {
	f.away(t, true)
	before := f.memory(t)
	began := time.Now()
	f.send(t, inbox)
	sent := time.Since(began)
	total := float64(f.each * len(f.users))
	enginetest.Eventually(t, "everything waits in the journal", func() bool {
		return f.home.Metric(t, `lightweb_inbox_waiting{state="parked"}`) == total
	})
	if queued := f.home.Metric(t, `lightweb_inbox_waiting{state="queued"}`); queued != 0 {
		t.Errorf("%v activities are queued in memory, want none", queued)
	}
	t.Logf("%d activities for each of %d users accepted in %v; the engine holds %d MiB, before it held %d", f.each, len(f.users), sent, f.memory(t)>>20, before>>20)
	began = time.Now()
	f.away(t, false)
	f.drained(t)
	t.Logf("drained in %v; the engine holds %d MiB", time.Since(began), f.memory(t)>>20)
	for _, u := range f.users {
		f.look(t, u)
	}
}

// away closes the databases of all users to connections if the last argument is true, and opens
// them again if it is false.
func (f *flood) away(t *testing.T, is bool) {
	t.Helper()
	for _, u := range f.users {
		away(t, f.home, u, is)
	}
}

func (f *flood) memory(t *testing.T) int64 {
	return int64(f.home.Metric(t, "process_resident_memory_bytes"))
}

// send posts all activities. It sends an activity again if the engine refused it.
func (f *flood) send(t *testing.T, inbox string) {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: floodSenders}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for _, a := range f.authors {
		all.Go(func() {
			for n := range f.each / floodSenders {
				id := fmt.Sprintf("%s/%06d", a.ID, n)
				body := vocab.Doc{"id": id, "type": "Create", "actor": string(a.ID), "to": []any{string(vocab.Public)}, "object": vocab.Doc{
					"id": id + "/note", "type": "Note", "attributedTo": string(a.ID), "content": "hi", "to": []any{string(vocab.Public)}}}.JSON()
				for status := 0; status != http.StatusAccepted; {
					var err error
					if status, err = postBy(t, client, a, inbox, body); status != http.StatusAccepted && status != http.StatusServiceUnavailable {
						t.Errorf("%s was answered %d, %v, want 202 or 503", id, status, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
}

// drained waits until the journal is empty. It fails the test if the journal does not shrink for
// two minutes. The engine tries a user again at least every minute.
func (f *flood) drained(t *testing.T) {
	t.Helper()
	const patience = 2 * time.Minute
	tick, limit := time.NewTicker(50*time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer limit.Stop()
	for last := -1; last != 0; {
		select {
		case <-limit.C:
			t.Fatalf("%d still wait in the journal, and it does not become less", last)
		case <-tick.C:
		}
		var left int
		if err := f.home.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT count(*) FROM intake_waiting`).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if last < 0 || left < last {
			last = left
			limit.Reset(patience)
		}
	}
}

// look checks that a user has every activity once, and that those of each author are in order.
func (f *flood) look(t *testing.T, u *enginetest.User) {
	t.Helper()
	for _, a := range f.authors {
		got := u.Column(t, `SELECT uri FROM activities WHERE type = 'Create' AND actor_uri = $1 ORDER BY id`, string(a.ID))
		if len(got) != f.each/floodSenders || !slices.IsSorted(got) {
			t.Errorf("%s has %d activities of %s, want %d in the order they were sent", u.Name, len(got), a.ID, f.each/floodSenders)
		}
	}
	if n := u.Column(t, `SELECT count(*) FROM feed`); !slices.Equal(n, []string{fmt.Sprint(f.each)}) {
		t.Errorf("the feed of %s has %s entries, want %d", u.Name, n, f.each)
	}
}
