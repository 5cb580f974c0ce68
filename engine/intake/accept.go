package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Arrival is an accepted activity with its recipients, of which there is at least one.
type Arrival struct {
	Recipients []vocab.Username
	Unasked    map[vocab.Username]bool     // recipients who follow no actor that sends the activity, while others get it too; see turns
	ItemFor    func(u vocab.Username) Item // returns the activity's item for the recipient u; is also called after Accept has returned
	Row        func() instance.Intake      // returns the activity's row, for all recipients
}

// Accept makes an activity durable for its recipients. For one recipient it waits for the commit
// in that user's database. For several recipients, or for one who is stalled, it waits for the
// commit of the journal.
func (i *Intake) Accept(ctx context.Context, a Arrival) error {
	if len(a.Recipients) > 1 {
		return i.keepInJournal(ctx, a, nil)
	}
	u := a.Recipients[0]
	e, err := i.submitItem(ctx, u, a.ItemFor(u))
	if errors.Is(err, errStalled) {
		return i.keepInJournal(ctx, a, e)
	}
	if err != nil {
		return fmt.Errorf("apply for %s: %w", u, err)
	}
	return nil
}

// entry is one activity that is being applied to one user's database. It keeps its place in the
// user's queue until it is committed or waits in the journal, so that no newer activity is
// applied before it. An entry that a drain applies has only an item.
type entry struct {
	item   Item
	number int64      // its number in the order of arrival
	row    *row       // its row in the journal, or the one to be written there; nil for an entry whose request waits for the commit
	answer chan error // answers the request that waits; nil for an entry with a row
	asked  bool       // false when the user did not ask for the activity, and no request waits for the entry
	given  bool       // true when the request no longer waits
	letter *letter    // its place in the queue; nil for an entry that a drain applies
}

// maxSize limits how many bytes one body counts as. It is a quarter of the pool, so that a single
// large body finds room.
const maxSize = 16 << 20

// parsedSize is how many bytes of memory each byte of an activity takes while it is parsed. Only
// activities that somebody did not ask for count as that many, because they may wait for their
// turns for seconds; all others are applied at once.
const parsedSize = 16

// size returns how many bytes of memory an entry without a row counts as.
func (e *entry) size() int64 { return min(e.item.Size(), maxSize) }

// submitItem queues an item for u's writer and waits for its commit. When ctx ends first, the
// activity may still be committed. When u is stalled, the fault is errStalled, and the entry
// holds its place until keepInJournal has written it to the journal.
func (i *Intake) submitItem(ctx context.Context, u vocab.Username, item Item) (*entry, error) {
	e := &entry{item: item, asked: true, answer: make(chan error, 1)}
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

// giveUp ends the wait of a request for its entry. The entry is still processed. If the entry was
// answered in the meantime, giveUp returns that answer.
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

// uncountEntry releases the place and the memory of an entry without a row.
func (i *Intake) uncountEntry(e *entry) {
	i.Places.Give(e.item.Payer(), 1)
	i.Memory.Give(e.item.Payer(), e.size())
}

// placing is an activity that has its places in the queues and is being written to the journal.
type placing struct {
	in      instance.Intake
	row     *row
	unasked map[vocab.Username]bool
	places  map[vocab.Username]*entry
}

// headStart is the time from the moment when an activity for several recipients is durable until
// their writers begin. The answer to the peer is sent meanwhile. The writers would keep the
// processors from it for as long as a few transactions take.
const headStart = time.Millisecond

// keepInJournal makes the activity durable for its recipients in one row of the journal, and hands
// it to their writers after headStart. For stalled recipients the activity waits in the journal. If
// the only recipient is stalled, the parameter refused is the entry that holds the activity's
// place; otherwise it is nil. Stalled recipients whose backlog is full, or whose drain cannot keep
// up, are left out. Then keepInJournal returns the reason, although the other recipients have the
// activity.
func (i *Intake) keepInJournal(ctx context.Context, a Arrival, refused *entry) error {
	p, refusal, err := i.placeActivity(a.Row(), a.Unasked, refused)
	if err != nil {
		return err
	}
	defer i.work.running.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalTime) // a request that is cancelled must not leave the outcome unknown
	defer cancel()
	at, err := i.Store.Instance.Journal.Accept(ctx, p.in)
	i.noteInstance(err)
	if err != nil {
		i.handOver(p, at, err)
		return err
	}
	i.work.Go(func() {
		i.work.Pause(headStart)
		for _, u := range p.in.Recipients {
			p.places[u].item = a.ItemFor(u)
		}
		i.handOver(p, at, nil)
	})
	return refusal
}

// placeActivity gives an activity its number, its row, and its places in the queues. It leaves out
// stalled recipients whose backlog is full, or whose drain cannot keep up, and returns the reason
// in the result refusal. If it cannot place the activity for any recipient, it returns the reason
// in err.
func (i *Intake) placeActivity(in instance.Intake, unasked map[vocab.Username]bool, refused *entry) (p *placing, refusal, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p = &placing{in: in, unasked: unasked}
	recipients := in.Recipients
	p.row = i.journal.openRow(in)
	refusal = i.reserveBacklogs(&p.in, refused)
	queued, size := i.countQueued(&p.in, refused)
	if len(unasked) > 0 {
		size = min(size*parsedSize, maxSize)
	}
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
		i.Backlogs.giveBack(&p.in)
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

// countQueued returns how many entries the activity will have in the writers' queues, and how
// many bytes of memory they take. The caller holds mu.
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

// occupyPlaces gives an activity its number and its places in the queues. Recipients whose writers
// will apply the activity stay in p.in.Recipients; stalled recipients go to p.in.Waiting. The
// caller holds mu.
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
		w, e := i.writer(u), &entry{number: p.in.Number, row: p.row, asked: !p.unasked[u]}
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

// handOver lets the recipients' writers apply an activity whose row was written; the parameter
// "at" identifies that row. If err is not nil, the row could not be written, and handOver gives up
// the activity's places.
func (i *Intake) handOver(p *placing, at instance.IntakeRow, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil {
		i.Backlogs.settle(&p.in)
	} else {
		i.Backlogs.giveBack(&p.in)
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
