package inbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
)

const (
	tendEvery = 5 * time.Second  // the journal is looked at for what nobody told this process of
	strayAge  = 30 * time.Second // after which a row that no entry stands for is taken up
	strayPage = 1000             // rows looked at together
)

// Start takes over what an earlier process left in the journal, and looks after it until Close. It must be called once
// this process alone serves the instance, and before the first request: what comes then queues behind.
func (i *Inbox) Start(ctx context.Context) error {
	n, err := i.Store.TakeOver(ctx)
	if err != nil {
		return err
	}
	if n > 0 {
		i.Log.InfoContext(ctx, "intake journal taken over", "activities", n)
	}
	if err := i.writers.recount(ctx); err != nil {
		return err
	}
	if err := i.writers.meet(ctx); err != nil {
		return err
	}
	i.writers.running.Add(1)
	go i.writers.tend()
	return nil
}

// meet parks the users that something waits for: left by an earlier process, or given back by an administrator.
func (w *writers) meet(ctx context.Context) error {
	users, err := w.inbox.Store.ParkedUsers(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range users {
		w.park(u, 0)
	}
	return nil
}

// tend looks after the journal until the writers are closed.
func (w *writers) tend() {
	defer w.running.Done()
	for n := 0; w.pause(tendEvery); n++ {
		if err := w.tendOnce(n%int(strayAge/tendEvery) == 0); err != nil {
			w.inbox.Log.Warn("intake journal not looked after", "err", err)
		}
	}
}

func (w *writers) tendOnce(strays bool) (err error) {
	defer func() {
		if err != nil {
			w.inbox.metrics.unread()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), journalTime)
	defer cancel()
	w.endRows()
	if err := w.inbox.ignored.flush(ctx); err != nil {
		w.inbox.Log.Warn("ignored activities not written", "err", err)
	}
	if strays {
		if err := w.takeStrays(ctx, strayAge); err != nil {
			return err
		}
		if err := w.recount(ctx); err != nil {
			return err
		}
	}
	if err := w.meet(ctx); err != nil {
		return err
	}
	counts, err := w.inbox.Store.CountIntake(ctx)
	if err != nil {
		return err
	}
	w.observe(counts)
	return nil
}

// takeStrays makes rows wait for their recipients that no entry stands for: such as one whose writing ended in an error
// although it was written.
func (w *writers) takeStrays(ctx context.Context, age time.Duration) error {
	for after := int64(0); ; {
		held, err := w.inbox.Store.HeldIntake(ctx, age, after, strayPage)
		if err != nil || len(held) == 0 {
			return err
		}
		if strays := w.strays(held); len(strays) > 0 {
			if err := w.inbox.Store.Release(ctx, strays); err != nil {
				return err
			}
			w.inbox.Log.WarnContext(ctx, "stray rows of the intake journal taken up", "activities", len(strays))
		}
		after = held[len(held)-1].Seq
	}
}

func (w *writers) strays(held []db.HeldIntake) (seqs []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range held {
		if w.rows[h.Key] == nil {
			seqs = append(seqs, h.Seq)
		}
	}
	return seqs
}

func (w *writers) observe(n db.IntakeCounts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.inbox.metrics
	m.journal.WithLabelValues().Set(float64(n.Rows))
	m.waiting.WithLabelValues("queued").Set(float64(w.places.Used()))
	m.waiting.WithLabelValues("parked").Set(float64(n.Waiting))
	m.parked.Set(float64(len(w.parked)))
	age := 0.0
	if !n.Oldest.IsZero() {
		age = w.inbox.Now().Sub(n.Oldest).Seconds()
	}
	m.oldest.WithLabelValues().Set(age)
}
