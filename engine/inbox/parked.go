package inbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	pageBytes = 4 << 20               // of what waits for one user, in memory at once
	lull      = 20 * time.Millisecond // until a drain looks again that found nothing while something is on its way
)

// parked is a user who cannot take anything now, or is still taking what came meanwhile: the user's order holds, so that
// whatever comes goes into the journal first. It is left when nothing waits and nothing is on its way there. Fields are
// guarded by the writers' mu.
type parked struct {
	since    time.Time
	told     bool // the operator was
	arrivals int  // requests that have written what waits
	spills   int  // of the queue that failed, one after the other
}

// backoff says how long to wait before something is tried again.
type backoff struct{ min, max time.Duration }

func (b backoff) after(failures int) time.Duration {
	return min(b.min<<min(failures, 20), b.max)
}

// drains bounds how many users are looked after at once.
type drains struct{ probes, pages chan struct{} }

func newDrains() drains { return drains{make(chan struct{}, 16), make(chan struct{}, 8)} }

// park returns u's parking, and begins it when there is none: a drain looks after the user, first after a while. The
// caller holds mu.
func (w *writers) park(u vocab.Username, after time.Duration) *parked {
	p := w.parked[u]
	if p == nil {
		p = &parked{since: time.Now()}
		w.parked[u] = p
		if !w.closed {
			w.running.Add(1)
			go w.drain(u, p, after)
		}
	}
	return p
}

// trouble tells the operator once why u takes nothing. The caller holds mu.
func (w *writers) trouble(u vocab.Username, p *parked, cause error) {
	if !p.told {
		p.told = true
		w.inbox.Log.Warn("user parked", "user", u, "err", cause, "hint", cmp.Or(fault.Hint(cause), "lightweb db status"))
	}
}

// spill puts what is queued for a user who is parked into the journal, where it waits, and tells those who wait
// themselves. While the journal cannot be written either, everything stays in memory.
func (w *writers) spill(u vocab.Username) {
	kept, seqs := w.divide(u)
	if len(kept) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), journalTime)
	defer cancel()
	err := w.inbox.Store.Park(ctx, u, seqs)
	if err != nil {
		w.inbox.Log.Warn("intake journal not written", "user", u, "err", err)
	}
	w.pause(w.spilled(u, kept, err))
}

// divide tells those who wait themselves to come to the journal, where their activities keep their places, and returns what
// lies there, with its rows.
func (w *writers) divide(u vocab.Username) (kept []*entry, seqs []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range slices.Clone(w.queues[u].entries) {
		switch {
		case !e.ready:
		case e.done != nil:
			w.refuse(u, e)
		default:
			kept, seqs = append(kept, e), append(seqs, e.row.at.Seq)
		}
	}
	return kept, seqs
}

// refuse lets who waits for an entry bring it to the journal; nobody does when its request has given up. The caller holds mu.
func (w *writers) refuse(u vocab.Username, e *entry) {
	w.uncount(e)
	e.ready = false
	if e.given {
		w.remove(u, e)
	}
	e.done <- errParked
}

// spilled lets go of what waits in the journal now, and returns when to go on.
func (w *writers) spilled(u vocab.Username, kept []*entry, err error) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.parked[u]
	if err == nil {
		p.spills = 0
		for _, e := range kept {
			e.x.outcome = ""                                // of a transaction that failed
			w.backlog(u).spend(e.row.payer, 1, e.row.bytes) // it was accepted: nobody is asked whether it may
		}
		w.letGo(u, kept, nil)
		return 0
	}
	p.spills++
	return w.backoff.after(p.spills - 1)
}

// pause waits, and tells whether the writers go on.
func (w *writers) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.closing:
		return false
	case <-t.C:
		return true
	}
}

// drain applies what waits for u, page by page and in order, until u is parked no more. It tries again for as long as it
// takes.
func (w *writers) drain(u vocab.Username, p *parked, wait time.Duration) {
	defer w.running.Done()
	failures, drained, usable := 0, 0, false
	for w.pause(wait) {
		arrivals := w.arrivals(p)
		n, more, err := 0, false, error(nil)
		if !usable {
			err = w.probe(u)
		}
		if err == nil {
			n, more, err = w.drainPage(u)
		}
		drained += n
		usable = err == nil
		switch {
		case err != nil:
			w.mu.Lock()
			w.trouble(u, p, err)
			w.mu.Unlock()
			wait = w.backoff.after(failures)
			failures++
		case n > 0:
			wait, failures = 0, 0
		case !more && w.unpark(u, p, arrivals, drained): // nothing may stay that the writer would overtake
			return
		default:
			wait = lull
		}
	}
}

func (w *writers) arrivals(p *parked) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return p.arrivals
}

