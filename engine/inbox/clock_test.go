package inbox_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// dated sets the published property of a post to the current time, as every server does.
func dated(create string) string {
	return strings.Replace(create, `"type":"Note"`, `"type":"Note","published":"`+time.Now().UTC().Format(time.RFC3339Nano)+`"`, 1)
}

// The clock is set forward and back by an hour while bob's database is away and activities arrive.
// No activity is lost, doubled or reordered.
func TestAClockThatIsSetLosesNothing(t *testing.T) {
	alice, bob := two(t)
	steps := []time.Duration{time.Hour, -2 * time.Hour, time.Hour}
	all := 0
	send := func() {
		for range 5 {
			alice.MustSend("p:/carol", shared, dated(note(all, "first")))
			alice.MustSend("p:/carol", shared, edit(all, "second"))
			all++
		}
	}
	for _, step := range steps {
		alice.Later(step)
		send()
	}
	bob.Down(t, bob.Alice)
	for _, step := range steps {
		send()
		alice.Later(step)
	}
	bob.Up(t, bob.Alice)
	send()
	settled(t, alice, bob)
	if err := alice.Inbox.Tend(); err != nil {
		t.Error(err)
	}
	for _, s := range []*struct {
		name          string
		told, content []string
	}{{"alice", created(t, alice), contents(t, alice)}, {"bob", created(t, bob), contents(t, bob)}} {
		if !slices.Equal(s.told, numbers(all)) {
			t.Errorf("%s got %q, want all once and in order", s.name, s.told)
		}
		if !slices.Equal(s.content, slices.Repeat([]string{"second"}, all)) {
			t.Errorf("%s has %q, want each as it was edited", s.name, s.content)
		}
	}
}

// The engine accepts a signature if its clock differs from ours by up to an hour. A peer may send
// an activity again that was refused for a larger difference.
func TestASignatureIsTakenWithinAnHourOfTheClock(t *testing.T) {
	s := newScene(t)
	for n, c := range []struct {
		ahead time.Duration // how far the sender's clock is ahead of ours
		want  fault.Kind
	}{{59 * time.Minute, accepted}, {-59 * time.Minute, accepted}, {61 * time.Minute, fault.Unauthenticated}, {-61 * time.Minute, fault.Unauthenticated}, {0, accepted}} {
		body := listens(n + 1)[n]
		r := s.Request("p:/carol", mine, body)
		s.Later(c.ahead)
		err := s.Receive(r, mine, body)
		s.Later(-c.ahead)
		if c.want == accepted && err != nil || c.want != accepted && fault.KindOf(err) != c.want {
			t.Errorf("a clock %v ahead: err = %v, want kind %v", c.ahead, err, c.want)
		}
		if c.want != accepted {
			s.MustSend("p:/carol", mine, body)
		}
	}
	if told := events(t, s); len(told) != 5 {
		t.Errorf("events: %q, want five", told)
	}
}
