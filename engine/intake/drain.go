package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	pageBytes = 4 << 20               // bytes of waiting rows that a drain reads at a time
	lull      = 20 * time.Millisecond // the wait of a drain that found no row although one is being written
)

// slots limits how many users are probed, and how many pages are applied, at the same time.
type slots struct{ probes, pages chan struct{} }

func newSlots() slots { return slots{make(chan struct{}, 16), make(chan struct{}, 8)} }

// drain applies the rows that wait in the journal for one user, page by page and in order, until
// the user is no longer stalled. It retries without limit.
type drain struct {
	intake   *Intake
	writer   *writer
	stall    *stall
	limit    int // activities in a page; halved when a page exceeds its time
	failures int // consecutive failures
	applied  int
	usable   bool // whether the user's database could be used the last time
}

// page holds the rows that a drain has read from the journal together.
type page struct {
	rows  []instance.Waiting
	newer bool // some row that was read is not older than the oldest entry in memory
	short bool // fewer rows wait than a page can hold
}

// run applies pages until the stall has ended or the intake closes. It may be called again after a
// panic.
func (d *drain) run(wait time.Duration) {
	defer d.releaseHeldBack() // also after a panic, because the intake may close before the next call
	for d.intake.work.pauseOr(wait, d.stall.wake) {
		arrivals := d.countArrivals()
		p, n, err := d.drainNext()
		d.applied += n
		switch {
		case err != nil:
			wait = d.noteFailure(err)
		case d.endStall(p, arrivals):
			return
		default:
			wait = d.planNext(p, n)
		}
	}
}

// releaseHeldBack releases the entries that are held back.
func (d *drain) releaseHeldBack() {
	d.intake.mu.Lock()
	defer d.intake.mu.Unlock()
	d.stall.releaseHeldBack()
}

// drainNext applies the next page.
func (d *drain) drainNext() (p page, n int, err error) {
	if !d.usable {
		if err := d.probeUser(); err != nil {
			return p, 0, err
		}
		d.noteUsable()
	}
	return d.drainPage()
}

func (d *drain) countArrivals() int {
	d.intake.mu.Lock()
	defer d.intake.mu.Unlock()
	return d.stall.arrivals
}

func (d *drain) noteUsable() {
	d.intake.mu.Lock()
	defer d.intake.mu.Unlock()
	d.usable, d.stall.usableSince, d.stall.isSuspended = true, time.Now(), false
}

// errSuspended says that the activities of a user cannot be applied because the user is suspended.
var errSuspended = fault.New(fault.Unavailable, "the user is suspended")

// noteFailure records a failure and returns how long the drain waits. Entries that were held
// back go to the journal. The operator, who has suspended a user, is not told of that.
func (d *drain) noteFailure(cause error) time.Duration {
	d.intake.mu.Lock()
	defer d.intake.mu.Unlock()
	if errors.Is(cause, context.DeadlineExceeded) {
		d.limit = max(1, d.limit/2)
	}
	d.usable, d.stall.usableSince = false, time.Time{}
	d.stall.releaseHeldBack()
	if d.stall.isSuspended = errors.Is(cause, errSuspended); !d.stall.isSuspended {
		d.writer.reportStall(cause)
	}
	d.failures++
	return d.intake.Backoff.After(d.failures - 1)
}

// planNext returns how long the drain waits before the next page. The parameter n is how many
// activities of the page p no longer wait. When less than a full page waits, the drain begins to
// catch up (see stall).
func (d *drain) planNext(p page, n int) time.Duration {
	d.intake.mu.Lock()
	defer d.intake.mu.Unlock()
	d.failures, d.limit = 0, min(2*d.limit, maxBatch)
	if p.short && !d.stall.catchingUp {
		d.stall.catchingUp, d.stall.from = true, d.intake.Store.Instance.Journal.NextNumber()
		return 0
	}
	if n == 0 {
		// No row is ready. A row is still being written, or another server has not yet answered a
		// question about a row.
		return lull
	}
	return 0
}

