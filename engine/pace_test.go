package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	paceUsers   = 5
	paceSenders = 16
)

// pace is an engine under steady traffic. Each tenth activity is for all users. The others are for
// one user each.
type pace struct {
	crash    *crash // signs and posts the activities
	author   *peertest.Actor
	users    []*enginetest.User
	sent     atomic.Int64
	accepted atomic.Int64
	owed     atomic.Int64 // how many rows users' databases must have
}

func newPace(t *testing.T, home *enginetest.Instance) *pace {
	p := &pace{crash: &crash{home: home, peer: peertest.New(t, "127.0.0.2")}}
	p.author = p.crash.peer.Actor("/author")
	for n := range paceUsers {
		u := home.CreateUser(t, fmt.Sprint("reader", n))
		follow := u.Do(t, "Follow", map[string]any{"actorUri": string(p.author.ID)}).ActivityID
		accept := vocab.Doc{"id": fmt.Sprint(p.author.ID, "/accepts/", n), "type": "Accept", "actor": string(p.author.ID), "object": follow}
		if status := p.crash.post(t, p.author, u.ID+"/inbox", accept.JSON()); status != http.StatusAccepted {
			t.Fatalf("the Accept was answered %d", status)
		}
		p.users = append(p.users, u)
	}
	home.DB(t) // keeps PostgreSQL running for the checks of the test
	return p
}

// next returns the next activity, its inbox, and the number of its recipients.
func (p *pace) next() (inbox string, body []byte, readers int64) {
	n := p.sent.Add(1)
	id, to := fmt.Sprint(p.author.ID, "/notes/", n), string(vocab.Public)
	u := p.users[n%paceUsers]
	inbox, readers = p.crash.home.URL+"/inbox", paceUsers
	if n%10 != 0 {
		inbox, to, readers = u.ID+"/inbox", u.ID, 1
	}
	note := vocab.Doc{"id": id, "type": "Note", "attributedTo": string(p.author.ID), "content": "hi", "to": []any{to}}
	return inbox, vocab.Doc{"id": id + "/create", "type": "Create", "actor": string(p.author.ID), "to": []any{to}, "object": note}.JSON(), readers
}

// send sends an activity until it is accepted.
func (p *pace) send(t *testing.T) {
	inbox, body, readers := p.next()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		switch status := p.crash.post(t, p.author, inbox, body); status {
		case http.StatusAccepted:
			p.accepted.Add(1)
			p.owed.Add(readers)
			return
		case 0, http.StatusServiceUnavailable:
		default:
			t.Errorf("an activity was answered %d", status)
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			return
		}
	}
}

// load sends an activity for each tick until stop() is called. Without ticks it sends as fast as
// the engine answers.
func (p *pace) load(t *testing.T, ticks <-chan time.Time) (stop func()) {
	ended := make(chan struct{})
	var senders sync.WaitGroup
	for range paceSenders {
		senders.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				if ticks != nil {
					select {
					case <-ended:
						return
					case <-ticks:
					}
				}
				p.send(t)
			}
		})
	}
	return sync.OnceFunc(func() { close(ended); senders.Wait() })
}

// capacity returns the average time that the engine needs for one activity under full load.
func (p *pace) capacity(t *testing.T) time.Duration {
	const some = 400
	began := time.Now()
	stop := p.load(t, nil)
	defer stop()
	enginetest.Eventually(t, "some are accepted", func() bool { return p.accepted.Load() >= some })
	return time.Since(began) / time.Duration(p.accepted.Load())
}

// PostgreSQL is killed under half of the load that the engine can bear. The load continues. Soon
// after PostgreSQL is back, no user is stalled. The test logs how long that takes, and
// docs/reliability.md has the figure.
func TestNobodyIsStalledForLongAfterPostgreSQLDied(t *testing.T) {
	home := enginetest.Start(t, "LIGHTWEB_LOG_LEVEL=info")
	p := newPace(t, home)
	each := p.capacity(t)
	ticker := time.NewTicker(2 * each)
	defer ticker.Stop()
	stop := p.load(t, ticker.C)
	defer stop()
	before := p.accepted.Load()
	enginetest.Eventually(t, "the load is steady", func() bool { return p.accepted.Load() >= before+200 })
	starts := func() int { return strings.Count(home.Log(), "private PostgreSQL started") }
	started := starts()
	if err := syscall.Kill(home.Postmaster(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	enginetest.Eventually(t, "PostgreSQL is started again", func() bool { return starts() > started })
	enginetest.Eventually(t, "PostgreSQL is ready", func() bool { return home.Ready(t) == http.StatusOK })
	ready := time.Now()
	most := 0.0
	enginetest.Eventually(t, "nobody is stalled, under load", func() bool {
		n := home.Metric(t, "lightweb_inbox_parked_users")
		most = max(most, n)
		return n == 0 && p.accepted.Load() > before+400
	})
	served := time.Now()
	t.Logf("half of %.0f activities/s for %d users: PostgreSQL was ready %.1f s after it was killed, %.0f users were stalled then at most, and none %.1f s after that",
		time.Second.Seconds()/each.Seconds(), paceUsers, ready.Sub(killed).Seconds(), most, served.Sub(ready).Seconds())
	stop()
	enginetest.Eventually(t, "the journal is empty", func() bool {
		var left int
		err := home.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT count(*) FROM intake`).Scan(&left)
		return err == nil && left == 0
	})
	var stored int64
	for _, u := range p.users {
		stored += int64(len(u.Column(t, `SELECT uri FROM activities WHERE uri LIKE '%/notes/%'`)))
	}
	if owed := p.owed.Load(); stored != owed {
		t.Errorf("users have %d activities, want the %d that were accepted for them", stored, owed)
	}
}
