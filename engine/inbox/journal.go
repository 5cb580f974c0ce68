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
	writing int // requests
	left    int // entries
	at      db.IntakeRow
	size    int64 // bytes of bodies
}

// keep makes the activity durable for its recipients in one row of the journal, and hands it to their writers. It waits
// there for those who are parked, and with wait for all.
func (w *writers) keep(ctx context.Context, x *receiving, raw json.RawMessage, wait bool) error {
	in := w.inbox.intake(x)
	r, err := w.begin(&in, wait)
	if err != nil {
		return err
	}
	defer w.running.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalTime) // who hangs up shall not make the outcome unknown
	defer cancel()
	at, err := w.inbox.Store.Accept(ctx, in)
	w.mu.Lock()
	defer w.mu.Unlock()
	r.writing--
	if err == nil {
		if at.Seq > r.at.Seq || at.Seq == r.at.Seq && at.Rev > r.at.Rev {
			r.at = at
		}
		r.left += len(in.Recipients)
		for _, u := range in.Recipients {
			w.push(u, &entry{x: w.inbox.apply(x, u, raw), row: r})
		}
	} else {
		w.waiting -= len(in.Recipients)
	}
	w.settleRow(r)
	for _, u := range in.Waiting {
		w.parked[u].arrived()
	}
	return err
}

// begin sorts out for whom the activity waits, counts those who will be queued, and announces the row: it is not ended
// while somebody writes it, and the writers are not closed.
func (w *writers) begin(in *db.Intake, wait bool) (*row, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full() {
		return nil, errFull
	}
	recipients := in.Recipients
	in.Recipients = nil
	for _, u := range recipients {
		if !wait && w.parked[u] == nil {
			in.Recipients = append(in.Recipients, u)
			continue
		}
		w.park(u, w.backoff.min).arriving++
		in.Waiting = append(in.Waiting, u)
	}
	r := w.rows[in.Key]
	if r == nil {
		r = &row{key: in.Key}
		w.rows[in.Key] = r
	}
	r.writing++
	w.running.Add(1)
	w.waiting += len(in.Recipients)
	if len(in.Recipients) > 0 {
		size := int64(len(in.Raw) + len(in.Fetched))
		r.size += size
		w.held += size
	}
	return r, nil
}

// intake returns the activity as the journal keeps it: with all that applying it needs later, when nobody can be asked.
func (i *Inbox) intake(x *receiving) db.Intake {
	in := db.Intake{Key: db.KeyOf(x.Activity.ID, x.Actor.ID), Raw: x.Activity.Raw, Recipients: x.Recipients}
	in.Named = slices.DeleteFunc(slices.Clone(x.Recipients), func(u vocab.Username) bool { return !x.meant[u] })
	fetched := make(map[vocab.ID]json.RawMessage, len(x.fetched))
	for id, o := range x.fetched {
		fetched[id] = o.Doc.JSON()
	}
	in.Fetched, _ = json.Marshal(fetched) // of documents that were parsed
	return in
}

// settleRow lets a row be ended that nobody writes or drives any more. The caller holds mu.
func (w *writers) settleRow(r *row) {
	if r.writing > 0 || r.left > 0 {
		return
	}
	delete(w.rows, r.key)
	w.held -= r.size
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
