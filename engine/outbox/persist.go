package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// persist stores the activity, its effects and its deliveries in one transaction, so that a
// stored activity will be sent. An action that has nothing left to do is answered here, without
// the later steps.
func (o *Outbox) persist(ctx context.Context, x *exchange, next pipeline.Next) error {
	settled := false
	x.leases = o.Dispatcher.Leases()
	err := o.storeAnswered(ctx, x, func(ctx context.Context, tx *user.Tx) (err error) {
		settled, err = o.storeDispatch(ctx, tx, x)
		return err
	})
	if err != nil {
		return err
	}
	o.noteProfile(ctx, x)
	if settled {
		return o.answers.respond(ctx, x)
	}
	// The activity is stored, so the later steps run even if the client has disconnected.
	return next(context.WithoutCancel(ctx))
}

// storeAnswered runs the transaction that stores the results of a dispatch, with its answer. The
// fault is Busy if another dispatch with the same Idempotency-Key has stored its answer first.
func (o *Outbox) storeAnswered(ctx context.Context, x *exchange, store func(context.Context, *user.Tx) error) error {
	err := o.Store.Write(ctx, x.User, store)
	if user.TakenKey(err) {
		return fault.Wrap(fault.Busy, "the Idempotency-Key is in use", err).After(time.Second)
	}
	return err
}

// storeDispatch stores the dispatch in the transaction of persist. It reports whether an earlier
// activity did the same. If so, it stores only the answer and the audit record.
func (o *Outbox) storeDispatch(ctx context.Context, tx *user.Tx, x *exchange) (settled bool, err error) {
	if err := o.fanOut.lockAudience(ctx, tx, x); err != nil {
		return false, err
	}
	if s := x.intent.lockName(); s != "" {
		if err := tx.Lock(ctx, s); err != nil {
			return false, err
		}
	}
	earlier, err := x.intent.findEarlier(ctx, tx, x)
	if err != nil {
		return false, err
	}
	if earlier == "" {
		if err := refuseGone(ctx, tx, x); err != nil {
			return false, err
		}
		if err := o.admitDispatch(ctx, tx, x); err != nil {
			return false, err
		}
	}
	job := o.fanOut.newJob(x)
	x.answer = answer{Activity: x.activity.ID, Object: o.Handlers.ObjectOf(x.activity), Job: showJob(job.ID, x.inboxes), Unresolved: x.unresolved}
	if earlier != "" {
		if x.answer, err = o.answers.answerAgain(ctx, tx, earlier, x.now); err != nil {
			return false, err
		}
	}
	if err := o.answers.keepAnswer(tx, x); err != nil {
		return false, err
	}
	if earlier == "" {
		if err := o.storeActivity(ctx, tx, x, job); err != nil {
			return false, err
		}
		if err := o.storePlacing(ctx, tx, x); err != nil {
			return false, err
		}
	}
	return earlier != "", tx.Audits.Add(ctx, newAudit(x, "ok"))
}

// admitDispatch refuses a dispatch that the token may not make, and chooses the inboxes that the
// activity goes to.
func (o *Outbox) admitDispatch(ctx context.Context, tx *user.Tx, x *exchange) error {
	if x.Assistant {
		if err := o.restrainAssistant(ctx, tx, x); err != nil {
			return err
		}
	}
	return o.fanOut.chooseInboxes(ctx, tx, x)
}

func (o *Outbox) storeActivity(ctx context.Context, tx *user.Tx, x *exchange, job user.Job) error {
	a := x.activity
	switch isThere, err := tx.Objects.Hold(ctx, x.held); {
	case err != nil:
		return err
	case !isThere:
		return fault.New(fault.Conflict, "the object was removed meanwhile; try again").WithCode("changed_meanwhile")
	}
	for _, f := range x.fetched {
		if _, err := tx.Objects.Add(ctx, handler.Stored(f, x.now)); err != nil {
			return err
		}
	}
	for _, n := range x.named {
		if len(n.Raw) == 0 {
			continue
		}
		if err := tx.Actors.Save(ctx, n, x.now); err != nil {
			return err
		}
	}
	err := tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: a.ID, Direction: user.Outbound, Type: a.Type,
		Actor: a.Actor, Object: a.Object.ID, Published: x.now, Raw: a.Raw})
	if err != nil {
		return err
	}
	sent := &handler.Sent{User: x.User, Actor: x.actor, Activity: a, Object: x.before, Target: x.counterpart, Request: x.request, Group: x.group, Members: x.members, Stream: x.stream,
		Quoted: x.quoted, Spelling: x.collectSpellings(), Now: x.now}
	if err := o.Handlers.Sent(ctx, tx, sent); err != nil { // the handler stores the object and the feed entry
		return err
	}
	if a.Type == vocab.Update && x.before != nil {
		if err := o.reviseObject(ctx, tx, x); err != nil {
			return err
		}
	}
	if a.Type == vocab.Create {
		if err := tx.Groups.AddUnnamed(ctx, a.Object.ID, x.members); err != nil {
			return err
		}
	}
	if err := tx.Deliveries.EnqueueLeased(ctx, job, x.inboxes, x.now, x.leases); err != nil {
		return err
	}
	if err := o.fanOut.tellRelays(ctx, tx, x); err != nil {
		return err
	}
	return addEvents(ctx, tx, x)
}

// addEvents adds the events that tell the user's clients of the activity. If the activity changes
// a relationship, a second event names the other actor, so that each client can keep its lists up
// to date.
func addEvents(ctx context.Context, tx *user.Tx, x *exchange) error {
	a := x.activity
	p := handler.Payload{Activity: a.ID, Type: a.Type, Actor: a.Actor, Object: a.Object.ID, Trust: user.TrustSelf, Cause: x.cause}
	err := tx.Events.Add(ctx, handler.NewEvent(handler.EventType(a.Type, "sent"), p, x.now))
	if err != nil || x.counterpart == nil || x.group != nil {
		return err
	}
	p.Object = x.counterpart.ID
	return tx.Events.Add(ctx, handler.NewEvent("relationship.changed", p, x.now))
}
