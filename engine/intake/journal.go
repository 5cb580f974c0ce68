package intake

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/lightweb/lightweb/db/instance"
)

// journal tracks the rows of the intake journal that this process works on. For each row it
// counts the requests that write the row, and the entries in memory that apply it. When a row has
// no such request and no such entry left, the row is ended. Then Journal.Finish removes the row
// from the database, unless the row waits for some user.
type journal struct {
	intake *Intake

	mu     sync.Mutex
	rows   map[instance.IntakeKey]*row
	ended  []instance.IntakeRow // rows that have ended in memory, but not yet in the database
	limit  int                  // rows that are ended together; halved when that exceeds its time
	ending sync.Mutex           // held while rows are ended in the database
}

// row is an activity in the journal that a request is about to write, or that an entry in memory
// applies. Its fields are guarded by the journal's mu, except those that do not change.
type row struct {
	key   instance.IntakeKey
	payer string
	bytes int64 // of the body and of the fetched objects, as the row was first written

	writing int // requests that are writing it
	left    int // entries in memory that apply it
	at      instance.IntakeRow
	size    int64 // bytes of memory that its body takes
	kept    bool  // some recipient has stored the activity, or may do so later
	ignored Item  // the last item that was ignored
	failed  bool  // an entry ended without being applied, so the row stays until TakeStrays has released it
}

// maxEnded is the most rows that are ended in the database together.
const maxEnded = 1000

func newJournal(i *Intake) *journal {
	return &journal{intake: i, rows: map[instance.IntakeKey]*row{}, limit: maxEnded}
}

// openRow returns the row of an activity that a request is about to write. The row stays in memory
// at least until the request calls closeRow or noteWritten.
func (j *journal) openRow(in instance.Intake) *row {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.rows[in.Key]
	if r == nil {
		r = &row{key: in.Key, payer: in.Payer, bytes: bytesOf(&in)}
		j.rows[in.Key] = r
	}
	r.writing++
	return r
}

// closeRow records that a request will not write its row after all.
func (j *journal) closeRow(r *row) { j.noteWritten(r, instance.IntakeRow{}, nil) }

// growRow adds the memory that a row's body takes.
func (j *journal) growRow(r *row, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.size += size
}

// driveRow counts one more entry that applies a row.
func (j *journal) driveRow(r *row) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.left++
}

// noteWritten records that a request has written a row. If err is not nil, the request failed
// to do so.
func (j *journal) noteWritten(r *row, at instance.IntakeRow, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.writing--
	if err == nil && (at.Seq > r.at.Seq || at.Seq == r.at.Seq && at.Rev > r.at.Rev) {
		r.at = at
	}
	j.settleRow(r)
}

// placeOf returns the sequence number and revision of a row in the database.
func (j *journal) placeOf(r *row) instance.IntakeRow {
	j.mu.Lock()
	defer j.mu.Unlock()
	return r.at
}

// letWait records that a row stays in the journal for a recipient who is stalled.
func (j *journal) letWait(r *row) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.kept = true
}

// endEntry records that an entry is committed or waits in the journal. If err is not nil, the
// entry is neither committed nor waiting.
func (j *journal) endEntry(e *entry, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := e.row
	r.left--
	switch {
	case err != nil:
		r.failed = true
	case e.item.Outcome() == Ignored:
		r.ignored = e.item
	default:
		r.kept = true
	}
	j.settleRow(r)
}

// settleRow schedules the end of a row that no request writes and no entry applies. The caller
// holds mu.
func (j *journal) settleRow(r *row) {
	if r.writing > 0 || r.left > 0 {
		return
	}
	j.intake.Memory.Give(r.payer, r.size)
	r.size = 0
	if r.failed && r.at.Seq > 0 {
		return // a later request must not end the row either
	}
	delete(j.rows, r.key)
	if !r.kept && r.ignored != nil {
		j.intake.Pipeline.Ignored(r.ignored)
	}
	if r.at.Seq == 0 {
		return // the row could not be written
	}
	j.ended = append(j.ended, r.at)
	if len(j.ended) == 1 {
		j.intake.work.Go(j.endRows)
	}
}

// endRows ends in the database the rows that have ended in memory, in groups of at most maxEnded.
// Rows that cannot be ended now are tried again by the next call.
func (j *journal) endRows() {
	j.ending.Lock()
	defer j.ending.Unlock()
	for {
		rows := j.nextEnded()
		if len(rows) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), j.intake.tendTime)
		err := j.intake.Store.Instance.Journal.Finish(ctx, rows)
		cancel()
		j.noteFinished(len(rows), err)
		if err != nil {
			j.intake.Log.Warn("rows of the intake journal not ended", "err", err)
			return
		}
	}
}

// noteFinished records that the first n rows in j.ended were ended in the database, or that err
// kept them from it. When time ran out, fewer rows are tried together the next time.
func (j *journal) noteFinished(n int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		j.ended = slices.Delete(j.ended, 0, n)
		j.limit = min(2*j.limit, maxEnded)
	case errors.Is(err, context.DeadlineExceeded):
		j.limit = max(1, j.limit/2)
	}
}

func (j *journal) nextEnded() []instance.IntakeRow {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.ended[:min(len(j.ended), j.limit)])
}

// findStrays returns those rows in held that no request writes and no entry applies, and that have
// not ended in memory.
func (j *journal) findStrays(held []instance.HeldIntake) (strays []instance.HeldIntake) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, h := range held {
		if r := j.rows[h.Key]; r == nil || r.writing == 0 && r.left == 0 {
			strays = append(strays, h)
		}
	}
	if len(strays) == 0 {
		return nil
	}
	ended := make(map[int64]bool, len(j.ended))
	for _, at := range j.ended {
		ended[at.Seq] = true
	}
	return slices.DeleteFunc(strays, func(h instance.HeldIntake) bool { return ended[h.Seq] })
}

// noteReleased records that rows wait for all their recipients in the database, also for those
// whose entries ended without being applied.
func (j *journal) noteReleased(strays []instance.HeldIntake) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, h := range strays {
		r := j.rows[h.Key]
		if r == nil {
			continue
		}
		if r.failed = false; r.writing == 0 && r.left == 0 {
			delete(j.rows, h.Key)
		}
	}
}
