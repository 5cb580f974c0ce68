package admin

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// DropReport is the result of Drop.
type DropReport struct {
	Matched    int              `json:"matched"`
	Dropped    int              `json:"dropped"`
	Delivering int              `json:"delivering"` // not dropped, because an attempt is under way
	Failures   deliveryFailures `json:"failures"`
	DryRun     bool             `json:"dry_run"`
}

// dropped is the reason stored with a dropped delivery.
const dropped = "dropped by the operator"

// stillOwed are the states of deliveries that will be attempted again.
var stillOwed = []string{user.DeliveryPending, user.DeliveryParked}

// Drop marks owed deliveries as skipped. The choice c names an activity, a fan-out or hosts.
// Drop does not change a delivery while another process sends it. The fault is NotFound when
// there is no such fan-out.
func (ds Deliveries) Drop(ctx context.Context, c DeliveryChoice, dryRun bool) (DropReport, error) {
	r := DropReport{Failures: deliveryFailures{}, DryRun: dryRun}
	users, err := ds.chooseOwners(ctx, c)
	if err != nil {
		return r, err
	}
	known := c.Job == (uuid.UUID{}) && c.Activity == ""
	for _, u := range users {
		found, err := ds.dropUser(ctx, u, c, &r)
		if err := r.Failures.recordFailure(ctx, u, err); err != nil {
			return r, err
		}
		known = known || found
	}
	if !known && len(r.Failures) == 0 {
		return r, unknownDelivery(c)
	}
	return r, nil
}

// dropUser drops deliveries of one user. It reports whether any fan-out matched.
func (ds Deliveries) dropUser(ctx context.Context, u vocab.Username, c DeliveryChoice, r *DropReport) (found bool, err error) {
	choice := user.DeliveryChoice{DeliveryFilter: c.DeliveryFilter, States: stillOwed}
	var chosen []user.ChosenHost
	var under int
	err = ds.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		jobs, err := tx.Jobs.List(ctx, choice.DeliveryFilter, "", nil, 1, ds.in.Now())
		if err != nil {
			return err
		}
		found = len(jobs) > 0
		if under, err = tx.Deliveries.CountLeased(ctx, choice.DeliveryFilter, ds.in.Now()); err != nil {
			return err
		}
		chosen, err = tx.Deliveries.CountChosen(ctx, choice, ds.in.Now())
		return err
	})
	r.Delivering += under
	for _, h := range chosen {
		r.Matched += h.Count
	}
	if err != nil || r.DryRun {
		return found, err
	}
	for after, n := int64(0), deliveryPage; n == deliveryPage; {
		err := ds.in.DB.Write(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
			after, n, err = tx.Deliveries.Drop(ctx, choice, dropped, after, deliveryPage, ds.in.Now())
			return err
		})
		if err != nil {
			return found, err
		}
		r.Dropped += n
	}
	return found, nil
}
