package policy

import (
	"fmt"
	"testing"
)

// Payer 1 spends its whole share of each budget, and then tries a thousand times more. Payer 2
// must still get something. The test fails for a row if it does not know the row's kind of bound.
func TestEveryBudgetLeavesSomethingToTheNextPayer(t *testing.T) {
	for _, b := range Budgets() {
		t.Run(fmt.Sprintf("%s by %s", b.Bounds, b.Payer), func(t *testing.T) {
			ways := 0
			for _, way := range []bool{b.Rate != Rate{}, b.Setting != "", b.Pool > 0, b.Hourly > 0, b.Each != ""} {
				if way {
					ways++
				}
			}
			if ways != 1 || b.Bounds == "" || b.Payer == "" || b.Beyond == "" {
				t.Fatalf("the row is incomplete, or bounded in %d ways: %+v", ways, b)
			}
			take := taker(b)
			if take == nil {
				if b.Payer != Request && b.Hourly == 0 { // the tests of the database cover a budget that is counted there
					t.Error("there is no test for how the row is bounded")
				}
				return
			}
			spent := 0
			for take("1") {
				if spent++; spent > 1<<20 {
					t.Fatal("payer 1 has no bound")
				}
			}
			if spent == 0 {
				t.Error("payer 1 gets nothing")
			}
			for range 1000 {
				take("1")
			}
			if !take("2") {
				t.Errorf("payer 1 took %d, and nothing is left for payer 2", spent)
			}
		})
	}
}

// taker returns a function that takes one unit of a budget for a payer. If nothing can be taken
// from the budget, it returns nil.
func taker(b *Budget) func(payer string) bool {
	r := b.Rate
	if b.Setting != "" {
		r = Rate{PerSecond: 20.0 / 60, Burst: 20}
	}
	now := newClock().now
	switch {
	case b.Pool > 0:
		pool, unit := b.NewPool(), max(1, b.Pool/1000)
		return func(payer string) bool { return pool.Take(payer, unit) }
	case b.Each != "", b.Hourly > 0:
		return nil
	case b.Per != "":
		l := b.SharedAt(r, now)
		return func(payer string) bool { ok, _ := l.Allow("peer.example", payer, 0); return ok }
	}
	l := b.LimiterAt(r, now)
	unit := max(1, r.Burst/1000)
	return func(payer string) bool {
		ok, _ := l.Ready(payer)
		l.Spend(payer, unit)
		return ok
	}
}
