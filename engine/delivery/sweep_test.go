package delivery

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestTheFirstRoundAfterAStartIsQuick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		for n := range 600 {
			u, err := vocab.ParseUsername(fmt.Sprint("user", n))
			if err != nil {
				t.Fatal(err)
			}
			b.m.others = append(b.m.others, u)
		}
		b.run(t)
		time.Sleep(600*firstPace + time.Second)
		synctest.Wait()
		if n := b.m.taken(); n < 601 {
			t.Errorf("%d of 601 users had a turn", n)
		}
		time.Sleep(100 * sweepPace)
		synctest.Wait()
		if n := b.m.taken(); n > 601+120 {
			t.Errorf("%d turns, want the second round to cost next to nothing", n)
		}
	})
}

func TestSweepFindsWhatNobodyWokeFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(202))
		b.run(t)
		b.m.add("Create", "p.example", 1, 0)
		time.Sleep(2 * sweepRound)
		synctest.Wait()
		if n := b.m.in(user.DeliveryDelivered); n != 1 {
			t.Errorf("%d delivered after a round, want 1", n)
		}
	})
}
