package intake

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/instance"
)

const (
	tendEvery = 5 * time.Second  // between two runs of Tend
	strayAge  = 30 * time.Second // the age above which TakeStrays releases a row that no entry applies
	strayPage = 1000             // rows that one query reads
)

// Start makes the rows that an earlier process left in the journal wait for their recipients,
// and tends the journal until Close. It must be called when no other process serves the instance
// any more, and before the first request, so that newer activities queue behind these rows.
func (i *Intake) Start(ctx context.Context) error {
	n, err := i.Store.Instance.Journal.TakeOver(ctx)
	if err != nil {
		return err
	}
	if n > 0 {
		i.Log.InfoContext(ctx, "intake journal taken over", "activities", n)
	}
	if err := i.Recount(ctx); err != nil {
		return err
	}
	if err := i.stallWaiting(ctx); err != nil {
		return err
	}
	i.work.Loop(i.tendOften)
	return nil
}

// stallWaiting stalls the users for which activities wait in the journal. An earlier process left
// these activities there, an administrator put them back, or TakeStrays released them. Activities
// that wait for the answer of another server stall nobody, because Revisit follows the answer.
func (i *Intake) stallWaiting(ctx context.Context) error {
	users, err := i.Store.Instance.Journal.StalledUsers(ctx, i.Rivals.Open())
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, u := range users {
		i.writer(u).beginStall(0)
	}
	return nil
}

// tendOften calls Tend every tendEvery, and TakeStrays every strayAge, until Close.
func (i *Intake) tendOften() {
	for n := 1; i.work.Pause(tendEvery); n++ {
		var err error
		if n%int(strayAge/tendEvery) == 0 {
			err = i.TakeStrays(strayAge)
		}
		if err == nil {
			err = i.Tend()
		}
		i.noteInstance(err)
		if err != nil {
			i.metrics.resetJournal()
			i.Log.Warn("intake journal not looked after", "err", err)
		}
	}
}

// Tend ends in the database the rows that have ended in memory, and removes idle writers. It
// stalls the users for which activities wait, and updates the metrics of the journal.
func (i *Intake) Tend() (err error) {
	defer func() {
		if err != nil {
			i.metrics.resetJournal()
		}
	}()
	i.journal.endRows()
	i.removeIdleWriters()
	ctx, cancel := context.WithTimeout(context.Background(), i.tendTime) // from here on: endRows may have used up as much
	defer cancel()
	if err := i.stallWaiting(ctx); err != nil {
		return err
	}
	counts, err := i.Store.Instance.Journal.Count(ctx)
	if err != nil {
		return err
	}
	i.observeJournal(counts)
	return nil
}

// TakeStrays finds rows that are older than age and that no entry applies, and makes these rows
// wait for their recipients. Such a row arises, for example, when a write was reported as failed
// although it succeeded. At the end, TakeStrays recounts the waiting activities.
func (i *Intake) TakeStrays(age time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), i.tendTime)
	defer cancel()
	for after := int64(0); ; {
		held, err := i.Store.Instance.Journal.ListHeld(ctx, age, after, strayPage)
		if err != nil {
			return err
		}
		if len(held) == 0 {
			return i.Recount(ctx)
		}
		if strays := i.journal.findStrays(held); len(strays) > 0 {
			seqs := make([]int64, len(strays))
			for n, h := range strays {
				seqs[n] = h.Seq
			}
			if err := i.Store.Instance.Journal.Release(ctx, seqs); err != nil {
				return err
			}
			i.journal.noteReleased(strays)
			i.Log.Warn("stray rows of the intake journal taken up", "activities", len(strays))
		}
		after = held[len(held)-1].Seq
	}
}

func (i *Intake) observeJournal(n instance.IntakeCounts) {
	m := i.metrics
	m.journal.WithLabelValues().Set(float64(n.Rows))
	m.waiting.WithLabelValues("queued").Set(float64(i.Places.Used()))
	m.waiting.WithLabelValues("parked").Set(float64(n.Waiting))
	age := 0.0
	if !n.Oldest.IsZero() {
		age = i.Now().Sub(n.Oldest).Seconds()
	}
	m.oldest.WithLabelValues().Set(age)
}
