package intake

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// spillEvery is the longest wait between two tries to write entries from memory to the journal.
const spillEvery = 5 * time.Second

type letter = mailbox.Letter[*entry]

// writer commits the entries that are queued for one user, in order and in batches. For a stalled
// user it commits nothing. Instead, it moves the entries to the journal, from which the user's
// drain applies them.
type writer struct {
	intake *Intake
	user   vocab.Username
	box    *mailbox.Mailbox[*user.Tx, *entry]

	// Guarded by the intake's mu.
	stall *stall        // nil while the user is not stalled
	asked int64         // the number of the last entry that the user asked for
	turn  *turn         // the turn that the writer waits for or has, or had last
	hurry chan struct{} // closed when such an entry arrives or the user is stalled; nil unless the writer waits for its turn
}

func newWriter(i *Intake, u vocab.Username) *writer {
	w := &writer{intake: i, user: u}
	w.box = mailbox.New(mailbox.Owner[*user.Tx, *entry]{Slot: w.connect, Alone: isLarge, Handle: w.applyBatch, Settle: w.settleBatch, Panicked: w.reportPanic},
		mailbox.Limits{Letters: int(policy.Queue.Pool), Batch: maxBatch, Backoff: mailbox.Backoff{Min: i.Backoff.Min, Max: min(i.Backoff.Max, spillEvery)}})
	return w
}

// reserve gives an entry the next place in the queue. The caller holds the intake's mu.
func (w *writer) reserve(e *entry) (err error) {
	e.letter, err = w.box.Reserve(e, func(err error) {
		if e.row == nil {
			w.intake.uncountEntry(e)
			e.answer <- err
			return
		}
		w.intake.Places.Give(e.row.payer, 1)
		w.intake.journal.endEntry(e, err)
	})
	switch {
	case err != nil:
	case e.asked:
		w.asked = e.number
		w.endWait()
	case w.hurry != nil:
		w.intake.turns.askToo(w.turn, e.row.payer)
	}
	return err
}

// release lets the writer commit an entry, unless the entry is held back while a drain catches up.
// The caller holds the intake's mu.
func (w *writer) release(e *entry) {
	if w.stall != nil && w.stall.holdBack(e) {
		return
	}
	e.letter.Release()
}

// withdraw gives up the place of an entry that waits in the journal, or could not be written
// there. The caller holds the intake's mu.
func (w *writer) withdraw(e *entry) {
	if w.stall != nil {
		w.stall.arrivals++
	}
	e.letter.Withdraw()
}

// isLarge says whether the item of an entry is large. A large item is applied alone, so that
// connect knows of it before the batch is formed.
func isLarge(e *entry) bool { return e.item.IsLarge() }

// connect runs a transaction of the user's database, if the writer may commit now.
func (w *writer) connect(use func(context.Context, *user.Tx) error) error {
	defer w.takeTurn()()
	if first, ok := w.box.First(); ok {
		defer w.intake.takeLarge(first)()
	}
	if err := w.checkUsable(); err != nil {
		return err
	}
	return w.intake.writeUser(w.user, use)
}

// takeTurn waits for the writer's turn, if its user asked for none of its entries. It waits no
// longer when an entry arrives for which the user asked, when the user is stalled, or when the
// intake closes. The result ends the turn.
func (w *writer) takeTurn() (end func()) {
	turn, hurry := w.beginWait()
	if turn == nil {
		return func() {}
	}
	select {
	case <-turn.begun:
	case <-hurry:
	case <-w.intake.work.closing:
	}
	turns := w.intake.turns
	leave := sync.OnceFunc(func() { turns.leave(turn) })
	slow := time.AfterFunc(turns.slow, leave)
	return func() {
		slow.Stop()
		leave()
	}
}

// beginWait returns the turn for which the writer has to wait, and a channel that is closed when it
// need not wait any longer. The turn is nil if the writer need not wait.
func (w *writer) beginWait() (*turn, chan struct{}) {
	w.intake.mu.Lock()
	defer w.intake.mu.Unlock()
	first, ok := w.box.First()
	if !ok || first.number <= w.asked || w.stall != nil {
		return nil, nil
	}
	w.turn, w.hurry = w.intake.turns.ask(first.item.Payer()), make(chan struct{})
	return w.turn, w.hurry
}

// endWait ends the writer's wait for its turn. The caller holds the intake's mu.
func (w *writer) endWait() {
	if w.hurry != nil {
		close(w.hurry)
		w.hurry = nil
	}
}

