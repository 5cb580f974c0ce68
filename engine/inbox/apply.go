package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/intake"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Outcomes of an activity for one user.
const (
	outcomeApplied   = "applied"
	outcomeDuplicate = "duplicate"
	outcomeIgnored   = "ignored"
	outcomeStranger  = "private_from_stranger" // ignored, since it is a private message of a stranger
	outcomePoison    = "poison"
	// Another actor of the sender's server uses the id of the object. The activity waits until
	// that server has said which actor owns the object.
	outcomeContested = "contested"
)

// applier is the Apply half of the pipeline.
type applier struct {
	Deps
	steps     *pipeline.Pipeline[*applying]
	bounds    *bounds
	ignored   *ignored
	rivals    *rivals
	takenAway *takenAway
	forwarder *forwarder
	metrics   metrics
}

func newApplier(i *Inbox) *applier {
	p := &applier{Deps: i.Deps, bounds: i.bounds, ignored: i.ignored, rivals: newRivals(i), takenAway: newTakenAway(i.Now), metrics: i.metrics,
		forwarder: &forwarder{addresses: i.Local.Addresses, handlers: i.Handlers, bounds: i.bounds, log: i.Log}}
	p.rivals.lose = p.loseContested
	p.steps = pipeline.New("apply", i.Log, i.Deps.Metrics,
		pipeline.Do("decryptContent", p.decryptContent),
		pipeline.Do("persist", p.persist),
		pipeline.Do("executeSideEffects", p.executeSideEffects),
		pipeline.Do("emitEvents", p.emitEvents),
	)
	return p
}

// Apply runs the Apply half of the pipeline for a batch, in one transaction of the user's
// database. When the transaction is repeated, Apply runs again and first discards the results of
// the earlier run. It releases the claimed ids of activities that were ignored, are contested or
// leave no row (see leavesNoRow). An ignored activity may come again, by the shared inbox or by
// the user's own inbox, and may then concern the user. Also, a forgery must not block an id.
func (p *applier) Apply(ctx context.Context, tx *user.Tx, items []intake.Item) error {
	batch := make([]*applying, len(items))
	for n, item := range items {
		batch[n] = item.(*applying)
		batch[n].reset(tx, p.Now())
		batch[n].Tells, batch[n].Rejects = p.tells(batch[n]), p.bounds.rejects(batch[n])
		batch[n].Mutes = func(id vocab.ID) bool { return p.Profiles.User(batch[n].User).Moderation.HidesActor(id) }
		batch[n].Refuses = func(id vocab.ID) bool { return p.Gate.CheckActor(id) != nil }
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
	return tx.Activities.Unclaim(ctx, slices.Collect(maps.Keys(claimed)))
}

// applyClaimed takes one activity through the steps if its id was claimed, and the activity was
// not undone before it arrived (see takenAway). Afterwards it removes the ids of an applied
// activity from claimed, unless the activity leaves no row. Apply releases the ids that remain.
//
// Two activities take effect although their id was claimed before:
//   - an Update by which an actor changes itself. Takahē and Mobilizon send all such Updates under
//     one id, and the database stores only the document that was fetched when the Update came. It
//     causes events only if that document has changed, or could not be fetched.
//   - one that its actor has done again under the same id (see handler.Registry.ComesAgain). It is
//     stored and charged like a new one. If it is ignored, its id stays claimed.
func (p *applier) applyClaimed(ctx context.Context, x *applying, claimed map[user.Owned]bool) error {
	x.again = !claimed[x.ownID()]
	if !claimed[p.version(x)] && !handler.UpdatesItself(x.Activity) {
		again, err := p.Handlers.ComesAgain(ctx, x.tx, &x.Received)
		if err != nil || !again {
			x.outcome = outcomeDuplicate
			return err
		}
		x.again = false
	}
	switch {
	case p.Handlers.Answers(x.Activity) && !claimed[x.undoneID()]:
		p.stopAnswer(x, claimed)
		return nil
	case p.takenAway.hasTakenAway(x):
		x.outcome, x.reason = outcomeIgnored, IgnoredNoEffect
		return nil
	}
	if err := p.applyRecovering(ctx, x); err != nil {
		return err
	}
	p.takenAway.add(x, x.effects.TakenAway)
	if x.outcome == outcomeApplied && !p.leavesNoRow(x) {
		delete(claimed, x.ownID())
		delete(claimed, p.version(x))
	}
	// The activity that x has disabled may be in the same batch. The ids of that activity stay
	// claimed.
	for _, id := range x.effects.Disabled {
		delete(claimed, user.Owned{ID: id, Actor: x.Actor.ID})
	}
	return nil
}

// stopAnswer ignores an answer that was undone before it arrived. Its version stays claimed, so
// that it cannot arrive again. The other ids are released, because the answer to the next request
// may have the same id.
func (p *applier) stopAnswer(x *applying, claimed map[user.Owned]bool) {
	x.outcome, x.reason = outcomeIgnored, IgnoredNoEffect
	claimed[x.ownID()], claimed[x.undoneID()] = true, true
	delete(claimed, p.version(x))
}

// applyRecovering turns a panic in a step into an error of the activity that caused it. Otherwise
// the panic would fail the whole batch of a writer, or end the process if a drain applies the
// activity.
func (p *applier) applyRecovering(ctx context.Context, x *applying) (err error) {
	defer func() {
		if value := recover(); value != nil {
			p.Log.ErrorContext(ctx, "step panicked", "activity", x.Activity.ID, "type", x.Activity.Type, "err", value, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	return p.applyOne(ctx, x)
}

// reset discards the results of an earlier run.
func (x *applying) reset(tx *user.Tx, now time.Time) {
	x.tx, x.stored, x.asks, x.outcome, x.reason, x.Applied = tx, false, false, outcomeApplied, "", now
	x.Follows, x.Muted, x.Request, x.Remembers, x.effects = false, false, false, false, handler.Effects{}
}

// ownID returns the activity's canonical id with its actor, so that two spellings of an id count
// as one activity.
func (x *applying) ownID() user.Owned {
	return user.Owned{ID: x.Activity.ID.Canonical(), Actor: x.Actor.ID}
}

// undoneID returns the id that is claimed when an Undo arrives before the answer that it undoes.
func (x *applying) undoneID() user.Owned {
	return user.Owned{ID: handler.UndoneID(x.Activity.ID), Actor: x.Actor.ID}
}

// version returns the id of this version of an activity, with its actor. It is the activity's own
// id if there are no versions.
func (p *applier) version(x *applying) user.Owned {
	return user.Owned{ID: p.Handlers.VersionID(x.Activity), Actor: x.Actor.ID}
}

func (x *applying) isIgnored() bool {
	return x.outcome == outcomeIgnored || x.outcome == outcomeStranger
}

// applyOne takes one activity through the steps. If it turns out to be ignored or contested,
// applyOne removes its row again.
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
	return x.tx.Activities.Remove(ctx, x.ownID())
}
