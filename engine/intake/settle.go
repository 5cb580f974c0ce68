package intake

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// commitBatch applies a batch in one transaction.
func (i *Intake) commitBatch(u vocab.Username, batch []*entry) error {
	defer i.takeLarge(batch...)()
	return i.writeUser(u, func(ctx context.Context, tx *user.Tx) error { return i.Pipeline.Apply(ctx, tx, itemsOf(batch)) })
}

// takeLarge waits for a place for a batch that has a large item. The result gives the place back.
// Nobody may hold a connection while waiting, because others need the connection meanwhile.
func (i *Intake) takeLarge(batch ...*entry) (give func()) {
	if !slices.ContainsFunc(batch, func(e *entry) bool { return e.item.IsLarge() }) {
		return func() {}
	}
	i.Large <- struct{}{}
	return func() { <-i.Large }
}

// settleBatch finishes a batch whose transaction ended with err. A batch that failed is halved,
// and its halves are tried again, until a batch holds only an activity that cannot be applied.
// That activity is applied once more, because the cause may have been temporary, and then set
// aside with the reason. If the database, and not an activity, is the cause, settleBatch returns
// the error in the result cause. It then returns the unfinished rest of the batch, in order, in
// the result "left".
func (i *Intake) settleBatch(u vocab.Username, batch []*entry, err error) (left []*entry, cause error) {
	switch {
	case err == nil:
		i.finishBatch(u, batch)
		return nil, nil
	case isOwnTrouble(err):
		return batch, err
	case len(batch) == 1:
		if again := i.commitBatch(u, batch); again == nil || isOwnTrouble(again) {
			return i.settleBatch(u, batch, again)
		}
		if err := i.poisonActivity(u, i.Pipeline.SetAside(u, batch[0].item, err), err); err != nil {
			return batch, err
		}
		i.finishBatch(u, batch)
		return nil, nil
	}
	middle := len(batch) / 2
	for n, half := range [][]*entry{batch[:middle:middle], batch[middle:]} {
		if left, cause := i.settleBatch(u, half, i.commitBatch(u, half)); cause != nil {
			return batch[n*middle+len(half)-len(left):], cause
		}
	}
	return nil, nil
}

// finishBatch answers the entries of a batch that was committed or set aside. Contested entries go
// to the journal, where they wait until another server has said which actors own their objects.
func (i *Intake) finishBatch(u vocab.Username, batch []*entry) {
	var settled []*entry
	for _, e := range batch {
		if e.item.Outcome() != Contested {
			settled = append(settled, e)
		}
	}
	i.Pipeline.Settled(itemsOf(settled))
	if len(settled) < len(batch) {
		i.mu.Lock()
		i.writer(u).beginStall(0)
		i.mu.Unlock()
	}
	for _, e := range settled {
		if e.row == nil && e.item.Outcome() == Ignored {
			i.Pipeline.Ignored(e.item)
		}
		if e.letter != nil {
			e.letter.Answer(nil)
		}
	}
}

// poisonActivity stores an activity that cannot be applied, with the reason.
func (i *Intake) poisonActivity(u vocab.Username, p user.Poisoned, cause error) error {
	p.Reason = cause.Error()
	if err := i.writeUser(u, func(ctx context.Context, tx *user.Tx) error { return tx.Poison.Add(ctx, p) }); err != nil {
		return fmt.Errorf("set activity aside: %w", err)
	}
	return nil
}
