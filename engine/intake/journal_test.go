package intake

import (
	"context"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
)

// A row has ended in memory, and the database does not end it in time, because another transaction
// has locked it. The row is not taken for a stray, fewer rows are ended together the next time, and
// Tend still does its other work. After that the row is ended, and nobody got the activity twice.
func TestARowThatCannotBeEndedNowIsEndedLater(t *testing.T) {
	t.Parallel()
	var s steps
	i, users := open(t, &s, "alice", "bob")
	i.tendTime = 2 * time.Second
	i.journal.ending.Lock() // no row is ended in the database until here
	if err := accept(t.Context(), i, "carol", 0, users...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the row has ended in memory", func() bool {
		i.journal.mu.Lock()
		defer i.journal.mu.Unlock()
		return len(i.journal.ended) == 1
	})
	if err := i.TakeStrays(0); err != nil {
		t.Fatal(err)
	}
	if n, err := i.Store.Instance.Journal.Count(t.Context()); err != nil || n.Waiting != 0 {
		t.Errorf("the journal holds %+v, %v; want that nobody waits for a row that has ended", n, err)
	}
	unlock := dbtest.Hold(t, dbtest.InstanceSQL(t, i.Store, users[0]), `SELECT FROM intake FOR UPDATE`)
	i.journal.ending.Unlock()
	if err := i.Tend(); err != nil {
		t.Errorf("Tend = %v, although only the end of rows takes long", err)
	}
	i.journal.mu.Lock()
	if i.journal.limit >= maxEnded {
		t.Errorf("%d rows are ended together after time ran out, want fewer than %d", i.journal.limit, maxEnded)
	}
	i.journal.mu.Unlock()
	unlock()
	eventually(t, "the journal is empty", func() bool {
		n, err := i.Store.Instance.Journal.Count(t.Context())
		return i.Tend() == nil && err == nil && n.Rows == 0
	})
	if got := s.of("carol"); len(got) != 2 {
		t.Errorf("committed %q, want it once for each user", got)
	}
}

func TestFewerRowsAreEndedTogetherWhenTimeRunsOut(t *testing.T) {
	t.Parallel()
	j := newJournal(New(Deps{}))
	j.ended = make([]instance.IntakeRow, 2000)
	timeout := fault.Wrap(fault.Busy, "time ran out", context.DeadlineExceeded)
	for _, want := range []int{500, 250, 125, 62, 31, 15, 7, 3, 1, 1} {
		if j.noteFinished(1, timeout); len(j.nextEnded()) != want {
			t.Errorf("%d rows are ended together, want %d", len(j.nextEnded()), want)
		}
	}
	if j.noteFinished(1, fault.New(fault.Unavailable, "down")); len(j.nextEnded()) != 1 {
		t.Errorf("%d rows are ended together after another fault, want 1", len(j.nextEnded()))
	}
	for _, want := range []int{2, 4, 8} {
		if j.noteFinished(1, nil); len(j.nextEnded()) != want {
			t.Errorf("%d rows are ended together, want %d", len(j.nextEnded()), want)
		}
	}
}
