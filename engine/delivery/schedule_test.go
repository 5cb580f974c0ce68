package delivery

import (
	"fmt"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

func userNamed(t *testing.T, name string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(name)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// begin begins every turn that may begin at a time. It returns the names of the users whose turns
// began.
func (s *schedule) begin(now time.Time) (names []string) {
	for u := s.beginTurn(now); u != nil; u = s.beginTurn(now) {
		names = append(names, u.name.String())
	}
	return names
}

func TestTurnsBeginInTheOrderInWhichTheyAreDue(t *testing.T) {
	t.Parallel()
	s, now := newSchedule(), time.Unix(1e9, 0)
	a, b, c := userNamed(t, "aa"), userNamed(t, "bb"), userNamed(t, "cc")
	s.requestTurn(a, now.Add(2*time.Second))
	s.requestTurn(b, now.Add(time.Hour))
	s.requestTurn(c, now.Add(time.Minute))
	s.requestTurn(b, now.Add(time.Second)) // an earlier time replaces the one before
	s.requestTurn(a, now.Add(time.Hour))   // a later time does not
	if got := s.untilNext(now); got != time.Second {
		t.Errorf("the next turn is in %v, want a second", got)
	}
	if got := fmt.Sprint(s.begin(now.Add(2 * time.Second))); got != "[bb aa]" {
		t.Errorf("turns of %s begin, want bb, aa", got)
	}
	if got := fmt.Sprint(s.begin(now.Add(time.Minute))); got != "[cc]" {
		t.Errorf("turns of %s begin then, want cc", got)
	}
}

func TestAUserHasOneTurnAtATime(t *testing.T) {
	t.Parallel()
	s, now := newSchedule(), time.Unix(1e9, 0)
	s.requestTurn(alice, now)
	u := s.beginTurn(now)
	s.requestTurn(alice, now)
	if got := s.begin(now); got != nil {
		t.Errorf("turns of %v begin beside the one that runs", got)
	}
	s.endTurn(u, false)
	if got := s.begin(now); len(got) != 1 {
		t.Errorf("turns of %v begin after it, want alice's", got)
	}
	s.endTurn(u, false)
	if got := s.begin(now.Add(day)); got != nil {
		t.Errorf("turns of %v begin although nobody asked for one", got)
	}
}

func TestATurnLeavesWhenTheNextOneIsDue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(*schedule, *scheduledUser, time.Time)
		want time.Duration
	}{
		{"by its deliveries", func(s *schedule, u *scheduledUser, now time.Time) {
			u.dueBy(now.Add(time.Hour))
			u.dueBy(now.Add(time.Minute))
			u.dueBy(now.Add(2 * time.Minute))
			s.endTurn(u, false)
		}, time.Minute},
		{"at once, when there is more", func(s *schedule, u *scheduledUser, now time.Time) {
			u.dueBy(now.Add(time.Hour))
			s.endTurn(u, true)
		}, 0},
		{"later, when it failed", func(s *schedule, u *scheduledUser, now time.Time) { s.failTurn(u, now) }, firstTurnWait},
	} {
		s, now := newSchedule(), time.Unix(1e9, 0)
		s.requestTurn(alice, now)
		tt.end(&s, s.beginTurn(now), now)
		if got := max(0, s.untilNext(now)); got != tt.want {
			t.Errorf("%s: the next turn is in %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestAUserWhoseDatabaseFailsHasFewerAndFewerTurns(t *testing.T) {
	t.Parallel()
	s, now := newSchedule(), time.Unix(1e9, 0)
	s.requestTurn(alice, now)
	for _, want := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300} {
		s.failTurn(s.beginTurn(now), now)
		if got := s.untilNext(now); got != want*time.Second {
			t.Fatalf("the next turn is in %v, want %v", got, want*time.Second)
		}
		now = now.Add(want * time.Second)
	}
	s.endTurn(s.beginTurn(now), false)
	s.requestTurn(alice, now)
	if s.failTurn(s.beginTurn(now), now); s.untilNext(now) != firstTurnWait {
		t.Errorf("after a turn that succeeded the wait is %v, want %v", s.untilNext(now), firstTurnWait)
	}
}

func TestFewTurnsRunAtOnce(t *testing.T) {
	t.Parallel()
	s, now := newSchedule(), time.Unix(1e9, 0)
	for n := range 2 * maxTurns {
		s.requestTurn(userNamed(t, fmt.Sprint("user", n)), now)
	}
	first := s.beginTurn(now)
	if got := 1 + len(s.begin(now)); got != maxTurns {
		t.Errorf("%d turns begin, want %d", got, maxTurns)
	}
	if got := s.untilNext(now); got != time.Hour {
		t.Errorf("the loop would wake up in %v, want at the end of a turn", got)
	}
	s.endTurn(first, false)
	if got := len(s.begin(now)); got != 1 {
		t.Errorf("%d turns begin after one ended, want 1", got)
	}
}
