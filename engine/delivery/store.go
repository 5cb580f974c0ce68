package delivery

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// turn is one transaction of a user's database: it writes outcomes, then claims deliveries that
// are due.
type turn struct {
	now      time.Time
	takeOver bool    // the leases of processes that have ended are taken over
	recovers bool    // this process's leases end if they are older than settleTime and not in held
	held     []int64 // the deliveries in memory, if recovers is true
	entries  []entry
	resume   map[string]int       // by host, how many deliveries become due again; 1 means one parked delivery, more means parked and waiting ones
	postpone map[string]time.Time // by host, until when its deliveries wait
	claim    user.ClaimBounds
	count    bool // open deliveries are counted
}

// turnResult is the result of a turn.
type turnResult struct {
	rows    []user.Delivery // the claimed deliveries
	next    *time.Time      // when the next delivery that is not due yet becomes due; nil if there is none
	passed  []string        // entries of claim.Except and claim.Crowded with due deliveries
	resumed map[string]int
	parked  []string // hosts to which deliveries stay parked, as listParked has found them
	open    []user.OpenDeliveries
	waited  []time.Time // for each job whose first success the turn wrote, when the job was created
}

// hasMore reports whether a turn claimed as many deliveries as it was allowed, so that more may
// be due.
func (t turn) hasMore(claimed []user.Delivery) bool {
	forwarded := 0
	for _, r := range claimed {
		if r.Forwarded {
			forwarded++
		}
	}
	return t.claim.Most > 0 && (len(claimed)-forwarded == t.claim.Most || forwarded > 0 && forwarded == t.claim.Forwarded)
}

// userStore accesses the deliveries in the users' databases.
type userStore interface {
	runTurn(ctx context.Context, u vocab.Username, t turn) (turnResult, error)
	// release writes outcomes and releases every lease.
	release(ctx context.Context, u vocab.Username, all []entry, now time.Time) error
	owingUsers(ctx context.Context) ([]vocab.Username, error)
	isRemoved(ctx context.Context, u vocab.Username) bool
}

// postgres is the userStore in PostgreSQL.
type postgres struct {
	store Store
	users Users
	owner string // the name in the leases
	log   *slog.Logger
}

// runTurn implements userStore. If the transaction of the turn fails because of an outcome,
// runTurn writes the outcomes by settleEntries, and then runs the turn again without them.
func (p postgres) runTurn(ctx context.Context, u vocab.Username, t turn) (turnResult, error) {
	got, err := p.commitTurn(ctx, u, t)
	if !isLasting(err) || len(t.entries) == 0 {
		return got, err
	}
	waited, err := p.settleEntries(ctx, u, t.entries, t.now)
	if err != nil {
		return turnResult{}, err
	}
	t.entries = nil
	got, err = p.commitTurn(ctx, u, t)
	got.waited = waited
	return got, err
}

// commitTurn runs a turn in one transaction.
func (p postgres) commitTurn(ctx context.Context, u vocab.Username, t turn) (got turnResult, err error) {
	err = p.store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		if t.takeOver {
			if err := tx.Deliveries.TakeOver(ctx, Serving, p.owner, t.now); err != nil {
				return err
			}
		}
		if t.recovers {
			if err := tx.Deliveries.RecoverLeases(ctx, p.owner, t.held, t.now.Add(leaseTime-settleTime), t.now); err != nil {
				return err
			}
		}
		got = turnResult{resumed: map[string]int{}}
		if got.waited, err = p.writeEntries(ctx, tx, t.entries, t.now); err != nil {
			return err
		}
		for _, host := range slices.Sorted(maps.Keys(t.resume)) {
			if got.resumed[host], err = tx.Deliveries.Resume(ctx, host, t.resume[host], t.resume[host] > 1, t.now); err != nil {
				return err
			}
		}
		if got.parked, err = listParked(ctx, tx, t, got.resumed); err != nil {
			return err
		}
		if t.count {
			if got.open, err = tx.Deliveries.CountOpen(ctx); err != nil {
				return err
			}
		}
		if t.claim.Most > 0 {
			if got.rows, err = tx.Deliveries.Claim(ctx, p.owner, t.now, leaseTime, t.claim); err != nil {
				return err
			}
		}
		if got.passed, err = postponePassed(ctx, tx, t); err != nil {
			return err
		}
		got.next, err = tx.Deliveries.NextAfter(ctx, t.now)
		return err
	})
	return got, err
}

