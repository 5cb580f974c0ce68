package policy

import (
	"fmt"
	"testing"
	"time"
)

// Payers take as much as they can, one after the other. The first payer gets most of the pool, but
// never the part that later payers need.
func TestAPoolIsShared(t *testing.T) {
	p := NewPool(100)
	for n, want := range []int64{75, 9, 2, 1, 1} {
		payer, took := fmt.Sprint(n), int64(0)
		for p.Take(payer, 1) {
			took++
		}
		if took != want {
			t.Errorf("payer %d took %d, want %d", n, took, want)
		}
	}
	for n := range 12 {
		if !p.Take(fmt.Sprint("late ", n), 1) {
			t.Errorf("late payer %d is refused", n)
		}
	}
	if p.Take("later", 1) {
		t.Error("more was taken than there is")
	}
	p.Give("0", 75)
	if !p.Take("later", 10) || p.Used() != 35 {
		t.Errorf("what was given back is not there: %d are used", p.Used())
	}
	p.Give("later", 1000)
	if p.Used() != 25 {
		t.Errorf("%d are used after one payer gave back more than it had, want 25", p.Used())
	}
}

// Many payers take in turns. They get equal shares and leave an eighth of the pool to new payers.
func TestManyPayersShareAPool(t *testing.T) {
	p := NewPool(1000)
	for range 1000 {
		for payer := range 50 {
			p.Take(fmt.Sprint(payer), 1)
		}
	}
	for payer := range 50 {
		if n := p.heldBy(fmt.Sprint(payer)); n < 14 || n > 15 {
			t.Errorf("payer %d has %v, want a fiftieth of three quarters of 1,000", payer, n)
		}
	}
	if full := p.Full(1); len(full) != 50 {
		t.Errorf("%d are full, want all", len(full))
	}
	if n := p.FairShare(); n < 8 || n > 16 || !p.Take("late", 100) {
		t.Errorf("a newcomer may have %d bit by bit, and then nothing of 100", n)
	}
}

func TestAPoolServesItselfWithoutAShare(t *testing.T) {
	p := NewPool(10)
	for n := range 10 {
		if !p.Take("", 1) {
			t.Fatalf("work %d of this server's own was refused", n)
		}
	}
	if p.Take("", 1) {
		t.Error("more was taken than there is")
	}
	if p = NewPool(10); !p.Take("1", 10) {
		t.Error("one thing as large as the pool was refused")
	}
}

func TestEagerPayersShareARate(t *testing.T) {
	c := newClock()
	l := newSharedLimiter(Rate{PerSecond: 1, Burst: 20}, c.now, 10)
	alone := 0
	for range 600 {
		if ok, _ := l.Allow("k", "1", 0); ok {
			alone++
		}
		c.advance(time.Second)
	}
	if alone < 595 {
		t.Errorf("alone it got %d of 600: what nobody else asks for may be used", alone)
	}
	got := map[string]int{}
	for range 3000 {
		for _, payer := range []string{"1", "1", "1", "2"} {
			if ok, _ := l.Allow("k", payer, 0); ok {
				got[payer]++
			}
		}
		c.advance(time.Second)
	}
	if got["2"] < 1200 || got["1"] < 1200 || got["1"]+got["2"] > 3040 {
		t.Errorf("of 3,000 they got %v, want about half each", got)
	}
	if ok, _ := l.Allow("other", "1", 0); !ok {
		t.Error("another bucket is used up, too")
	}
}

func TestAPartOfARateIsKept(t *testing.T) {
	c := newClock()
	l := newSharedLimiter(Rate{PerSecond: 1.0 / 3, Burst: 20}, c.now, 10)
	took := 0
	for n := range 100 { // a different payer each time
		if ok, _ := l.Allow("k", fmt.Sprint(n), 0.5); ok {
			took++
		}
	}
	if took != 10 {
		t.Errorf("they took %d, want the half that is not kept", took)
	}
	if ok, wait := l.Allow("k", "1", 0.5); ok || wait <= 0 || wait > time.Minute {
		t.Errorf("Allow = %t after %v, want not for a while", ok, wait)
	}
	if ok, _ := l.Allow("k", "one of theirs", 0); !ok {
		t.Error("what is kept is not there")
	}
	c.advance(time.Minute)
	if ok, _ := l.Allow("k", "1", 0.5); !ok {
		t.Error("refused after a minute")
	}
}

func TestManyTokensAreTakenAllOrNone(t *testing.T) {
	l := newSharedLimiter(Rate{PerSecond: 1, Burst: 20}, newClock().now, 10)
	for _, tt := range []struct {
		payer string
		n     int
		want  bool
	}{{"1", 14, true}, {"1", 2, false}, {"1", 1, true}, {"2", 5, false}, {"2", 2, true}, {"2", 1, false}} {
		if ok, wait := l.AllowMany("k", tt.payer, tt.n, 0); ok != tt.want || ok == (wait > 0) {
			t.Errorf("payer %s is given %d: %t after %v, want %t", tt.payer, tt.n, ok, wait, tt.want)
		}
	}
}

func TestASharedLimiterOfNoRateIsOff(t *testing.T) {
	l := newSharedLimiter(Rate{}, newClock().now, 10)
	for range 1000 {
		if ok, _ := l.Allow("k", "1", 0.9); !ok {
			t.Fatal("refused with no limit set")
		}
	}
}
