package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// turn is what one transaction of a user's database does for its deliveries: it settles what ended, then claims what is
// due. A user has one turn at a time.
type turn struct {
	now      time.Time
	takeBack bool // leases of processes that are gone are over
	ended    []ended
	unpark   map[string]int       // how many deliveries to a host are made due: one that is parked, or as many that are parked or wait
	putOff   map[string]time.Time // until when deliveries to a host wait
	claim    db.ClaimBounds
	count    bool // what is open
}

// taken is what a turn found.
type taken struct {
	rows     []db.Delivery  // claimed
	next     *time.Time     // when the next delivery is due that is not due now; nil: never
	passed   []string       // the hosts that were left out for which something is due
	unparked map[string]int // how many there were
	open     []db.OpenDeliveries
	waited   []time.Time // since when jobs had waited for the first inbox that took them now
}

// ended is a delivery with what became of it.
type ended struct {
	delivery db.Delivery
	outcome  db.Outcome
	gone     []vocab.ID // targets that are gone for good
}

// queue is the deliveries in the users' databases.
type queue interface {
	turn(ctx context.Context, u vocab.Username, t turn) (taken, error)
	// leave settles what ended and gives back every lease.
	leave(ctx context.Context, u vocab.Username, e []ended, now time.Time) error
	// users returns whose deliveries there are.
	users(ctx context.Context) ([]vocab.Username, error)
}

// stored is the queue in PostgreSQL.
type stored struct {
	store Store
	owner string
}

func (s stored) turn(ctx context.Context, u vocab.Username, t turn) (got taken, err error) {
	err = s.store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		if t.takeBack {
			if err := tx.TakeOverDeliveries(ctx, Serving, s.owner, t.now); err != nil {
				return err
			}
		}
		got = taken{unparked: map[string]int{}}
		if got.waited, err = s.settle(ctx, tx, t.ended, t.now); err != nil {
			return err
		}
		for _, host := range slices.Sorted(maps.Keys(t.unpark)) {
			if got.unparked[host], err = tx.ResumeDeliveries(ctx, host, t.unpark[host], t.unpark[host] > 1, t.now); err != nil {
				return err
			}
		}
		if t.count {
			if got.open, err = tx.OpenDeliveries(ctx); err != nil {
				return err
			}
		}
		if t.claim.Most > 0 {
			if got.rows, err = tx.ClaimDeliveries(ctx, s.owner, t.now, deliveryLease, t.claim); err != nil {
				return err
			}
		}
		if except := slices.Concat(t.claim.Except, t.claim.Crowded); len(except) > 0 {
			if got.passed, err = tx.DueHosts(ctx, t.now, except); err != nil {
				return err
			}
			for _, host := range got.passed {
				if until, rests := t.putOff[host]; rests {
					if err := tx.PutOffDeliveries(ctx, host, until, unpark, t.now); err != nil {
						return err
					}
				}
			}
		}
		got.next, err = tx.NextDeliveryAfter(ctx, t.now)
		return err
	})
	return got, err
}

func (s stored) leave(ctx context.Context, u vocab.Username, e []ended, now time.Time) error {
	return s.store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		if _, err := s.settle(ctx, tx, e, now); err != nil {
			return err
		}
		return tx.ReleaseDeliveries(ctx, s.owner, now)
	})
}

func (s stored) settle(ctx context.Context, tx *db.Tx, all []ended, now time.Time) (waited []time.Time, err error) {
	outcomes := make([]db.Outcome, len(all))
	for n, e := range all {
		outcomes[n] = e.outcome
	}
	finished, err := tx.FinishDeliveries(ctx, s.owner, outcomes, now)
	if err != nil {
		return nil, err
	}
	recorded := make(map[int64]bool, len(finished))
	for _, f := range finished {
		recorded[f.Delivery] = true
		if f.Waited != nil {
			waited = append(waited, *f.Waited)
		}
	}
	for _, e := range all {
		if !recorded[e.outcome.Delivery] {
			continue // without the lease another process tells how the delivery ends
		}
		if e.outcome.Status == db.DeliveryFailed {
			if err := tx.AddEvent(ctx, FailedEvent(e.delivery, e.outcome.Error, now)); err != nil {
				return nil, err
			}
		}
		for _, actor := range e.gone {
			if err := leave(ctx, tx, e, actor, now); err != nil {
				return nil, err
			}
		}
	}
	return waited, nil
}

// leave ends what there is between the user and an actor who is gone.
func leave(ctx context.Context, tx *db.Tx, e ended, actor vocab.ID, now time.Time) error {
	changed := false
	for _, kind := range []string{db.Follower, db.Following} {
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

func (s stored) users(ctx context.Context) ([]vocab.Username, error) {
	all, err := s.store.Users(ctx)
	if err != nil {
		return nil, err
	}
	active := make([]vocab.Username, 0, len(all))
	for _, u := range all {
		if u.State == db.UserActive {
			active = append(active, u.Name)
		}
	}
	return active, nil
}
