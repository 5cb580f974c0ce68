package intake

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// turns limits how many writers at a time commit nothing but activities that their users did not
// ask for (see Arrival.Unasked). A stranger who names a thousand users causes a thousand
// transactions, most of which have to open a connection. Without the limit, the activities of
// everybody else would wait for all of them. Payers are served by turns, so that one who names many
// users does not keep back one who names a few.
type turns struct {
	slow time.Duration // slowTurn; longer in tests

	mu      sync.Mutex
	free    int
	payers  []string           // those with writers that wait, the next one to be served first
	waiting map[string][]*turn // for each payer, in order of arrival
}

// turn is the turn of one writer. It waits in the name of each payer of the writer's activities,
// and comes with the first of them that is served.
type turn struct {
	begun  chan struct{} // closed when it is the writer's turn
	payers []string      // empty once the turn has begun
}

// slowTurn is the time after which a turn ends although the writer has not committed. Whatever
// takes longer waits for the server or for a lock, and would keep others back for nothing.
const slowTurn = 100 * time.Millisecond

// newTurns allows one writer for two processors, and at least one.
func newTurns() *turns {
	return &turns{slow: slowTurn, free: max(1, runtime.GOMAXPROCS(0)/2), waiting: map[string][]*turn{}}
}

// ask queues a writer in the name of a payer. The writer must call leave in any case.
func (t *turns) ask(payer string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &turn{begun: make(chan struct{})}
	t.add(w, payer)
	t.serve()
	return w
}

// askToo lets a writer that waits wait in the name of one more payer.
func (t *turns) askToo(w *turn, payer string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(w.payers) > 0 && !slices.Contains(w.payers, payer) {
		t.add(w, payer)
	}
}

// leave ends a turn, or the wait for it.
func (t *turns) leave(w *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(w.payers) > 0 {
		t.remove(w)
		return
	}
	t.free++
	t.serve()
}

// add queues a turn in the name of a payer. The caller holds mu.
func (t *turns) add(w *turn, payer string) {
	if len(t.waiting[payer]) == 0 {
		t.payers = append(t.payers, payer)
	}
	t.waiting[payer] = append(t.waiting[payer], w)
	w.payers = append(w.payers, payer)
}

// serve begins the turns that are free. The caller holds mu.
func (t *turns) serve() {
	for ; t.free > 0 && len(t.payers) > 0; t.free-- {
		payer := t.payers[0]
		t.payers = append(t.payers[1:], payer)
		first := t.waiting[payer][0]
		t.remove(first)
		close(first.begun)
	}
}

// remove takes a turn from the queues of all its payers. The caller holds mu.
func (t *turns) remove(w *turn) {
	for _, payer := range w.payers {
		at := slices.Index(t.waiting[payer], w)
		t.waiting[payer] = slices.Delete(t.waiting[payer], at, at+1)
		if len(t.waiting[payer]) == 0 {
			delete(t.waiting, payer)
			t.payers = slices.DeleteFunc(t.payers, func(p string) bool { return p == payer })
		}
	}
	w.payers = nil
}