// checkUsable returns the reason why the writer may commit nothing now, or nil. If the intake is
// closed and the first entry has a row, the reason is errClosing, because the next process applies
// the row.
func (w *writer) checkUsable() error {
	w.intake.mu.Lock()
	defer w.intake.mu.Unlock()
	if first, ok := w.box.First(); ok && first.row != nil && w.intake.closed {
		return errClosing
	}
	if w.stall != nil {
		return errStalled
	}
	return nil
}

func (w *writer) applyBatch(ctx context.Context, tx *user.Tx, batch []*letter) error {
	return w.intake.Pipeline.Apply(ctx, tx, itemsOf(entriesOf(batch)))
}

// settleBatch answers a committed batch. If the batch failed, settleBatch moves it to the
// journal, leaves it to the next process, or settles it again in halves.
func (w *writer) settleBatch(batch []*letter, err error) error {
	switch {
	case errors.Is(err, errClosing):
		w.leaveToJournal(batch)
		return nil
	case errors.Is(err, errStalled):
		return w.spill(batch)
	}
	if left, cause := w.intake.settleBatch(w.user, entriesOf(batch), err); cause != nil {
		w.putOff(left, cause)
	}
	return nil
}

// leaveToJournal leaves the entries with rows to the next process. Requests that queued behind
// them are asked to try again later.
func (w *writer) leaveToJournal(batch []*letter) {
	for _, l := range batch {
		if l.Value.row == nil {
			l.Answer(errFull)
		} else {
			l.Answer(errClosing)
		}
	}
}

// putOff stalls the user, because the entries in the parameter left cannot be applied now. They
// stay first in the queue. But if the first of them could not even be set aside and has no row,
// putOff refuses the request of that entry instead, so that the peer can send the activity again.
func (w *writer) putOff(left []*entry, cause error) {
	if !isOwnTrouble(cause) && left[0].row == nil {
		left[0].letter.Answer(cause)
		return
	}
	w.intake.mu.Lock()
	defer w.intake.mu.Unlock()
	w.beginStall(w.intake.Backoff.Min)
	w.reportStall(cause)
}

// spill makes the rows of a batch wait in the journal. It tells the requests of entries without a
// row to write a row. While the journal cannot be written either, the entries stay in memory.
func (w *writer) spill(batch []*letter) error {
	kept := w.refuse(entriesOf(batch))
	if len(kept) == 0 {
		return nil
	}
	i := w.intake
	seqs := make([]int64, len(kept))
	for n, e := range kept {
		seqs[n] = i.journal.placeOf(e.row).Seq
	}
	ctx, cancel := context.WithTimeout(context.Background(), journalTime)
	defer cancel()
	err := i.Store.Instance.Journal.Stall(ctx, w.user, seqs)
	i.noteInstance(err)
	if err != nil {
		i.Log.Warn("intake journal not written", "user", w.user, "err", err)
		return err
	}
	w.countArrival()
	for _, e := range kept {
		i.Backlogs.Of(w.user).spend(e.row.payer, 1, e.row.bytes) // it was accepted already, so it may wait even beyond the bound
		i.journal.letWait(e.row)
		e.letter.Answer(nil)
	}
	return nil
}

// refuse tells the requests of entries without a row to write their entries to the journal. These
// entries keep their places, but an entry whose request no longer waits is dropped. refuse returns
// the entries that have a row.
func (w *writer) refuse(batch []*entry) (kept []*entry) {
	w.intake.mu.Lock()
	defer w.intake.mu.Unlock()
	for _, e := range batch {
		if e.row != nil {
			kept = append(kept, e)
			continue
		}
		w.intake.uncountEntry(e)
		e.letter.Withhold()
		if e.given {
			e.letter.Withdraw()
		}
		e.answer <- errStalled
	}
	return kept
}

// countArrival makes the user's drain read the journal again before it ends.
func (w *writer) countArrival() {
	w.intake.mu.Lock()
	defer w.intake.mu.Unlock()
	if w.stall != nil {
		w.stall.arrivals++
	}
}

func (w *writer) reportPanic(value any, stack []byte) {
	w.intake.Log.Error("writer panicked", "user", w.user, "err", value, "stack", string(stack))
}

func entriesOf(batch []*letter) []*entry {
	entries := make([]*entry, len(batch))
	for n, l := range batch {
		entries[n] = l.Value
	}
	return entries
}

func itemsOf(batch []*entry) []Item {
	items := make([]Item, len(batch))
	for n, e := range batch {
		items[n] = e.item
	}
	return items
}
