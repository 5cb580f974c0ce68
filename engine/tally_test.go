package engine_test

import (
	"fmt"
	"testing"
)

// tally lists the things that should have happened once. They either never happened or happened
// more than once.
type tally struct{ lost, doubled []string }

// once records how often a thing happened that should happen once.
func (y *tally) once(times int, what string) {
	switch {
	case times == 0:
		y.lost = append(y.lost, what)
	case times > 1:
		y.doubled = append(y.doubled, fmt.Sprintf("%s: %d times", what, times))
	}
}

// report fails the test if anything was lost or happened more than once.
func (y *tally) report(t *testing.T) {
	t.Helper()
	for _, what := range y.lost {
		t.Errorf("lost: %s: never", what)
	}
	for _, what := range y.doubled {
		t.Error("doubled: ", what)
	}
}
