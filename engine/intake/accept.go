package intake

import (
	"context"
	"errors"
	"fmt"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Arrival is an accepted activity for its recipients. There is one at least.
type Arrival struct {
	Recipients []vocab.Username
	Item       func(u vocab.Username) Item // the activity for one of them
	Row        func() instance.Intake      // the activity as the journal keeps it, for all of them
}

// Accept makes an activity durable for its recipients. For one recipient it waits for the commit
// in that user's database; for several, or for one who is stalled, for that of the journal.
func (i *Intake) Accept(ctx context.Context, a Arrival) error {
	if len(a.Recipients) > 1 {
		return i.keepInJournal(ctx, a, nil)
	}
	u := a.Recipients[0]
	e, err := i.submitItem(ctx, u, a.Item(u))
	if errors.Is(err, errStalled) {
		return i.keepInJournal(ctx, a, e)
	}
	if err != nil {
		return fmt.Errorf("apply for %s: %w", u, err)
	}
	return nil
}

// entry is one activity on its way into one user's database. It keeps its place in the user's
// queue until it is committed or waits in the journal, so that nothing newer overtakes it on
// another way.
type entry struct {
	item   Item
	number int64      // of its arrival
	row    *row       // in the journal, or about to be written there; nil for one that a request waits for
	answer chan error // to the request that waits; nil for one with a row
	given  bool       // up by the request
	letter *letter    // nil for one that a drain applies
}

// maxSize is what one body counts at most, so that a single one always finds room.
const maxSize = 1 << 20

// size returns how many bytes an entry without a row holds in memory.
func (e *entry) size() int64 { return min(e.item.Size(), maxSize) }

// submitItem queues an item for u's writer and waits for its commit. When ctx ends first the
// activity may still be committed. When u is stalled the fault is errStalled, and the entry holds
// its place until keepInJournal has brought it to the journal.
func (i *Intake) submitItem(ctx context.Context, u vocab.Username, item Item) (*entry, error) {
	e := &entry{item: item, answer: make(chan error, 1)}
	if err := i.queueEntry(u, e); err != nil {
		return e, err
	}
	select {
	case err := <-e.answer:
		return e, err
	case <-ctx.Done():
		return e, i.giveUp(ctx, e)
	}
}

// queueEntry gives an entry its number and its place in u's queue.
func (i *Intake) queueEntry(u vocab.Username, e *entry) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return errFull
	}
	w := i.writer(u)
	defers := w.isDeferring()
	if !defers && !i.takePlaces(e.item.Payer(), 1, e.size()) {
		return errFull
	}
	e.number = i.Store.Instance.Journal.AssignNumber()
	if err := w.reserve(e); err != nil {
		if !defers {
			i.uncountEntry(e)
		}
		return errFull
	}
	if defers {
		return errStalled
	}
	w.release(e)
	return nil
}

// giveUp lets an entry go on without the request that waits for it, unless it was just answered.
func (i *Intake) giveUp(ctx context.Context, e *entry) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	select {
	case err := <-e.answer:
		return err
	default:
	}
	e.given = true
	return fault.Wrap(fault.Busy, "time ran out", ctx.Err())
}

// uncountEntry says that an entry without a row takes no memory any more.
func (i *Intake) uncountEntry(e *entry) {
	i.Places.Give(e.item.Payer(), 1)
	i.Memory.Give(e.item.Payer(), e.size())
}

// placing is an activity that has its places and is being written to the journal.
type placing struct {
	in     instance.Intake
	row    *row
	places map[vocab.Username]*entry
}

