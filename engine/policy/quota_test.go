package policy

import (
	"testing"
	"time"
)

func TestAQuotaSaysHowMuchIsLeft(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := NewLimiter(Rate{PerSecond: 0.5, Burst: 4}, func() time.Time { return now }, 10)
	want := Quota{Name: "searches", Limit: 4, Window: 8 * time.Second, Left: 4}
	if got := l.Quota("searches", "alice"); got != want {
		t.Errorf("a new payer has %+v, want %+v", got, want)
	}
	for range 5 {
		l.Allow("alice")
	}
	want.Left, want.Reset = 0, 8*time.Second
	if got := l.Quota("searches", "alice"); got != want {
		t.Errorf("who used all has %+v, want %+v", got, want)
	}
	now = now.Add(3 * time.Second)
	want.Left, want.Reset = 1, 5*time.Second
	if got := l.Quota("searches", "alice"); got != want {
		t.Errorf("after 3 s there is %+v, want %+v", got, want)
	}
}
