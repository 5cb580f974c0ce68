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
	outcomeContested = "contested" // somebody else of its server uses the id of its object: it waits for that server's word
)

// applyBatch runs the Apply half for a batch in one transaction. The claim is first: a duplicate ends there, within the
// batch too. The ids of what was ignored are given back: what does not concern the user in one inbox may be meant for it
// in the other, and nobody spoils an id with a forgery. It is run again when the transaction is, so nothing of an earlier
// run may count.
func (i *Inbox) applyBatch(ctx context.Context, tx *db.Tx, batch []*entry) error {
	ids := make([]db.Owned, len(batch))
	var actors []vocab.ID
	var objects []db.Owned
	for n, e := range batch {
		ids[n] = e.x.own()
		actors = append(actors, behind(e.x)...)
		objects = append(objects, db.Owned{ID: e.x.Activity.Object.ID, Actor: e.x.Actor.ID})
		for id, o := range e.x.fetched {
			objects = append(objects, db.Owned{ID: id, Actor: o.AttributedTo})
		}
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
		e.x.Remembers, _ = i.bounds.storedOfDomain.Ready(e.x.payer)
		if !fresh[ids[n]] {
			e.x.outcome = outcomeDuplicate
			continue
		}
		if i.takenAway.holds(e.x) {
			e.x.outcome, e.x.reason = outcomeIgnored, IgnoredNoEffect
			continue
		}
		if err := i.survive(ctx, e.x); err != nil {
			return err
		}
		i.takenAway.add(e.x, e.x.effects.TakenAway)
		if e.x.outcome == outcomeApplied {
			delete(fresh, ids[n])
		}
		delete(fresh, db.Owned{ID: e.x.effects.Disabled, Actor: e.x.Actor.ID}) // it may be in this very batch
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
	x.Follows, x.Request, x.effects = false, false, handler.Effects{}
}

// own returns the activity's id with its actor: two ways to write one id are one activity.
func (x *applying) own() db.Owned { return db.Owned{ID: x.Activity.ID.Canonical(), Actor: x.Actor.ID} }

func (x *applying) ignored() bool { return x.outcome == outcomeIgnored || x.outcome == outcomeStranger }

// applyOne takes one activity through the steps. One that is ignored is not kept.
func (i *Inbox) applyOne(ctx context.Context, x *applying) error {
	err := i.applying.Run(ctx, x)
	switch {
	case errors.Is(err, handler.ErrContested):
		x.outcome = outcomeContested
	case !errors.Is(err, handler.ErrIgnored):
		return err
	case x.outcome == outcomeApplied:
		x.outcome = outcomeIgnored
	}
	if x.ignored() && x.reason == "" {
		x.reason = IgnoredNoEffect
	}
	x.effects.Changed = false
	if !x.stored {
		return nil
	}
	return x.tx.RemoveActivity(ctx, x.own())
}

// applied records what became of an activity, once that is committed.
func (i *Inbox) applied(x *applying) {
	i.metrics.activities.WithLabelValues(x.outcome).Inc()
	i.charge(x)
}