// keepInJournal makes the activity durable for its recipients in one row of the journal, and
// hands it to their writers. It waits in the journal for those who are stalled. refused is the
// entry of the one recipient who is; nil for several. When some recipients may not have more
// waiting, the others have it and the fault says so.
func (i *Intake) keepInJournal(ctx context.Context, a Arrival, refused *entry) error {
	p, refusal, err := i.placeActivity(a.Row(), refused)
	if err != nil {
		return err
	}
	defer i.work.running.Done()
	if refused == nil {
		for u, e := range p.places {
			e.item = a.Item(u)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalTime) // who hangs up shall not make the outcome unknown
	defer cancel()
	at, err := i.Store.Instance.Journal.Accept(ctx, p.in)
	i.noteInstance(err)
	i.handOver(p, at, err)
	if err != nil {
		return err
	}
	return refusal
}

// placeActivity gives an activity its number, its places and its row, unless there is no room.
// Recipients who may not have more waiting are left out; refusal says why.
func (i *Intake) placeActivity(in instance.Intake, refused *entry) (p *placing, refusal, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p = &placing{in: in}
	recipients := in.Recipients
	p.row = i.journal.openRow(in)
	reserved, refusal := i.reserveBacklogs(&p.in, refused)
	queued, size := i.countQueued(&p.in, refused)
	switch {
	case len(p.in.Recipients) == 0:
		err = refusal
	case i.closed || !i.takePlaces(p.row.payer, queued, size):
		err = errFull
	default:
		if err = i.occupyPlaces(p, refused); err != nil {
			i.Places.Give(p.row.payer, int64(queued))
			i.Memory.Give(p.row.payer, size)
		}
	}
	if err != nil {
		i.Backlogs.giveBack(&p.in, reserved)
		i.journal.closeRow(p.row)
		if refused != nil {
			i.writers[recipients[0]].withdraw(refused)
		}
		return nil, nil, err
	}
	i.journal.growRow(p.row, size)
	i.work.running.Add(1)
	return p, refusal, nil
}

// countQueued returns how many entries an activity will have in memory for writers, and how many
// bytes. The caller holds mu.
func (i *Intake) countQueued(in *instance.Intake, refused *entry) (entries int, bytes int64) {
	if refused != nil {
		return 0, 0
	}
	for _, u := range in.Recipients {
		if !i.writer(u).isDeferring() {
			entries++
		}
	}
	if entries > 0 {
		bytes = min(bytesOf(in), maxSize)
	}
	return entries, bytes
}

// occupyPlaces gives an activity its number and its places, and divides its recipients: those who
// are stalled wait. The caller holds mu.
func (i *Intake) occupyPlaces(p *placing, refused *entry) error {
	recipients := p.in.Recipients
	p.in.Recipients = nil
	if refused != nil {
		u := recipients[0]
		p.in.Number, p.in.ReceivedAt, p.in.Waiting = refused.number, refused.item.ArrivedAt(), recipients
		p.places = map[vocab.Username]*entry{u: refused}
		i.writer(u).beginStall(i.Backoff.Min)
		return nil
	}
	p.in.Number, p.in.ReceivedAt = i.Store.Instance.Journal.AssignNumber(), i.Now()
	p.places = make(map[vocab.Username]*entry, len(recipients))
	for _, u := range recipients {
		w, e := i.writer(u), &entry{number: p.in.Number, row: p.row}
		if err := w.reserve(e); err != nil {
			for u, e := range p.places {
				i.writers[u].withdraw(e)
			}
			return errFull
		}
		p.places[u] = e
		if w.isDeferring() {
			p.in.Waiting = append(p.in.Waiting, u)
		} else {
			p.in.Recipients = append(p.in.Recipients, u)
		}
	}
	return nil
}

// handOver lets recipients' writers apply what lies in the journal at a row. When it could not be
// written, err says so, and its places are given up.
func (i *Intake) handOver(p *placing, at instance.IntakeRow, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		i.Backlogs.giveBack(&p.in, p.in.Waiting)
	}
	for _, u := range p.in.Recipients {
		w, e := i.writers[u], p.places[u]
		if err == nil {
			i.journal.driveRow(p.row)
			w.release(e)
		} else {
			i.Places.Give(p.row.payer, 1)
			w.withdraw(e)
		}
	}
	for _, u := range p.in.Waiting {
		i.writers[u].withdraw(p.places[u])
	}
	i.journal.noteWritten(p.row, at, err)
}
