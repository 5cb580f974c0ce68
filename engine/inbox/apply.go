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
	"github.com/lightweb/lightweb/engine/intake"
	"github.com/lightweb/lightweb/engine/pipeline"
)

// Outcomes of an activity for one user.
const (
	outcomeApplied   = "applied"
	outcomeDuplicate = "duplicate"
	outcomeIgnored   = "ignored"
	outcomeStranger  = "private_from_stranger" // ignored, too
	outcomePoison    = "poison"
	outcomeContested = "contested" // somebody else of its server uses the id of its object: it waits for that server's word
)

// applier is the Apply half of the pipeline.
type applier struct {
	Deps
	steps     *pipeline.Pipeline[*applying]
	bounds    *bounds
	ignored   *ignored
	rivals    *rivals
	takenAway *takenAway
	metrics   metrics
}

func newApplier(i *Inbox) *applier {
	p := &applier{Deps: i.Deps, bounds: i.bounds, ignored: i.ignored, rivals: newRivals(i), takenAway: newTakenAway(i.Now), metrics: i.metrics}
	p.rivals.lose = p.loseContested
	p.steps = pipeline.New("apply", i.Log, i.Deps.Metrics,
		pipeline.Do("decryptContent", p.decryptContent),
		pipeline.Do("persist", p.persist),
		pipeline.Do("executeSideEffects", p.executeSideEffects),
		pipeline.Do("emitEvents", p.emitEvents),
	)
	return p
}

// Apply runs the Apply half for a batch in one transaction of the user's database. It is run
// again when the transaction is, so nothing of an earlier run may count. The ids of activities
// that were ignored are given back: an activity that does not concern the user in one inbox may
// be meant for the user in the other, and nobody spoils an id with a forgery.
func (p *applier) Apply(ctx context.Context, tx *db.Tx, items []intake.Item) error {
	batch := make([]*applying, len(items))
	for n, item := range items {
		batch[n] = item.(*applying)
		batch[n].reset(tx, p.Now())
	}
	claimed, err := p.claimIDs(ctx, tx, batch)
	if err != nil {
		return err
	}
	for _, x := range batch {
		if err := p.applyClaimed(ctx, x, claimed); err != nil {
			return err
		}
	}
	return tx.Unclaim(ctx, slices.Collect(maps.Keys(claimed)))
}

// applyClaimed takes one activity through the steps if its id was claimed. The ids left in
// claimed at the end are given back.
func (p *applier) applyClaimed(ctx context.Context, x *applying, claimed map[db.Owned]bool) error {
	x.Remembers, _ = p.bounds.storedOfDomain.Ready(x.payer)
	switch {
	case !claimed[x.ownID()]:
		x.outcome = outcomeDuplicate
		return nil
	case p.takenAway.hasTakenAway(x):
		x.outcome, x.reason = outcomeIgnored, IgnoredNoEffect
		return nil
	}
	if err := p.applyRecovering(ctx, x); err != nil {
		return err
	}
	p.takenAway.add(x, x.effects.TakenAway)
	if x.outcome == outcomeApplied {
		delete(claimed, x.ownID())
	}
	delete(claimed, db.Owned{ID: x.effects.Disabled, Actor: x.Actor.ID}) // it may be in this very batch
	return nil
}

// applyRecovering lets a panic in a step cost the activity that made it, and not the process,
// which nobody else stands behind here as net/http does behind handlers.
func (p *applier) applyRecovering(ctx context.Context, x *applying) (err error) {
	defer func() {
		if value := recover(); value != nil {
			p.Log.ErrorContext(ctx, "step panicked", "activity", x.Activity.ID, "type", x.Activity.Type, "err", value, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	return p.applyOne(ctx, x)
}

// reset forgets what an earlier run learnt.
func (x *applying) reset(tx *db.Tx, now time.Time) {
	x.tx, x.stored, x.outcome, x.reason, x.Applied = tx, false, outcomeApplied, "", now
	x.Follows, x.Muted, x.Request, x.effects = false, false, false, handler.Effects{}
}

// ownID returns the activity's id with its actor: two ways to write one id are one activity.
func (x *applying) ownID() db.Owned {
	return db.Owned{ID: x.Activity.ID.Canonical(), Actor: x.Actor.ID}
}

func (x *applying) isIgnored() bool {
	return x.outcome == outcomeIgnored || x.outcome == outcomeStranger
}

// applyOne takes one activity through the steps. One that is ignored is not kept.
func (p *applier) applyOne(ctx context.Context, x *applying) error {
	err := p.steps.Run(ctx, x)
	switch {
	case errors.Is(err, handler.ErrContested):
		x.outcome = outcomeContested
	case !errors.Is(err, handler.ErrIgnored):
		return err
	case x.outcome == outcomeApplied:
		x.outcome = outcomeIgnored
	}
	if x.isIgnored() && x.reason == "" {
		x.reason = IgnoredNoEffect
	}
	x.effects.Changed = false
	if !x.stored {
		return nil
	}
	return x.tx.RemoveActivity(ctx, x.ownID())
}
