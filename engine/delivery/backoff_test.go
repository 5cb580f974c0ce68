package delivery

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int]time.Duration{1: time.Minute, 2: 5 * time.Minute, 3: 30 * time.Minute, 4: 2 * time.Hour, 5: 12 * time.Hour, 6: 24 * time.Hour} {
		if got, again := Backoff(attempt); got != want || !again {
			t.Errorf("Backoff(%d) = %v, %v; want %v, true", attempt, got, again, want)
		}
	}
	for _, attempt := range []int{-1, 0, 7, 100} {
		if _, again := Backoff(attempt); again {
			t.Errorf("Backoff(%d) goes on, want stop", attempt)
		}
	}
}