// endStall ends the stall if the drain has caught up, and reports whether it did. The stall goes
// on while a row waits in the journal, or is about to wait there.
func (d *drain) endStall(p page, arrivals int) bool {
	i, s := d.intake, d.stall
	i.mu.Lock()
	defer i.mu.Unlock()
	if !s.catchingUp || len(p.rows) > 0 || p.newer || s.arrivals != arrivals {
		return false
	}
	if first, ok := d.writer.box.First(); ok && first.number < s.from {
		return false
	}
	d.writer.stall = nil
	s.releaseHeldBack()
	i.Backlogs.forget(d.writer.user)
	if s.reported || d.applied > 0 {
		i.Log.Info("user drained", "user", d.writer.user, "activities", d.applied, "took", time.Since(s.since))
	}
	return true
}

// holdSlot takes a slot. It returns false, without a slot, when the intake closes. The caller
// gives the slot back.
func (i *Intake) holdSlot(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-i.work.closing:
		return false
	}
}

// probeUser returns the reason why the user's activities cannot be applied now, or nil. It drops
// activities that wait for a deleted user.
func (d *drain) probeUser() error {
	i, u := d.intake, d.writer.user
	if !i.holdSlot(i.slots.probes) {
		return errClosing
	}
	defer func() { <-i.slots.probes }()
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	row, err := i.Store.Instance.Users.Find(ctx, u)
	i.noteInstance(err)
	switch {
	case err != nil:
		return err
	case row.State == instance.UserDeleting || row.State == instance.UserDeleted:
		_, err := i.Store.Instance.Journal.DropWaiting(ctx, u)
		return err
	case row.State != instance.UserActive:
		return errSuspended
	}
	return i.Store.Read(ctx, u, func(context.Context, *user.Tx) error { return nil })
}

// drainPage applies the oldest waiting rows that are older than every entry in memory. It returns
// these rows, and how many of them no longer wait.
//
// After a panic the next page is smaller. If the page had one row only, that row is set aside, as a
// writer does with an activity that cannot be applied.
func (d *drain) drainPage() (p page, n int, err error) {
	i, u := d.intake, d.writer.user
	var resumed []Resumed
	defer func() {
		if v := recover(); v != nil {
			d.writer.reportPanic(v, debug.Stack())
			n, err = d.isolateRow(p.rows, resumed, fmt.Errorf("%w: %v", mailbox.ErrPanicked, v))
		}
	}()
	if !i.holdSlot(i.slots.pages) {
		return p, 0, errClosing
	}
	defer func() { <-i.slots.pages }()
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	if p, err = d.readPage(ctx); err != nil || len(p.rows) == 0 {
		return p, 0, err
	}
	if resumed, err = i.Pipeline.Resume(ctx, u, p.rows); err != nil {
		return p, 0, err
	}
	ended, err := d.applyPage(p.rows, resumed)
	if err := d.finishRows(p.rows, ended); err != nil {
		return p, 0, err
	}
	return p, len(ended), err
}

// finishRows ends the wait of those rows of a page that are in ended.
func (d *drain) finishRows(page []instance.Waiting, ended []instance.IntakeRow) error {
	i, u := d.intake, d.writer.user
	ctx, cancel := context.WithTimeout(context.Background(), journalTime)
	defer cancel()
	if _, err := i.Store.Instance.Journal.FinishWaiting(ctx, u, ended); err != nil {
		return err
	}
	i.Backlogs.endRows(u, page, ended)
	for _, row := range ended {
		i.Rivals.Forget(u, row.Seq)
	}
	return nil
}

// isolateRow sets the row of a page aside because of cause, if pages have one row already. It
// returns how many rows no longer wait. Otherwise it makes the next page smaller, and returns
// cause. The parameter resumed is empty if the page could not be resumed.
func (d *drain) isolateRow(page []instance.Waiting, resumed []Resumed, cause error) (n int, err error) {
	if d.limit > 1 || len(page) != 1 {
		d.limit = max(1, min(d.limit, len(page))/2)
		return 0, cause
	}
	if len(resumed) == 1 && resumed[0].Item != nil {
		i, u := d.intake, d.writer.user
		err = i.poisonActivity(u, i.Pipeline.SetAside(u, resumed[0].Item, cause), cause)
	} else {
		err = d.setAside(page[0], cause)
	}
	if err != nil {
		return 0, err
	}
	return 1, d.finishRows(page, []instance.IntakeRow{page[0].IntakeRow})
}

