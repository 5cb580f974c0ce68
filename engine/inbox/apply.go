package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// What became of an activity for one user.
const (
	outcomeApplied   = "applied"
	outcomeDuplicate = "duplicate"
	outcomeIgnored   = "ignored"
	outcomeStranger  = "private_from_stranger" // ignored, too
	outcomePoison    = "poison"
)

// applyBatch runs the Apply half for a batch in one transaction. The claim is first: a duplicate ends there, within the
// batch too. The ids of what was ignored are given back: what does not concern the user in one inbox may be meant for it
// in the other, and nobody spoils an id with a forgery. It is run again when the transaction is, so nothing of an earlier
// run may count.
func (i *Inbox) applyBatch(ctx context.Context, tx *db.Tx, batch []*entry) error {
	ids := make([]vocab.ID, len(batch))
	var actors, objects []vocab.ID
	for n, e := range batch {
		ids[n] = e.x.Activity.ID.Canonical() // two ways to write one id are one activity
		actors = append(actors, behind(e.x)...)
		objects = slices.AppendSeq(append(objects, e.x.Activity.Object.ID), maps.Keys(e.x.Fetched))
	}
	fresh, err := tx.ClaimAhead(ctx, ids, actors, objects)
	if err != nil {
		return err
	}
	if err := i.markBlocked(ctx, tx, batch); err != nil {
		return err
	}
	for n, e := range batch {
		e.x.begin(tx, i.Now())
		if !fresh[ids[n]] {
			e.x.outcome = outcomeDuplicate
			continue
		}
		if err := i.survive(ctx, e.x); err != nil {
			return err
		}
		if !e.x.ignored() {
			delete(fresh, ids[n])
		}
		delete(fresh, e.x.Undone.Canonical()) // it may be in this very batch
	}
	return tx.Unclaim(ctx, slices.Collect(maps.Keys(fresh)))
}

// survive lets a panic in a step cost the activity that made it, and not the process, which nobody else stands behind
// here as net/http does behind handlers.
func (i *Inbox) survive(ctx context.Context, x *applying) (err error) {
	defer func() {
		if p := recover(); p != nil {
			i.Log.ErrorContext(ctx, "step panicked", "activity", x.Activity.ID, "type", x.Activity.Type, "err", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return i.applyOne(ctx, x)
}

// begin forgets what an earlier run learnt.
func (x *applying) begin(tx *db.Tx, now time.Time) {
	x.tx, x.stored, x.outcome, x.reason, x.Applied = tx, false, outcomeApplied, "", now
	x.Follows, x.Changed, x.Queued, x.Silent, x.Undone = false, false, false, false, ""
	x.Request = false
}

func (x *applying) ignored() bool { return x.outcome == outcomeIgnored || x.outcome == outcomeStranger }

// applyOne takes one activity through the steps. One that is ignored is not kept.
func (i *Inbox) applyOne(ctx context.Context, x *applying) error {
	err := i.applying.Run(ctx, x)
	if !errors.Is(err, handler.ErrIgnored) {
		return err
	}
	if x.outcome == outcomeApplied {
		x.outcome = outcomeIgnored
	}
	if x.reason == "" {
		x.reason = IgnoredNoEffect
	}
	x.Changed, x.Queued = false, false
	if !x.stored {
		return nil
	}
	return x.tx.RemoveActivity(ctx, x.Activity.ID)
}

// applied records what became of an activity, once that is committed.
func (i *Inbox) applied(x *applying) {
	i.metrics.activities.WithLabelValues(x.outcome).Inc()
	i.charge(x)
}
