package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestEveryNightHasItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		ctx, cancel := context.WithTimeout(t.Context(), 72*time.Hour)
		defer cancel()
		everyNight(ctx, time.Now, "https://example.org", func(context.Context) {
			at = append(at, time.Now())
			// the sleep uses the clock of the synctest bubble
			time.Sleep(30 * time.Minute)
		})
		if len(at) != 3 {
			t.Fatalf("work was done at %v in three days", at)
		}
		for n, one := range at {
			if h := one.Hour(); h < nightHour || h > nightHour+2 || n > 0 && one.Sub(at[n-1]) > 24*time.Hour+nap {
				t.Errorf("the night's work begins at %v, want from 3 to 5 and a day after %v", one, at[max(n-1, 0)])
			}
		}
	})
}

func TestTheNightComesAfterAClockThatWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Hour)
		defer cancel()
		began, times := time.Now(), 0
		now := func() time.Time { // the clock is a month ahead for the first hour
			if time.Since(began) < time.Hour {
				return time.Now().AddDate(0, 1, 0)
			}
			return time.Now()
		}
		everyNight(ctx, now, "https://example.org", func(context.Context) { times++ })
		if times != 1 {
			t.Errorf("work was done %d times in a day, want once", times)
		}
	})
}

func TestInstancesDoNotBeginTheirNightsTogether(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	for _, now := range []time.Time{
		time.Date(2026, 3, 28, 22, 0, 0, 0, zone),  // clocks go forward in that night
		time.Date(2026, 10, 24, 22, 0, 0, 0, zone), // clocks go back in that night
		time.Date(2026, 12, 31, 6, 0, 0, 0, zone),
	} {
		var times []time.Time
		for _, instance := range []string{"https://a.example", "https://b.example", "https://c.example"} {
			at := nextNight(now, instance)
			if at.Hour() < nightHour || at.Hour() > nightHour+2 || at.Sub(now) > 24*time.Hour || !at.After(now) {
				t.Errorf("nextNight(%v) = %v, want the next one, from 3 to 5", now, at)
			}
			if slices.Contains(times, at) {
				t.Errorf("two instances begin at %v", at)
			}
			times = append(times, at)
		}
	}
}
