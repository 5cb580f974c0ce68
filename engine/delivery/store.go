package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// turn is one transaction of a user's database: it writes outcomes, then claims deliveries that
// are due.
type turn struct {
	now      time.Time
	takeOver bool // leases of processes that are gone are over
	entries  []entry
	resume   map[string]int       // how many deliveries to a host come back: one, a parked one, or as many that are parked or wait
	postpone map[string]time.Time // until when deliveries to a host wait
	claim    db.ClaimBounds
	count    bool // what is open
}

// turnResult is the result of a turn.
type turnResult struct {
	rows    []db.Delivery // claimed
	next    *time.Time    // when the next delivery is due that is not due now; nil: never
	passed  []string      // the hosts that were left out for which something is due
	resumed map[string]int
	open    []db.OpenDeliveries
	waited  []time.Time // since when jobs had waited for the first inbox that took them now
}

// hasMore reports whether a turn claimed as many deliveries as it might, so that there may be
// more.
func (t turn) hasMore(claimed []db.Delivery) bool {
	forwarded := 0
	for _, r := range claimed {
		if r.Forwarded {
			forwarded++
		}
	}
	return t.claim.Most > 0 && (len(claimed)-forwarded == t.claim.Most || forwarded > 0 && forwarded == t.claim.Forwarded)
}

// userStore is the deliveries in the users' databases.
type userStore interface {
	runTurn(ctx context.Context, u vocab.Username, t turn) (turnResult, error)
	// release writes outcomes and gives back every lease.
	release(ctx context.Context, u vocab.Username, all []entry, now time.Time) error
	owingUsers(ctx context.Context) ([]vocab.Username, error)
}

// postgres is the userStore in PostgreSQL.
type postgres struct {
	store Store
	users Users
	owner string // of the leases
}

func (p postgres) runTurn(ctx context.Context, u vocab.Username, t turn) (got turnResult, err error) {
	err = p.store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		if t.takeOver {
			if err := tx.TakeOverDeliveries(ctx, Serving, p.owner, t.now); err != nil {
				return err
			}
		}
		got = turnResult{resumed: map[string]int{}}
		if got.waited, err = p.writeEntries(ctx, tx, t.entries, t.now); err != nil {
			return err
		}
		for _, host := range slices.Sorted(maps.Keys(t.resume)) {
			if got.resumed[host], err = tx.ResumeDeliveries(ctx, host, t.resume[host], t.resume[host] > 1, t.now); err != nil {
				return err
			}
		}
		if t.count {
			if got.open, err = tx.OpenDeliveries(ctx); err != nil {
				return err
			}
		}
		if t.claim.Most > 0 {
			if got.rows, err = tx.ClaimDeliveries(ctx, p.owner, t.now, leaseTime, t.claim); err != nil {
				return err
			}
		}
		if got.passed, err = postponePassed(ctx, tx, t); err != nil {
			return err
		}
		got.next, err = tx.NextDeliveryAfter(ctx, t.now)
		return err
	})
	return got, err
}

// postponePassed returns the hosts that the claim left out for which something is due. Many
// deliveries to one that is left alone are postponed: each claim would read past them.
func postponePassed(ctx context.Context, tx *db.Tx, t turn) ([]string, error) {
	except := slices.Concat(t.claim.Except, t.claim.Crowded)
	if len(except) == 0 {
		return nil, nil
	}
	passed, err := tx.DueHosts(ctx, t.now, except)
	if err != nil {
		return nil, err
	}
	for _, host := range passed {
		if until, open := t.postpone[host]; open {
			if err := tx.PutOffDeliveries(ctx, host, until, resumeBatch, t.now); err != nil {
				return nil, err
			}
		}
	}
	return passed, nil
}

func (p postgres) release(ctx context.Context, u vocab.Username, all []entry, now time.Time) error {
	return p.store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		if _, err := p.writeEntries(ctx, tx, all, now); err != nil {
			return err
		}
		return tx.ReleaseDeliveries(ctx, p.owner, now)
	})
}

// writeEntries writes outcomes, and what follows from them for the user.
func (p postgres) writeEntries(ctx context.Context, tx *db.Tx, all []entry, now time.Time) (waited []time.Time, err error) {
	outcomes := make([]db.Outcome, len(all))
	for n, e := range all {
		outcomes[n] = e.outcome
	}
	finished, err := tx.FinishDeliveries(ctx, p.owner, outcomes, now)
	if err != nil {
		return nil, err
	}
	written := make(map[int64]bool, len(finished))
	for _, f := range finished {
		written[f.Delivery] = true
		if f.Waited != nil {
			waited = append(waited, *f.Waited)
		}
	}
	for _, e := range all {
		if !written[e.outcome.Delivery] {
			continue // without the lease another process decides how the delivery ends
		}
		if e.outcome.Status == db.DeliveryFailed {
			if err := tx.AddEvent(ctx, FailedEvent(e.delivery, e.outcome.Error, now)); err != nil {
				return nil, err
			}
		}
		for _, actor := range e.gone {
			if err := endRelationships(ctx, tx, e, actor, now); err != nil {
				return nil, err
			}
		}
	}
	return waited, nil
}

// endRelationships ends the relationships and memberships between the user and an actor who is
// gone.
func endRelationships(ctx context.Context, tx *db.Tx, e entry, actor vocab.ID, now time.Time) error {
	changed := false
	for _, kind := range db.RelationshipTypes {
		ended, err := tx.EndRelationship(ctx, kind, actor)
		if err != nil {
			return err
		}
		changed = changed || ended
	}
	if err := tx.LeaveGroups(ctx, actor); err != nil {
		return err
	}
	if !changed {
		return nil
	}
	return tx.AddEvent(ctx, db.Event{Type: "relationship.changed", Source: "ap", At: now, Payload: vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(),
		"activityUri": string(e.delivery.Activity), "actorUri": string(actor), "error": "the actor is gone", "trust": "self"}.JSON()})
}

// owingUsers returns the users whose deliveries are made: those of suspended ones wait.
func (p postgres) owingUsers(ctx context.Context) ([]vocab.Username, error) {
	all, err := p.users.All(ctx)
	if err != nil {
		return nil, err
	}
	owing := make([]vocab.Username, 0, len(all))
	for _, u := range all {
		if u.State == instance.UserActive || u.State == instance.UserDeleting {
			owing = append(owing, u.Name)
		}
	}
	return owing, nil
}
