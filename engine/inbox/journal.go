package inbox

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// journalTime is how long one write to the intake journal may take.
const journalTime = 10 * time.Second

// row is an activity in the intake journal as far as this process has to do with it: requests that are about to write it,
// and entries that are queued. It is ended in the journal when there is none of both.
type row struct {
	key     db.IntakeKey
	payer   string
	writing int // requests
	left    int // entries
	at      db.IntakeRow
	size    int64 // bytes of bodies
	bytes   int64 // of the body and of what was fetched, as it was first written

	kept         bool // somebody keeps the activity, or may yet
	activity, by vocab.ID
	kind, reason string // of an activity that was ignored for somebody
}

// keep makes the activity durable for its recipients in one row of the journal, and hands it to their writers. It waits
// there for those who are parked; refused is the entry of the one recipient who could not take it, and nil for several. When
// too much waits for some of them already, the fault is errBacklog, and the others have it.
func (w *writers) keep(ctx context.Context, x *receiving, raw json.RawMessage, refused *entry) error {
	in := w.inbox.intake(x)
	in.ReceivedAt = w.inbox.Now()
	if refused != nil {
		in.ReceivedAt = refused.x.Now
	}
	r, places, err := w.begin(&in, refused)
	if err != nil {
		return err
	}
	defer w.running.Done()
	for u, e := range places {
		e.x = w.inbox.apply(x, u, raw)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalTime) // who hangs up shall not make the outcome unknown
	defer cancel()
	at, err := w.inbox.Store.Accept(ctx, in)
	w.mu.Lock()
	defer w.mu.Unlock()
	r.writing--
	if err == nil && (at.Seq > r.at.Seq || at.Seq == r.at.Seq && at.Rev > r.at.Rev) {
		r.at = at
	}
	if err != nil {
		w.unreserve(&in, in.Waiting)
	}
	w.drive(r, in.Recipients, places, err)
	for _, u := range in.Waiting {
		w.remove(u, places[u])
		w.parked[u].arrivals++
		w.start(u)
	}
	w.settleRow(r)
	if err == nil && len(in.Recipients)+len(in.Waiting) < len(x.Recipients) {
		return errBacklog
	}
	return err
}

// drive lets recipients' writers apply what lies in the journal, or gives its places up when it could not be written. The
// caller holds mu.
func (w *writers) drive(r *row, recipients []vocab.Username, places map[vocab.Username]*entry, err error) {
	for _, u := range recipients {
		if err == nil {
			r.left++
			places[u].ready = true
		} else {
			w.places.Give(r.payer, 1)
			w.remove(u, places[u])
		}
		w.start(u)
	}
}

// begin sorts out which recipients it waits for, gives it its place in every recipient's queue, counts those who will be
// queued, and announces the row: it is not ended while somebody writes it, and the writers are not closed.
func (w *writers) begin(in *db.Intake, refused *entry) (*row, map[vocab.Username]*entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.rows[in.Key]
	if r == nil {
		r = &row{key: in.Key, payer: in.Payer, bytes: bytesOf(in)}
	}
	all := in.Recipients
	reserved := w.reserve(in, refused)
	queued, size := w.countQueued(in, refused)
	var err error
	switch {
	case len(in.Recipients) == 0:
		err = errBacklog
	case w.closed || !w.takePlaces(r.payer, queued, size):
		w.unreserve(in, reserved)
		err = errFull
	}
	if err != nil {
		if refused != nil {
			w.remove(all[0], refused)
			w.start(all[0])
		}
		return nil, nil, err
	}
	w.rows[in.Key] = r
	places := w.occupy(in, r, refused)
	r.writing++
	w.running.Add(1)
	r.size += size
	return r, places, nil
}

// countQueued returns how many entries an activity will have in memory, and how many bytes. The caller holds mu.
func (w *writers) countQueued(in *db.Intake, refused *entry) (entries int, bytes int64) {
	if refused != nil {
		return 0, 0
	}
	for _, u := range in.Recipients {
		if w.parked[u] == nil {
			entries++
		}
	}
	if entries > 0 {
		bytes = min(int64(len(in.Raw)+len(in.Fetched)), largest)
	}
	return entries, bytes
}

// occupy gives an activity its number and its places, and divides its recipients. The caller holds mu.
func (w *writers) occupy(in *db.Intake, r *row, refused *entry) map[vocab.Username]*entry {
	recipients := in.Recipients
	if refused != nil {
		in.Number, in.Recipients, in.Waiting = refused.number, nil, recipients
		w.park(recipients[0], w.backoff.min)
		return map[vocab.Username]*entry{recipients[0]: refused}
	}
	in.Number, in.Recipients = w.inbox.Store.ArrivalNumber(), nil
	places := make(map[vocab.Username]*entry, len(recipients))
	for _, u := range recipients {
		places[u] = &entry{number: in.Number, row: r}
		w.append(u, places[u])
		if w.parked[u] == nil {
			in.Recipients = append(in.Recipients, u)
		} else {
			in.Waiting = append(in.Waiting, u)
		}
	}
	return places
}

// intake returns the activity as the journal keeps it: with all that applying it needs later, when nobody can be asked.
func (i *Inbox) intake(x *receiving) db.Intake {
	in := db.Intake{Key: db.KeyOf(x.Activity.ID, x.Actor.ID), Raw: x.Activity.Raw, Recipients: x.Recipients, Payer: x.pays()}
	in.Named = slices.DeleteFunc(slices.Clone(x.Recipients), func(u vocab.Username) bool { return !x.meant[u] })
	if x.passer != nil {
		in.Forwarders = []vocab.ID{x.passer.ID}
	}
	in.Fetched = writeFetched(x.fetched, x.reader)
	return in
}

// settleRow lets a row be ended that nobody writes or drives any more. The caller holds mu.
func (w *writers) settleRow(r *row) {
	if r.writing > 0 || r.left > 0 {
		return
	}
	delete(w.rows, r.key)
	w.memory.Give(r.payer, r.size)
	if !r.kept {
		w.inbox.ignored.add(r.activity, r.kind, r.by, r.reason)
	}
	if r.at.Seq == 0 {
		return // it could not be written
	}
	w.done = append(w.done, r.at)
	if len(w.done) == 1 {
		w.running.Add(1)
		go func() { defer w.running.Done(); w.endRows() }()
	}
}

// endRows ends in the journal what nobody drives any more, everything that has come together at once. What cannot be
// ended now is tried again by the next call.
func (w *writers) endRows() {
	w.ending.Lock()
	defer w.ending.Unlock()
	for {
		w.mu.Lock()
		n := min(len(w.done), 1000)
		rows := slices.Clone(w.done[:n])
		w.mu.Unlock()
		if n == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), journalTime)
		err := w.inbox.Store.FinishIntake(ctx, rows)
		cancel()
		if err != nil {
			w.inbox.Log.Warn("rows of the intake journal not ended", "err", err)
			return
		}
		w.mu.Lock()
		w.done = slices.Delete(w.done, 0, n)
		w.mu.Unlock()
	}
}
