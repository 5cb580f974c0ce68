package delivery

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
)

// stillParked does the same as listParked.
func (m *memory) stillParked(t turn, resumed map[string]int) (hosts []string) {
	for _, r := range m.rows {
		if asked, is := t.resume[r.Host]; r.status == user.DeliveryParked && !slices.Contains(hosts, r.Host) && (t.takeOver || is && resumed[r.Host] < asked) {
			hosts = append(hosts, r.Host)
		}
	}
	return hosts
}

// A process that is killed may leave parked deliveries in a user's database without a mark in the
// instance database. Such deliveries are resumed.
func TestDeliveriesThatWereParkedWithoutAMarkAreResumed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		host func() instance.Host // returns the stored state of the host
		soon int                  // number of deliveries that are delivered within a minute
	}{
		{"to an inactive host", func() instance.Host {
			return instance.Host{Host: "p.example", Failures: 9, FailingSince: timePointer(time.Now().Add(-8 * day)), InactiveAt: timePointer(time.Now().Add(-day)), ClosedUntil: timePointer(time.Now().Add(time.Hour))}
		}, 0},
		{"to a host that is back", func() instance.Host { return instance.Host{Host: "p.example"} }, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, status(202))
				b.m.hosts["p.example"] = tt.host()
				b.m.add("Create", "p.example", 3, 0)
				for _, r := range b.m.rows {
					r.status = user.DeliveryParked
				}
				b.run(t)
				time.Sleep(50 * time.Second)
				synctest.Wait()
				b.m.mu.Lock()
				isMarked := b.m.parked[instance.Parked{Host: "p.example", User: alice}]
				b.m.mu.Unlock()
				if n := b.m.in(user.DeliveryDelivered); n != tt.soon || isMarked != (tt.soon == 0) {
					t.Errorf("after the start %d are delivered and a mark tells of parked ones: %t, want %d and %t", n, isMarked, tt.soon, tt.soon == 0)
				}
				time.Sleep(70 * time.Minute)
				synctest.Wait()
				if n := b.m.in(user.DeliveryDelivered); n != 3 || len(b.m.parked) != 0 {
					t.Errorf("%d of 3 are delivered, and %v are marked, want none", n, b.m.parked)
				}
			})
		})
	}
}

func TestTheMarkStaysWhileAParkedDeliveryIsLeft(t *testing.T) {
	t.Parallel()
	l, now := newLoop(&newBench(t, nil).Deps), time.Now()
	l.parking.addParked("p.example", alice)
	l.resumeForUser("p.example", alice)
	for _, left := range []bool{true, false} {
		_, turn := l.beginTurn(now)
		if turn.resume["p.example"] != resumeBatch {
			t.Fatalf("a turn brings back %v, want a batch", turn.resume)
		}
		got := turnResult{resumed: map[string]int{"p.example": 7}}
		if left {
			got.parked = []string{"p.example"}
		}
		l.endTurn(alice, turn, got, nil, now)
		if is := l.parking.parked["p.example"][alice]; is != left {
			t.Errorf("a parked delivery is left: %t; the mark stays: %t", left, is)
		}
		now = now.Add(crowdedWait)
	}
}

func TestATurnFindsHostsWithParkedDeliveries(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	now := time.Now()
	q := postgres{c, c.Instance.Users, "one", slog.New(slog.DiscardHandler)}
	owe(t, c, u, "Create", "https://here.example/1", "p.example", now)
	owe(t, c, u, "Create", "https://here.example/2", "q.example", now)
	owe(t, c, u, "Create", "https://here.example/3", "r.example", now.Add(time.Hour))
	got, err := q.runTurn(t.Context(), u, turn{now: now, claim: user.ClaimBounds{Most: 10}})
	if err != nil || len(got.rows) != 2 {
		t.Fatalf("claimed %+v, %v", got.rows, err)
	}
	var parked []entry
	for _, r := range got.rows {
		parked = append(parked, entry{delivery: r, outcome: user.Outcome{Delivery: r.ID, Status: user.DeliveryParked}})
	}
	check := func(name string, x turn, resumed int, want ...string) {
		t.Helper()
		x.now = now
		got, err := q.runTurn(t.Context(), u, x)
		if err != nil || got.resumed["p.example"] != resumed || !slices.Equal(got.parked, want) {
			t.Errorf("%s: %v resumed and %v parked, %v; want %d of p.example, and %v", name, got.resumed, got.parked, err, resumed, want)
		}
	}
	check("the turn that parks", turn{entries: parked}, 0)
	check("the first turn of a process", turn{takeOver: true}, 0, "p.example", "q.example")
	release := dbtest.Hold(t, dbtest.SQL(t, c, u), `SELECT FROM deliveries WHERE host = 'p.example' FOR UPDATE`)
	check("while another transaction holds the delivery", turn{resume: map[string]int{"p.example": resumeBatch}}, 0, "p.example")
	release()
	check("afterwards", turn{resume: map[string]int{"p.example": resumeBatch}}, 1)
	check("the first turn of the next process", turn{takeOver: true}, 0, "q.example")
}
