// Package intake applies accepted activities to the databases of their recipients. An activity is
// durable before it is acknowledged. Each activity is applied once, in the order of arrival. Only
// a contested activity (see Rivals) waits while newer ones are applied.
//
// An activity for one user goes to that user's writer. An activity for several users, or for a
// user whose database cannot be used now, goes to the intake journal first. A user whose database
// cannot be used is stalled until a drain has applied all activities that wait in the journal for
// the user.
package intake

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxBatch    = 100              // activities in one transaction
	applyTime   = 30 * time.Second // for one transaction, including the wait for a connection
	journalTime = 10 * time.Second // for one write to the intake journal
)

var (
	errFull    = fault.New(fault.Unavailable, "the engine is overloaded; try again later").After(5 * time.Second)
	errClosing = fault.New(fault.Unavailable, "the engine is stopping")
	errStalled = fault.New(fault.Unavailable, "the database of the user cannot be used now")
)

// Item is one activity that is being applied to one user's database, as the pipeline built it.
type Item interface {
	Payer() string        // the domain that caused it; empty for this server itself
	ArrivedAt() time.Time // when it arrived at this server
	Size() int64          // of the stored activity, in bytes
	IsLarge() bool        // whether only a few such items may be applied at the same time
	Outcome() Outcome     // the outcome of the last Apply
}

// Outcome is the result of an item, as far as the intake needs it.
type Outcome uint8

// Outcomes of an item.
const (
	Kept      Outcome = iota // it took effect, now or before, or was set aside
	Ignored                  // the user stores nothing of it
	Contested                // it waits in the journal until another server has said which actor owns its object
)

// Pipeline is the part of the inbound pipeline that runs once per recipient.
type Pipeline interface {
	// Apply applies a batch in one transaction of the user's database. It is called again when
	// the transaction is repeated.
	Apply(ctx context.Context, tx *user.Tx, batch []Item) error
	// Resume builds the items of a page of rows that wait for u in the journal. It returns one
	// result for each row. An error means that no row can be read now.
	Resume(ctx context.Context, u vocab.Username, page []instance.Waiting) ([]Resumed, error)
	// Settled receives items whose transaction is committed, or that were set aside.
	Settled(items []Item)
	// Ignored receives an item that none of its recipients stores.
	Ignored(item Item)
	// SetAside returns the row that stores an item which cannot be applied because of cause.
	SetAside(u vocab.Username, item Item, cause error) user.Poisoned
}

// Resumed is the item that the pipeline built from a row of the journal, or nil when nothing is
// left to apply. For a row that cannot be read, Err is set.
type Resumed struct {
	Item Item
	Err  error
}

// Rivals finds out which actor owns an object when two actors use its id.
type Rivals interface {
	// Ask starts to ask another server about a contested item, whose row has the number seq. It
	// reports whether u waits for the answer. If not, the item is ignored.
	Ask(u vocab.Username, seq int64, item Item) bool
	// IsOpen reports whether u waits for an answer about a row of the journal.
	IsOpen(u vocab.Username, seq int64) bool
	// Open returns the rows about which users wait for an answer, with these users.
	Open() map[int64][]vocab.Username
	// Forget records that a row no longer waits for u.
	Forget(u vocab.Username, seq int64)
}

// Deps holds the dependencies of an intake.
type Deps struct {
	Store    *db.Cluster
	Pipeline Pipeline
	Rivals   Rivals
	Places   *policy.Pool    // for entries in memory
	Memory   *policy.Pool    // for bytes of bodies in memory; a body that several users share is counted once
	Large    chan struct{}   // has a place for each large item that may be applied at the same time
	Backoff  mailbox.Backoff // the wait before a database that could not be used is tried again
	Log      *slog.Logger
	Metrics  prometheus.Registerer // may be nil
	Now      func() time.Time
}

// Intake brings accepted activities to the databases of their recipients.
type Intake struct {
	Deps
	Backlogs *Backlogs
	journal  *journal
	slots    slots
	turns    *turns
	work     *Background
	outage   outage
	metrics  metrics
	tendTime time.Duration // the time of Tend, of TakeStrays and of each group of rows that is ended; shorter in tests

	mu      sync.Mutex // held while an activity gets its number and its places in the recipients' queues
	writers map[vocab.Username]*writer
	closed  bool
}

// New returns an intake. Start makes it apply the activities that an earlier process left in the
// journal.
func New(d Deps) *Intake {
	i := &Intake{Deps: d, Backlogs: newBacklogs(), slots: newSlots(), turns: newTurns(), work: NewBackground(d.Log), tendTime: journalTime, writers: map[vocab.Username]*writer{}}
	i.metrics = newMetrics(d.Metrics, func() float64 { return float64(len(i.Stalled())) })
	i.journal = newJournal(i)
	return i
}

// Close refuses new activities and lets the writers finish their current work. The rest stays in
// the journal for the next process. The fault is Busy when ctx ends first.
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

// writer returns the writer of a user. The caller holds mu.
func (i *Intake) writer(u vocab.Username) *writer {
	w := i.writers[u]
	if w == nil {
		w = newWriter(i, u)
		i.writers[u] = w
	}
	return w
}

// removeIdleWriters removes the writers that have no entries in memory and whose user is not
// stalled.
func (i *Intake) removeIdleWriters() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for u, w := range i.writers {
		if w.stall == nil && w.box.IsIdle() {
			delete(i.writers, u)
		}
	}
}

// takePlaces reserves places for a number of entries, and a number of bytes of memory, in the name
// of a payer. If there is no room for both, it reserves nothing and returns false.
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
func (i *Intake) writeUser(u vocab.Username, use func(context.Context, *user.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	return i.Store.Write(ctx, u, use)
}

// isOwnTrouble reports whether a failure is temporary, which means that the activities cannot be
// applied now, but none of them is the cause.
func isOwnTrouble(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Busy, fault.Config:
		return true
	}
	return false
}
