package policy

import (
	"fmt"
	"testing"
	"time"
)

// clock is a time that changes only when the test changes it.
type clock struct{ time.Time }

func (c *clock) now() time.Time          { return c.Time }
func (c *clock) advance(d time.Duration) { c.Time = c.Add(d) }

func newClock() *clock { return &clock{time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)} }

func TestLimiterSpendsABurstAndRefills(t *testing.T) {
	c := newClock()
	l := NewLimiter(Rate{PerSecond: 2, Burst: 3}, c.now, 10)
	for i := range 3 {
		if ok, _ := l.Allow("a"); !ok {
			t.Fatalf("request %d of a burst of 3 was refused", i+1)
		}
	}
	ok, wait := l.Allow("a")
	if ok || wait < 500*time.Millisecond || wait > 502*time.Millisecond {
		t.Fatalf("the fourth = %v after %v, want refused for about 500ms", ok, wait)
	}
	if ok, _ := l.Allow("b"); !ok {
		t.Error("another key was refused")
	}
	for range 100 { // refusals use up nothing
		l.Allow("a")
	}
	c.advance(wait)
	if ok, _ := l.Allow("a"); !ok {
		t.Error("refused after waiting as told")
	}
	if ok, _ := l.Allow("a"); ok {
		t.Error("allowed twice for one token")
	}
	c.advance(time.Hour)
	for i := range 3 {
		if ok, _ := l.Allow("a"); !ok {
			t.Errorf("request %d after an hour was refused", i+1)
		}
	}
	if ok, _ := l.Allow("a"); ok {
		t.Error("an hour gave more than a burst")
	}
}

func TestLimiterWaitIsEnough(t *testing.T) {
	for _, perSecond := range []float64{0.001, 1.0 / 3, 20.0 / 60, 7, 50, 1e5} {
		c := newClock()
		l := NewLimiter(Rate{PerSecond: perSecond, Burst: 1}, c.now, 10)
		l.Allow("a")
		for range 50 {
			ok, wait := l.Allow("a")
			if ok {
				t.Fatalf("at %v/s: allowed early", perSecond)
			}
			c.advance(wait)
			if ok, _ := l.Allow("a"); !ok {
				t.Fatalf("at %v/s: refused after waiting %v as told", perSecond, wait)
			}
		}
	}
}

func TestLimiterIsAskedWithoutTaking(t *testing.T) {
	c := newClock()
	l := NewLimiter(Rate{PerSecond: 2, Burst: 1}, c.now, 10)
	for range 3 {
		if ok, _ := l.Ready("a"); !ok {
			t.Fatal("asking took the token")
		}
	}
	if len(l.young) != 0 {
		t.Error("asking made the limiter remember")
	}
	l.Allow("a")
	ok, wait := l.Ready("a")
	if ok || wait < 500*time.Millisecond || wait > 502*time.Millisecond {
		t.Fatalf("Ready = %v after %v, want not for about 500ms", ok, wait)
	}
	c.advance(wait)
	if ok, _ := l.Ready("a"); !ok {
		t.Error("not ready after waiting as told")
	}
}

func TestLimiterSpendsWhatIsNotThere(t *testing.T) {
	c := newClock()
	l := NewLimiter(Rate{PerSecond: 10, Burst: 100}, c.now, 10)
	l.Spend("a", 60)
	if ok, _ := l.Ready("a"); !ok {
		t.Fatal("not ready with 40 left")
	}
	l.Spend("a", 1000) // a key owes at most one burst
	ok, wait := l.Ready("a")
	if want := 6100 * time.Millisecond; ok || wait < want || wait > want+2*time.Millisecond {
		t.Errorf("Ready = %v after %v, want not for about %v", ok, wait, want)
	}
	c.advance(wait)
	if ok, _ := l.Allow("a"); !ok {
		t.Error("refused after waiting as told")
	}
	if ok, _ := l.Ready("b"); !ok {
		t.Error("another key owes, too")
	}
}

func TestLimiterZeroIsOff(t *testing.T) {
	l := NewLimiter(Rate{}, newClock().now, 10)
	for range 1000 {
		if ok, wait := l.Allow("a"); !ok || wait != 0 {
			t.Fatalf("Allow = %v, %v with no limit set", ok, wait)
		}
		l.Spend("a", 1)
		if ok, _ := l.Ready("a"); !ok {
			t.Fatal("not ready with no limit set")
		}
	}
	if len(l.young) != 0 {
		t.Error("a limiter that is off remembers keys")
	}
}

func TestLimiterDoesNotGrow(t *testing.T) {
	const keys = 100
	c := newClock()
	l := NewLimiter(Rate{PerSecond: 1, Burst: 1}, c.now, keys)
	l.Allow("busy")
	for i := range 100 * keys { // PAR-19, NET-22: a flood of different names
		l.Allow(fmt.Sprintf("h%d.example", i))
		if n := len(l.young) + len(l.old); n > keys {
			t.Fatalf("%d keys are remembered, want at most %d", n, keys)
		}
		if i%(keys/2-1) == 0 {
			if ok, _ := l.Allow("busy"); ok {
				t.Fatal("a key in use was forgotten")
			}
		}
	}
}