// unpark lets u's writer apply again what comes, unless something has arrived since, or is about to.
func (w *writers) unpark(u vocab.Username, p *parked, arrivals, drained int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues[u] != nil || p.arrivals != arrivals {
		return false
	}
	delete(w.parked, u)
	delete(w.backlogs, u)
	if p.told || drained > 0 {
		w.inbox.Log.Info("user drained", "user", u, "activities", drained, "took", time.Since(p.since))
	}
	return true
}

// hold takes a slot, and tells whether the writers go on. The slot is to be given back by release.
func (w *writers) hold(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-w.closing:
		return false
	}
}

var errClosing = fault.New(fault.Unavailable, "the engine is stopping")

// probe returns why u can take nothing now. What waits for a user who was deleted is dropped.
func (w *writers) probe(u vocab.Username) error {
	if !w.hold(w.drains.probes) {
		return errClosing
	}
	defer func() { <-w.drains.probes }()
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	row, err := w.inbox.Store.User(ctx, u)
	switch {
	case err != nil:
		return err
	case row.State == db.UserDeleted:
		_, err := w.inbox.Store.DropWaiting(ctx, u)
		return err
	case row.State != db.UserActive:
		return fault.New(fault.Unavailable, "the user is "+row.State)
	}
	return w.inbox.Store.Read(ctx, u, func(context.Context, *db.Tx) error { return nil })
}

// drainPage applies the first of what waits for u, up to what is older than everything in memory, and returns how many
// that were, and whether more waits that is newer.
func (w *writers) drainPage(u vocab.Username) (drained int, more bool, err error) {
	if !w.hold(w.drains.pages) {
		return 0, false, errClosing
	}
	defer func() { <-w.drains.pages }()
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	oldest := w.oldest(u) // before the journal is read: what is older waits there by then, or has taken effect
	page, more, err := w.page(ctx, u, oldest)
	if err != nil || len(page) == 0 {
		return 0, more, err
	}
	var batch []*entry
	var of, ended []db.IntakeRow // of the batch, and done with
	for _, waiting := range page {
		x, err := w.resume(ctx, u, waiting)
		switch {
		case err != nil:
			return 0, false, err
		case x == nil:
			ended = append(ended, waiting.IntakeRow)
		default:
			batch, of = append(batch, &entry{x: x}), append(of, waiting.IntakeRow)
		}
	}
	var left []*entry
	var cause error
	if len(batch) > 0 {
		left, cause = w.settle(u, batch, w.commit(u, func() []*entry { return batch }))
	}
	for n, e := range batch[:len(batch)-len(left)] {
		if e.x.outcome == outcomeContested {
			if w.inbox.rivals.ask(u, of[n].Seq, e.x) {
				continue
			}
			w.inbox.rivals.lose(e.x)
		}
		ended = append(ended, of[n])
	}
	finishing, stop := context.WithTimeout(context.Background(), journalTime)
	defer stop()
	if _, err := w.inbox.Store.FinishWaiting(finishing, u, ended); err != nil {
		return 0, false, err
	}
	w.shorten(u, page, ended)
	for _, row := range ended {
		w.inbox.rivals.forget(u, row.Seq)
	}
	return len(ended), more, cause
}

// resume makes of what waits what is to be applied; nil when nothing is left to do about it. What cannot be read any more is
// set aside.
func (w *writers) resume(ctx context.Context, u vocab.Username, waiting db.Waiting) (*applying, error) {
	x, err := w.inbox.again(ctx, u, waiting)
	switch {
	case passing(err):
		return nil, err
	case errors.Is(err, errSenderGone):
		w.inbox.ignored.lost(waiting.Raw)
		return nil, nil
	case err != nil:
		return nil, w.poison(u, db.Poisoned{URI: idOf(waiting.Raw), Raw: waiting.Raw, Forwarders: waiting.Forwarders}, err)
	case !w.inbox.rivals.take(waiting.Seq, x):
		w.inbox.rivals.lose(x)
		return nil, nil
	}
	return x, nil
}

// page returns the first of what waits for u and came before a number, without that about which its server is being asked,
// and whether more waits that is newer.
func (w *writers) page(ctx context.Context, u vocab.Username, before int64) (page []db.Waiting, more bool, err error) {
	for after := int64(0); len(page) == 0 && !more; {
		if page, err = w.inbox.Store.WaitingFor(ctx, u, after, maxBatch, pageBytes); err != nil || len(page) == 0 {
			return nil, false, err
		}
		after = page[len(page)-1].Seq
		more = after >= before
		page = slices.DeleteFunc(page, func(waiting db.Waiting) bool {
			return waiting.Seq >= before || w.inbox.rivals.isOpen(u, waiting.Seq)
		})
	}
	return page, more, nil
}
