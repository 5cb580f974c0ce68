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
	payers  []string                   // those with writers that wait, the next one to be served first
	waiting map[string][]chan struct{} // for each payer, in order of arrival
}

// slowTurn is the time after which a turn ends although the writer has not committed. Whatever
// takes longer waits for the server or for a lock, and would keep others back for nothing.
const slowTurn = 100 * time.Millisecond

// newTurns allows one writer for two processors, and at least one.
func newTurns() *turns {
	return &turns{slow: slowTurn, free: max(1, runtime.GOMAXPROCS(0)/2), waiting: map[string][]chan struct{}{}}
}

// ask queues a writer in the name of a payer. The channel is closed when it is the writer's turn.
// The writer must call leave in any case.
func (t *turns) ask(payer string) (turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn = make(chan struct{})
	if len(t.waiting[payer]) == 0 {
		t.payers = append(t.payers, payer)
	}
	t.waiting[payer] = append(t.waiting[payer], turn)
	t.serve()
	return turn
}

// leave ends a turn, or the wait for it.
func (t *turns) leave(payer string, turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := slices.Index(t.waiting[payer], turn); at >= 0 {
		t.remove(payer, at)
		return
	}
	t.free++
	t.serve()
}

// serve gives the free turns to the writers that wait. The caller holds mu.
func (t *turns) serve() {
	for ; t.free > 0 && len(t.payers) > 0; t.free-- {
		payer := t.payers[0]
		t.payers = append(t.payers[1:], payer)
		close(t.waiting[payer][0])
		t.remove(payer, 0)
	}
}

// remove takes a writer from its payer's queue. The caller holds mu.
func (t *turns) remove(payer string, at int) {
	t.waiting[payer] = slices.Delete(t.waiting[payer], at, at+1)
	if len(t.waiting[payer]) == 0 {
		delete(t.waiting, payer)
		t.payers = slices.DeleteFunc(t.payers, func(p string) bool { return p == payer })
	}
}
