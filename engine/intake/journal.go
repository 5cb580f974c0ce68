package intake

import (
	"context"
	"slices"
	"sync"

	"github.com/lightweb/lightweb/db/instance"
)

// journal is what this process has to do with rows of the intake journal: which requests write
// them, and which entries stand for them. A row is ended in the database when there is neither.
type journal struct {
	intake *Intake

	mu     sync.Mutex
	rows   map[instance.IntakeKey]*row
	ended  []instance.IntakeRow // in memory, and not yet in the database
	ending sync.Mutex           // held by who ends rows in the database
}

// row is an activity in the journal that requests are about to write or entries stand for. Its
// fields are guarded by the journal's mu, but for those that do not change.
type row struct {
	key   instance.IntakeKey
	payer string
	bytes int64 // of the body and of what was fetched, as it was first written

	writing int // requests
	left    int // entries
	at      instance.IntakeRow
	size    int64 // bytes of memory
	kept    bool  // some recipient keeps the activity, or may yet
	ignored Item  // the last one that was
	failed  bool  // an entry ended without being applied: the row stays, and is found as a stray one
}

func newJournal(i *Intake) *journal { return &journal{intake: i, rows: map[instance.IntakeKey]*row{}} }

// openRow returns the row of an activity that a request is about to write, and keeps it until
// close or written.
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

// closeRow says that a request does not write a row after all.
func (j *journal) closeRow(r *row) { j.noteWritten(r, instance.IntakeRow{}, nil) }

// growRow counts the memory that a row's body takes.
func (j *journal) growRow(r *row, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.size += size
}

// driveRow counts an entry that stands for a row.
func (j *journal) driveRow(r *row) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.left++
}

// noteWritten says that a request has written a row, or could not.
func (j *journal) noteWritten(r *row, at instance.IntakeRow, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.writing--
	if err == nil && (at.Seq > r.at.Seq || at.Seq == r.at.Seq && at.Rev > r.at.Rev) {
		r.at = at
	}
	j.settleRow(r)
}

// placeOf returns where a row lies in the database.
func (j *journal) placeOf(r *row) instance.IntakeRow {
	j.mu.Lock()
	defer j.mu.Unlock()
	return r.at
}

// letWait says that a row waits for a recipient, who may keep the activity yet.
func (j *journal) letWait(r *row) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.kept = true
}

// endEntry says that an entry is committed or waits; or with an error, that it ended without
// either.
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

// settleRow lets a row be ended that no request writes and no entry stands for. The caller holds
// mu.
func (j *journal) settleRow(r *row) {
	if r.writing > 0 || r.left > 0 {
		return
	}
	delete(j.rows, r.key)
	j.intake.Memory.Give(r.payer, r.size)
	if r.failed {
		return
	}
	if !r.kept && r.ignored != nil {
		j.intake.Pipeline.Ignored(r.ignored)
	}
	if r.at.Seq == 0 {
		return // it could not be written
	}
	j.ended = append(j.ended, r.at)
	if len(j.ended) == 1 {
		j.intake.work.Go(j.endRows)
	}
}

// endRows ends in the database the rows that have ended in memory, everything that has come
// together at once. Rows that cannot be ended now are tried again by the next call.
func (j *journal) endRows() {
	j.ending.Lock()
	defer j.ending.Unlock()
	for {
		rows := j.nextEnded()
		if len(rows) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), journalTime)
		err := j.intake.Store.Instance.Journal.Finish(ctx, rows)
		cancel()
		if err != nil {
			j.intake.Log.Warn("rows of the intake journal not ended", "err", err)
			return
		}
		j.mu.Lock()
		j.ended = slices.Delete(j.ended, 0, len(rows))
		j.mu.Unlock()
	}
}

func (j *journal) nextEnded() []instance.IntakeRow {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.ended[:min(len(j.ended), 1000)])
}

// findStrays returns the numbers of the rows that no request writes and no entry stands for.
func (j *journal) findStrays(held []instance.HeldIntake) (seqs []int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, h := range held {
		if j.rows[h.Key] == nil {
			seqs = append(seqs, h.Seq)
		}
	}
	return seqs
}
