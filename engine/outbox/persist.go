package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// persist stores everything that follows from the activity in one transaction: what is saved will
// be sent. An action that has nothing left to do ends here.
func (o *Outbox) persist(ctx context.Context, x *exchange, next pipeline.Next) error {
	settled := false
	x.leases = o.Dispatcher.Leases()
	err := o.Store.Write(ctx, x.User, func(ctx context.Context, tx *db.Tx) (err error) {
		settled, err = o.storeDispatch(ctx, tx, x)
		return err
	})
	if db.TakenKey(err) {
		return fault.Wrap(fault.Busy, "the Idempotency-Key is in use", err).After(time.Second)
	}
	if err != nil {
		return err
	}
	o.noteProfile(ctx, x)
	if settled {
		return o.respond(ctx, x)
	}
	return next(context.WithoutCancel(ctx)) // it is done, whoever has hung up
}

// storeDispatch runs in the transaction, and reports whether an earlier activity did the same.
func (o *Outbox) storeDispatch(ctx context.Context, tx *db.Tx, x *exchange) (settled bool, err error) {
	if err := o.lockAudience(ctx, tx, x); err != nil {
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
	job := o.newJob(x)
	x.answer = answer{Activity: x.activity.ID, Object: o.Handlers.ObjectOf(x.activity), Job: showJob(job.ID, x.inboxes), Unresolved: x.unresolved}
	if earlier != "" {
		if x.answer, err = o.answerAgain(ctx, tx, earlier, x.now); err != nil {
			return false, err
		}
	}
	if err := o.keepAnswer(ctx, tx, x); err != nil {
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
	return earlier != "", tx.AddAudit(ctx, newAudit(x, "ok"))
}

// admitDispatch refuses what the token may not do now, and chooses where the activity goes.
func (o *Outbox) admitDispatch(ctx context.Context, tx *db.Tx, x *exchange) error {
	if x.Assistant {
		if err := o.restrainAssistant(ctx, tx, x); err != nil {
			return err
		}
	}
	return o.chooseInboxes(ctx, tx, x)
}

// newJob returns the fan-out of the activity, without where it goes.
func (o *Outbox) newJob(x *exchange) db.Job {
	return db.Job{ID: uuid.Must(uuid.NewV7()), Activity: x.activity.ID, Object: o.Handlers.OrderOf(x.activity), Type: x.activity.Type, Body: x.body, Audience: x.listAudience()}
}

// showJob returns the fan-out as it is answered.
func showJob(id uuid.UUID, inboxes []db.Inbox) *Job {
	if len(inboxes) == 0 {
		return nil
	}
	counts := db.JobCounts{Total: len(inboxes)}
	recipients := map[vocab.ID]bool{}
	for _, i := range inboxes {
		if i.Skip != "" {
			counts.Skipped++
			continue
		}
		counts.Pending++
		for _, t := range i.Targets {
			recipients[t] = true
		}
	}
	return &Job{JobID: id.String(), Recipients: len(recipients), Counts: counts}
}

// answerAgain returns the answer to an action that an earlier activity did: that activity's, with
// its fan-out as it stands.
func (o *Outbox) answerAgain(ctx context.Context, tx *db.Tx, earlier vocab.ID, now time.Time) (answer, error) {
	a := answer{Activity: earlier}
	stored, err := tx.Activity(ctx, earlier)
	if err != nil {
		return a, err
	}
	if stored != nil {
		did, err := vocab.ParseActivity(stored.Raw)
		if err != nil {
			return a, fmt.Errorf("read stored %s: %w", stored.Type, err)
		}
		a.Object = o.Handlers.ObjectOf(did)
	}
	sent, err := tx.SentJob(ctx, earlier, now)
	if sent != nil {
		a.Job = &Job{JobID: sent.ID.String(), Recipients: sent.Recipients, Counts: sent.JobCounts}
	}
	return a, err
}

// keepAnswer stores the answer first of all: a second dispatch with the key waits here for the
// first one's end.
func (o *Outbox) keepAnswer(ctx context.Context, tx *db.Tx, x *exchange) error {
	if x.IdempotencyKey == "" {
		return nil
	}
	stored, err := vocab.Marshal(x.answer)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return tx.StoreAnswer(ctx, x.IdempotencyKey, db.Answer{Digest: x.digest, Answer: stored}, x.now)
}

func (o *Outbox) storeActivity(ctx context.Context, tx *db.Tx, x *exchange, job db.Job) error {
	a := x.activity
	for _, f := range x.fetched {
		if _, err := tx.AddObject(ctx, handler.Stored(f, x.now)); err != nil {
			return err
		}
	}
	for _, n := range x.named {
		if len(n.Raw) == 0 {
			continue
		}
		if err := tx.SaveActor(ctx, n, x.now); err != nil {
			return err
		}
	}
	err := tx.AddActivity(ctx, db.Activity{ID: uuid.Must(uuid.NewV7()), URI: a.ID, Direction: db.Outbound, Type: a.Type,
		Actor: a.Actor, Object: a.Object.ID, Published: x.now, Raw: a.Raw})
	if err != nil {
		return err
	}
	sent := &handler.Sent{User: x.User, Actor: x.actor, Activity: a, Object: x.before, Target: x.counterpart, Request: x.request, Group: x.group, Stream: x.stream,
		Quoted: x.quoted, Spelling: x.collectSpellings(), Now: x.now}
	if err := o.Handlers.Sent(ctx, tx, sent); err != nil { // object and feed entry are the handler's
		return err
	}
	if a.Type == vocab.Update && x.before != nil {
		if err := o.reviseObject(ctx, tx, x); err != nil {
			return err
		}
	}
	if a.Type == vocab.Create {
		if err := tx.AddUnnamed(ctx, a.Object.ID, x.members); err != nil {
			return err
		}
	}
	if err := tx.EnqueueLeased(ctx, job, x.inboxes, x.now, x.leases); err != nil {
		return err
	}
	if err := o.tellRelays(ctx, tx, x); err != nil {
		return err
	}
	return tx.AddEvent(ctx, handler.NewEvent(handler.EventType(a.Type, "sent"),
		handler.Payload{Activity: a.ID, Type: a.Type, Actor: a.Actor, Object: a.Object.ID, Trust: handler.TrustSelf, Cause: x.cause}, x.now))
}
