// Package intake makes accepted activities take effect in the databases of their recipients:
// durable before they are acknowledged, once, and in the order of arrival.
//
// An activity for one user goes to that user's writer. One for several users, or for a user whose
// database cannot be used now, goes to the intake journal first. Such a user is stalled until a
// drain has applied everything that waits.
package intake

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxBatch    = 100              // activities in one transaction
	applyTime   = 30 * time.Second // for one transaction, with waiting for a connection
	journalTime = 10 * time.Second // for one write to the intake journal
)

var (
	errFull    = fault.New(fault.Unavailable, "the engine is overloaded; try again later").After(5 * time.Second)
	errClosing = fault.New(fault.Unavailable, "the engine is stopping")
	errStalled = fault.New(fault.Unavailable, "the database of the user cannot be used now")
)

// Item is one activity on its way into one user's database, as the pipeline made it.
type Item interface {
	Payer() string        // the domain that caused it; empty for this server itself
	ArrivedAt() time.Time // at this server
	Size() int64          // of the activity as it is stored, in bytes
	Outcome() Outcome     // of the last Apply
}

// Outcome is what became of an item, as far as the intake has to know.
type Outcome uint8

// Outcomes of an item.
const (
	Kept      Outcome = iota // it took effect, now or before
	Ignored                  // the user keeps nothing of it
	Contested                // it waits in the journal until another server has said whose its object is
)

// Pipeline is the part of the inbound pipeline that runs once per recipient.
type Pipeline interface {
	// Apply applies a batch in one transaction of the user's database. It is called again when
	// the transaction is repeated.
	Apply(ctx context.Context, tx *db.Tx, batch []Item) error
	// Resume makes items of what waits for u in the journal: one for each row of the page. The
	// error says that nothing can be read now.
	Resume(ctx context.Context, u vocab.Username, page []instance.Waiting) ([]Resumed, error)
	// Settled is told of items once their transaction is committed.
	Settled(items []Item)
	// Ignored is told of an item that none of its recipients keeps.
	Ignored(item Item)
	// SetAside returns the row that keeps an item which cannot be applied because of cause.
	SetAside(u vocab.Username, item Item, cause error) db.Poisoned
}

// Resumed is what the pipeline made of a row of the journal: an item, or nil when nothing is left
// to apply. A row that cannot be read has an error.
type Resumed struct {
	Item Item
	Err  error
}

// Rivals finds out whose an object is that is contested.
type Rivals interface {
	// Ask has the question of a contested item asked, and reports whether u waits for the answer.
	// Otherwise the item is ignored.
	Ask(u vocab.Username, seq int64, item Item) bool
	// IsOpen reports whether u waits for an answer about a row of the journal.
	IsOpen(u vocab.Username, seq int64) bool
	// Forget says that a row waits for u no more.
	Forget(u vocab.Username, seq int64)
}

// Deps is what an intake works with.
type Deps struct {
	Store    *db.Cluster
	Pipeline Pipeline
	Rivals   Rivals
	Places   *policy.Pool    // for entries in memory
	Memory   *policy.Pool    // for bytes of bodies in memory; a body that several users share is counted once
	Backoff  mailbox.Backoff // before a database that cannot be used is tried again
	Log      *slog.Logger
	Metrics  prometheus.Registerer // may be nil
	Now      func() time.Time
}

// Intake takes accepted activities to the databases of their recipients.
type Intake struct {
	Deps
	Backlogs *Backlogs
	journal  *journal
	slots    slots
	work     *Background
	outage   outage
	metrics  metrics

	mu      sync.Mutex // its holder gives activities their numbers and their places in the queues of their recipients
	writers map[vocab.Username]*writer
	closed  bool
}

// New returns an intake. It takes up what lies in the journal with Start.
func New(d Deps) *Intake {
	i := &Intake{Deps: d, Backlogs: newBacklogs(), slots: newSlots(), work: NewBackground(), writers: map[vocab.Username]*writer{}}
	i.metrics = newMetrics(d.Metrics, func() float64 { return float64(len(i.Stalled())) })
	i.journal = newJournal(i)
	return i
}

// Close accepts nothing more and lets the writers finish what they are at. The rest lies in the
// journal, for the next process. The fault is Busy when ctx ends first.
func (i *Intake) Close(ctx context.Context) error {
	for _, w := range i.close() {
		if err := w.box.Close(ctx); err != nil {
			return fault.Wrap(fault.Busy, "inbound work did not end in time", err)
		}
	}
	return i.work.Close(ctx)
}

// close closes the intake, and returns the writers.
func (i *Intake) close() (all []*writer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.work.stop()
	for _, w := range i.writers {
		all = append(all, w)
	}
	return all
}

// writer returns a user's. The caller holds mu.
func (i *Intake) writer(u vocab.Username) *writer {
	w := i.writers[u]
	if w == nil {
		w = newWriter(i, u)
		i.writers[u] = w
	}
	return w
}

// removeIdleWriters removes the writers that have nothing in memory and nothing waiting.
func (i *Intake) removeIdleWriters() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for u, w := range i.writers {
		if w.stall == nil && w.box.IsIdle() {
			delete(i.writers, u)
		}
	}
}

// takePlaces takes places for entries and memory for a payer, both or neither.
func (i *Intake) takePlaces(payer string, entries int, bytes int64) bool {
	if !i.Places.Take(payer, int64(entries)) {
		return false
	}
	if !i.Memory.Take(payer, bytes) {
		i.Places.Give(payer, int64(entries))
		return false
	}
	return true
}

// writeUser runs a transaction of the user's database.
func (i *Intake) writeUser(u vocab.Username, use func(context.Context, *db.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	return i.Store.Write(ctx, u, use)
}

// isPassing reports whether a failure says nothing about the activities, only that they cannot be
// applied now.
func isPassing(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Busy, fault.Config:
		return true
	}
	return false
}