// listParked returns the hosts to which deliveries are parked. A turn that takes over leases lists
// all such hosts, because the process that had the leases may have ended before it stored them in
// the instance database. Any other turn lists the hosts to which it resumed fewer deliveries than
// it may.
func listParked(ctx context.Context, tx *user.Tx, t turn, resumed map[string]int) ([]string, error) {
	if t.takeOver {
		return tx.Deliveries.ListParkedHosts(ctx)
	}
	var parked []string
	for _, host := range slices.Sorted(maps.Keys(t.resume)) {
		if resumed[host] == t.resume[host] {
			continue
		}
		has, err := tx.Deliveries.HasParked(ctx, host)
		if err != nil {
			return nil, err
		}
		if has {
			parked = append(parked, host)
		}
	}
	return parked, nil
}

// postponePassed returns the hosts that the claim left out although deliveries to them are due. If
// a host's breaker is open and there are many such deliveries to the host, they are postponed,
// because each claim would have to read past them.
func postponePassed(ctx context.Context, tx *user.Tx, t turn) ([]string, error) {
	except := slices.Concat(t.claim.Except, t.claim.Crowded)
	if len(except) == 0 {
		return nil, nil
	}
	passed, err := tx.Deliveries.ListDueHosts(ctx, t.now, except)
	if err != nil {
		return nil, err
	}
	for _, host := range passed {
		if until, open := t.postpone[host]; open {
			if err := tx.Deliveries.PutOff(ctx, host, until, resumeBatch, t.now); err != nil {
				return nil, err
			}
		}
	}
	return passed, nil
}

func (p postgres) release(ctx context.Context, u vocab.Username, all []entry, now time.Time) error {
	err := p.commitRelease(ctx, u, all, now)
	if !isLasting(err) || len(all) == 0 {
		return err
	}
	if _, err := p.settleEntries(ctx, u, all, now); err != nil {
		return err
	}
	return p.commitRelease(ctx, u, nil, now)
}

// commitRelease writes outcomes and releases every lease in one transaction.
func (p postgres) commitRelease(ctx context.Context, u vocab.Username, all []entry, now time.Time) error {
	return p.store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := p.writeEntries(ctx, tx, all, now); err != nil {
			return err
		}
		return tx.Deliveries.Release(ctx, p.owner, now)
	})
}

// writeEntries writes outcomes, and their consequences for the user.
func (p postgres) writeEntries(ctx context.Context, tx *user.Tx, all []entry, now time.Time) (waited []time.Time, err error) {
	outcomes := make([]user.Outcome, len(all))
	for n, e := range all {
		outcomes[n] = e.outcome
	}
	finished, err := tx.Deliveries.Finish(ctx, p.owner, outcomes, now)
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
			continue // the lease is lost, so another process decides how the delivery ends
		}
		if e.outcome.Status == user.DeliveryFailed && tx.Deliveries.IsUsersOwn(e.delivery) {
			if err := tx.Events.Add(ctx, FailedEvent(e.delivery, e.outcome.Error, now)); err != nil {
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

// endRelationships ends the relationships between the user and an actor who is gone, removes the
// actor from the user's groups, and closes the encrypted conversations that the actor hosts or has
// with the user alone.
func endRelationships(ctx context.Context, tx *user.Tx, e entry, actor vocab.ID, now time.Time) error {
	if _, err := tx.Conversations.CloseHostedBy(ctx, actor, now, nil); err != nil { // while it can see the relationships
		return err
	}
	changed, err := tx.Relationships.EndAll(ctx, actor, now)
	if err != nil {
		return err
	}
	if err := tx.Groups.LeaveAll(ctx, actor); err != nil {
		return err
	}
	if !changed {
		return nil
	}
	return tx.Events.Add(ctx, user.NewEvent("relationship.changed", user.SourceAP, user.TrustSelf,
		vocab.Doc{"activityUri": string(e.delivery.Activity), "actorUri": string(actor), "error": "the actor is gone"}, now))
}

// owingUsers returns the users whose deliveries are made: active ones and those being deleted.
// The deliveries of suspended users wait.
func (p postgres) owingUsers(ctx context.Context) ([]vocab.Username, error) {
	all, err := p.users.All(ctx)
	if err != nil {
		return nil, err
	}
	owing := make([]vocab.Username, 0, len(all))
	for _, u := range all {
		if u.State == instance.UserActive || u.State == instance.UserDeleting && !u.IsRemoved() {
			owing = append(owing, u.Name)
		}
	}
	return owing, nil
}

func (p postgres) isRemoved(ctx context.Context, u vocab.Username) bool {
	return p.users.IsRemoved(ctx, u)
}
