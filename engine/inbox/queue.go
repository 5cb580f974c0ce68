package inbox

import (
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// queue holds, in the order of arrival, every activity in memory on its way into one user's database or into the journal:
// an entry keeps its place until it is committed or waits in the journal, so that nothing newer overtakes it on another way.
type queue struct {
	entries []*entry
	writing bool // the user's writer runs
}

// entry is one activity on its way into one user's database.
type entry struct {
	x      *applying
	number int64      // of its arrival
	row    *row       // in the journal, or about to be written there; nil for one that somebody waits for, and for one that is drained
	done   chan error // who waits; nil for one out of the journal
	ready  bool       // for the user's writer; until then, a request that writes the journal holds the place
	given  bool       // up by who waits
}

// append adds an entry to u's queue. The caller holds mu, and has given it the newest number.
func (w *writers) append(u vocab.Username, e *entry) {
	q := w.queues[u]
	if q == nil {
		q = &queue{}
		w.queues[u] = q
	}
	q.entries = append(q.entries, e)
	w.start(u)
}

// start sees that u's writer runs when there is something for it. The caller holds mu.
func (w *writers) start(u vocab.Username) {
	q := w.queues[u]
	if q == nil || q.writing {
		return
	}
	if len(q.entries) == 0 {
		delete(w.queues, u)
		return
	}
	if w.pending(u) != toEnd {
		q.writing = true
		w.running.Add(1)
		go w.run(u)
	}
}

// pending tells what u's writer can do now. The caller holds mu.
func (w *writers) pending(u vocab.Username) int {
	entries := w.queues[u].entries
	switch {
	case w.parked[u] == nil && len(entries) > 0 && entries[0].ready:
		return toCommit
	case w.parked[u] != nil && slices.ContainsFunc(entries, isReady):
		return toSpill
	}
	return toEnd
}

func isReady(e *entry) bool { return e.ready }

// take returns what is first in u's queue, where it stays until it is let go.
func (w *writers) take(u vocab.Username) []*entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[u].entries
	n := 0
	for n < min(len(q), maxBatch) && q[n].ready {
		n++
	}
	return slices.Clone(q[:n])
}

// remove gives up entries' places in u's queue. The caller holds mu.
func (w *writers) remove(u vocab.Username, entries ...*entry) {
	q := w.queues[u]
	if q == nil {
		return
	}
	if n := len(entries); n <= len(q.entries) && slices.Equal(q.entries[:n], entries) {
		q.entries = q.entries[n:]
		return
	}
	gone := make(map[*entry]bool, len(entries))
	for _, e := range entries {
		gone[e] = true
	}
	q.entries = slices.DeleteFunc(q.entries, func(e *entry) bool { return gone[e] })
}

// oldest returns the number of the oldest activity in memory for u, or one that nothing has yet that has arrived. What
// waits in the journal below it is all that u is to get before that.
func (w *writers) oldest(u vocab.Username) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q := w.queues[u]; q != nil && len(q.entries) > 0 {
		return q.entries[0].number
	}
	return w.inbox.Store.NextArrival()
}
