package delivery

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// isRemoved implements userStore.
func (m *memory) isRemoved(context.Context, vocab.Username) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone
}

func TestARemovedUserHasNoMoreTurns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		gone bool
		want int // number of failed turns within the hour
	}{"removed": {true, 1}, "whose database is away": {false, 12}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, status(202))
				var log bytes.Buffer
				b.Log = slog.New(slog.NewTextHandler(&log, nil))
				b.m.nobody = true
				b.run(t)
				b.m.breakWith(fault.New(fault.Unavailable, "no such database"))
				b.m.mu.Lock()
				b.m.gone = tt.gone
				b.m.mu.Unlock()
				before := b.m.taken()
				b.wake(alice)
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := b.m.taken() - before; tt.gone && n != tt.want || n < tt.want {
					t.Errorf("%d turns in an hour, want %d", n, tt.want)
				}
				if tt.gone && log.Len() > 0 {
					t.Errorf("the log tells of the removed user:\n%s", &log)
				}
				b.look(func(l *loop) {
					if known := l.schedule.users[alice] != nil; known == tt.gone {
						t.Errorf("the user is known: %t, want %t", known, !tt.gone)
					}
				})
			})
		})
	}
}

func TestNothingOfARemovedUserIsLeftInMemory(t *testing.T) {
	t.Parallel()
	l, now := newLoop(&newBench(t, status(202)).Deps), time.Now()
	bob := userNamed(t, "bob")
	for n, u := range []vocab.Username{alice, bob} {
		l.requestTurn(u, now)
		l.ledger.setMark(u, &now)
		l.ledger.addEntry(u, entry{})
		l.parking.addParked("p.example", u)
		l.parking.addWaiting("q.example", u)
		l.parking.askBack("p.example", u)
		l.ledger.noteParked("p.example", u, true)
		l.backlog.record(u, turn{count: true, now: now}, turnResult{open: []user.OpenDeliveries{{Count: 1}}}, 0)
		for place, forwarded := range []bool{false, true} {
			l.queueRows(u, []user.Delivery{{ID: int64(n*10 + place), Host: "p.example", Forwarded: forwarded}}, now, now.Add(leaseTime))
		}
	}
	if u, _ := l.beginTurn(now); u == nil || u.name != alice {
		t.Fatalf("the turn of %v begins, want alice's", u)
	}
	l.forgetUser(alice)
	if n := l.queues.hosts["p.example"].waiting(); n != 2 || l.leases.rows[alice] != nil || len(l.leases.rows[bob]) != 2 {
		t.Errorf("%d deliveries wait, %d of alice and %d of bob are leased, want bob's 2", n, len(l.leases.rows[alice]), len(l.leases.rows[bob]))
	}
	p := l.parking
	if p.parked["p.example"][alice] || p.waiting["q.example"][alice] || p.isAsked(alice) || !p.parked["p.example"][bob] || !p.waiting["q.example"][bob] {
		t.Errorf("parking = %+v, want only bob's", p)
	}
	if l.backlog.open[alice] != nil || l.backlog.open[bob] == nil {
		t.Errorf("backlog = %+v, want only bob's", l.backlog)
	}
	b := l.takeBatch(now)
	if len(b.parked) != 1 || b.parked[0].User != bob || len(l.ledger.entries[alice]) != 0 || l.ledger.marks[alice] != nil {
		t.Errorf("parked deliveries are marked for %v, want only bob", b.parked)
	}
	for _, d := range b.due {
		if d.User == alice {
			t.Error("the removed user is marked as due")
		}
	}
	if len(l.schedule.users) != 1 || l.schedule.running != 0 {
		t.Errorf("%d users are known and %d turns run, want bob and none", len(l.schedule.users), l.schedule.running)
	}
}

func TestAUserIsRemovedWhenTheInstanceSaysSo(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	q := postgres{c, c.Instance.Users, "one", slog.New(slog.DiscardHandler)}
	check := func(name string, want bool) {
		t.Helper()
		if got := q.isRemoved(t.Context(), u); got != want {
			t.Errorf("%s: isRemoved = %t, want %t", name, got, want)
		}
		if owing, err := q.owingUsers(t.Context()); err != nil || (len(owing) == 0) != want {
			t.Errorf("%s: owingUsers = %v, %v, want none: %t", name, owing, err, want)
		}
	}
	check("active", false)
	if _, err := c.Instance.Users.BeginDeletion(t.Context(), u, time.Now()); err != nil {
		t.Fatal(err)
	}
	check("being deleted", false)
	if err := c.Instance.Users.BeginRemoval(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	check("being removed", true)
	if !q.isRemoved(t.Context(), userNamed(t, "nobody")) {
		t.Error("a user that the instance does not know is not removed")
	}
}
