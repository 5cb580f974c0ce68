package policy

import (
	"testing"
	"time"
)

// Who asks first and without end leaves something for everybody.
func TestSharesLeaveSomethingForOthers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := NewShares(100, 24*time.Hour, func() time.Time { return now }, 10)
	takes := func(key, who string) (n int) {
		for range 1000 {
			if s.Take(key, who) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name, key, who string
		pass           time.Duration
		want           int
	}{
		{"the first has half", "alice", "evil.example", 0, 50},
		{"the next has half of the rest", "alice", "p.example", 0, 25},
		{"the first has no more", "alice", "evil.example", time.Hour, 0},
		{"others have something still", "alice", "q.example", 0, 13},
		{"of another budget it has half, too", "bob", "evil.example", 0, 50},
		{"a day later it is whole again", "alice", "evil.example", 23 * time.Hour, 50},
	} {
		now = now.Add(c.pass)
		if got := takes(c.key, c.who); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
