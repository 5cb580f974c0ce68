package delivery

import (
	"testing"
	"time"
)

func TestTheBreakerOpensAfterFiveFailuresWithinTenMinutes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name    string
		between time.Duration // the time between two failures
		through int           // the number of failures before a request that succeeds; 0 if none succeeds
		want    string
	}{
		{"five within ten minutes", 2 * time.Minute, 0, HostOpen},
		{"five within more", 3 * time.Minute, 0, HostFailing},
		{"five, something got through meanwhile", time.Second, 4, HostFailing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var h breaker
			now := start
			for n := range openAfter {
				if n > 0 && n == tt.through {
					h.recordAnswer(4, now)
				}
				h.recordFailure("no answer", now)
				now = now.Add(tt.between)
			}
			if got := h.stateName(now.Add(-tt.between)); got != tt.want {
				t.Errorf("the host is %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAnOpenBreakerDoublesItsRestUpToHalfAnHour(t *testing.T) {
	t.Parallel()
	var h breaker
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range openAfter {
		h.recordFailure("no answer", now)
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		want *= time.Minute
		if got := h.closesAt().Sub(now); got < want*9/10 || got > want*11/10 {
			t.Fatalf("it rests for %v, want %v give or take a tenth", got, want)
		}
		now = h.closesAt()
		if all, retries := h.limitAttempts(4); all != 1 || retries != 1 || h.stateName(now) != HostHalfOpen {
			t.Errorf("after the rest it is %s with %d attempts at once, want half open with one", h.stateName(now), all)
		}
		h.recordFailure("no answer", now)
	}
	h.recordAnswer(4, now)
	if got := h.stateName(now); got != HostOK {
		t.Errorf("after something got through it is %s", got)
	}
}

func TestWhatIsStoredOfAHostIsWhatWasKnown(t *testing.T) {
	t.Parallel()
	var h breaker
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 2 * openAfter {
		h.recordFailure("no answer", now)
		now = now.Add(day)
	}
	again := newBreaker(h.storedHost("p.example"))
	if again.stateName(now) != HostInactive || !again.closesAt().Equal(h.closesAt()) || again.failures != h.failures || !again.since.Equal(h.since) || again.why != "no answer" {
		t.Errorf("stored and read again it is %+v, was %+v", again, h)
	}
}

func TestAHostThatIsBackIsGivenMoreAndMore(t *testing.T) {
	t.Parallel()
	var h breaker
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range openAfter {
		h.recordFailure("no answer", now)
	}
	now = h.closesAt()
	var got []int
	for range 4 * rampStep {
		h.recordAnswer(4, now)
		all, _ := h.limitAttempts(4)
		if len(got) == 0 || got[len(got)-1] != all {
			got = append(got, all)
		}
	}
	if len(got) != 4 || got[0] != 1 || got[3] != 4 {
		t.Errorf("attempts at once: %v, want 1 to 4 in steps", got)
	}
}

func TestAHostIsInactiveOnceItHasFailedForAWeek(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		failures int
		after    time.Duration
		want     bool
	}{
		{openAfter, inactiveAfter, true},
		{openAfter, inactiveAfter - time.Second, false},
		{openAfter - 1, inactiveAfter, false},
	} {
		now := time.Unix(1e9, 0)
		b := breaker{failures: tt.failures - 1, since: now.Add(-tt.after)}
		if b.recordFailure("no answer", now); b.isInactive() != tt.want {
			t.Errorf("%d failures within %v: inactive: %t, want %t", tt.failures, tt.after, b.isInactive(), tt.want)
		}
	}
}
