package instance

import (
	"sync"
	"testing"
)

// Each accepted activity gets a number. A process that gets the serve lock again raises the next
// number, and may accept activities meanwhile. No number is assigned twice.
func TestNoNumberIsAssignedTwiceWhileNumbersAreRaised(t *testing.T) {
	t.Parallel()
	const workers, each = 2, 200_000
	j := newJournal(conns{})
	done := make(chan struct{})
	var raising, assigning sync.WaitGroup
	raising.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				j.raiseNumbers(arrivalGap) // raised as for an empty journal
			}
		}
	})
	var assigned [workers][]int64
	for n := range assigned {
		assigning.Go(func() {
			for range each {
				assigned[n] = append(assigned[n], j.AssignNumber())
			}
		})
	}
	assigning.Wait()
	close(done)
	raising.Wait()
	seen := make(map[int64]bool, workers*each)
	for _, all := range assigned {
		for _, number := range all {
			if seen[number] {
				t.Fatalf("the number %d was assigned twice", number)
			}
			seen[number] = true
		}
	}
	if next := j.NextNumber(); seen[next] {
		t.Errorf("the next number %d was assigned before", next)
	}
}

func TestNumbersAreRaisedAndNeverLowered(t *testing.T) {
	t.Parallel()
	j := newJournal(conns{})
	for _, tt := range []struct{ last, want int64 }{{0, firstArrival + 1}, {firstArrival + 10, firstArrival + 11}, {firstArrival + 5, firstArrival + 12}} {
		j.raiseNumbers(tt.last)
		if got := j.AssignNumber(); got != tt.want {
			t.Errorf("after raiseNumbers(%d) the number %d was assigned, want %d", tt.last, got, tt.want)
		}
	}
}
