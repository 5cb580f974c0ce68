package instance

import (
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

func TestWhoWasActiveIsBelievedForASecond(t *testing.T) {
	t.Parallel()
	name := func(s string) vocab.Username {
		u, err := vocab.ParseUsername(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	alice, bob, now := name("alice"), name("bob"), time.Now()
	var a active
	check := func(at time.Time, want ...vocab.Username) {
		t.Helper()
		known, ask := a.split([]vocab.Username{alice, bob}, at)
		if !slices.Equal(known, want) || len(ask) != 2-len(want) {
			t.Errorf("split = %v, %v; want %v known", known, ask, want)
		}
	}
	check(now)
	a.add([]vocab.Username{alice, bob}, now.Add(believed))
	check(now.Add(believed-1), alice, bob)
	a.forget(bob)
	check(now.Add(believed-1), alice)
	check(now.Add(believed))
}
