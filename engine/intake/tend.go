package intake

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/instance"
)

const (
	tendEvery = 5 * time.Second  // between two looks at the journal
	strayAge  = 30 * time.Second // above which a row is taken up that no entry stands for
	strayPage = 1000             // rows looked at together
)

// Start takes over what an earlier process left in the journal, and looks after it until Close.
// It must be called once this process alone serves the instance, and before the first request:
// what comes then queues behind.
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
	i.work.Go(i.tendOften)
	return nil
}

// stallWaiting stalls the users that have activities waiting in the journal: an earlier process
// left them, or an administrator gave them back.
func (i *Intake) stallWaiting(ctx context.Context) error {
	users, err := i.Store.Instance.Journal.StalledUsers(ctx)
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

// tendOften looks after the journal until Close.
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

// Tend ends rows that have ended in memory, stalls users that have activities waiting, and counts
// the journal.
func (i *Intake) Tend() (err error) {
	defer func() {
		if err != nil {
			i.metrics.resetJournal()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), journalTime)
	defer cancel()
	i.journal.endRows()
	i.removeIdleWriters()
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

// TakeStrays makes rows that are older than age, and that no entry stands for, wait for their
// recipients: such as one whose writing ended in an error although it was written. Then it counts
// anew what waits.
func (i *Intake) TakeStrays(age time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), journalTime)
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
			if err := i.Store.Instance.Journal.Release(ctx, strays); err != nil {
				return err
			}
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