// setAside stores a row that cannot be read, with the reason.
func (d *drain) setAside(row instance.Waiting, cause error) error {
	return d.intake.poisonActivity(d.writer.user, user.Poisoned{URI: idOf(row.Raw), Raw: row.Raw, Forwarders: row.Forwarders}, cause)
}

// applyPage applies the items of a page, and returns the rows that no longer wait. A row that
// cannot be read is set aside.
func (d *drain) applyPage(rows []instance.Waiting, resumed []Resumed) (ended []instance.IntakeRow, err error) {
	i, u := d.intake, d.writer.user
	var batch []*entry
	var of []instance.IntakeRow
	for n, row := range rows {
		switch r := resumed[n]; {
		case r.Err != nil:
			if err := d.setAside(row, r.Err); err != nil {
				return nil, err
			}
			ended = append(ended, row.IntakeRow)
		case r.Item == nil:
			ended = append(ended, row.IntakeRow)
		default:
			batch, of = append(batch, &entry{item: r.Item}), append(of, row.IntakeRow)
		}
	}
	if len(batch) == 0 {
		return ended, nil
	}
	left, cause := i.settleBatch(u, batch, i.commitBatch(u, batch))
	for n, e := range batch[:len(batch)-len(left)] {
		if e.item.Outcome() == Contested && i.Rivals.Ask(u, of[n].Seq, e.item) {
			continue
		}
		ended = append(ended, of[n])
	}
	return ended, cause
}

// readPage returns the first waiting rows that are older than every entry in memory. It leaves
// out rows about which another server is being asked.
func (d *drain) readPage(ctx context.Context) (p page, err error) {
	// The oldest entry is determined before the journal is read. So each activity older than that
	// entry has taken effect by then, or waits in the journal.
	before := d.oldestInMemory()
	for after := int64(0); len(p.rows) == 0 && !p.newer; {
		rows, err := d.intake.Store.Instance.Journal.ListWaiting(ctx, d.writer.user, after, d.limit, pageBytes*d.limit/maxBatch)
		if err != nil {
			return p, err
		}
		p.short = len(rows) < d.limit && sizeOf(rows) < pageBytes/2
		if len(rows) == 0 {
			break
		}
		after = rows[len(rows)-1].Seq
		p.newer = after >= before
		p.rows = slices.DeleteFunc(rows, func(w instance.Waiting) bool {
			return w.Seq >= before || d.intake.Rivals.IsOpen(d.writer.user, w.Seq)
		})
	}
	d.noteOldest(p.rows)
	return p, nil
}

// oldestInMemory returns the number of the user's oldest entry in memory. If there is none, it
// returns a number above all that were assigned.
func (d *drain) oldestInMemory() int64 {
	d.intake.mu.Lock()
	defer d.intake.mu.Unlock()
	if first, ok := d.writer.box.First(); ok {
		return first.number
	}
	return d.intake.Store.Instance.Journal.NextNumber()
}

func (d *drain) noteOldest(rows []instance.Waiting) {
	d.intake.mu.Lock()
	defer d.intake.mu.Unlock()
	d.stall.oldest = time.Time{}
	if len(rows) > 0 {
		d.stall.oldest = rows[0].ReceivedAt
	}
}

func sizeOf(rows []instance.Waiting) (bytes int) {
	for _, w := range rows {
		bytes += len(w.Raw) + len(w.Fetched)
	}
	return bytes
}

// idOf returns the id that an unreadable activity seems to have.
func idOf(raw []byte) vocab.ID {
	var a struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &a); err != nil || a.ID == "" {
		return "about:unreadable"
	}
	return vocab.IDOf(a.ID)
}
