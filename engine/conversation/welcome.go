package conversation

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// welcomeLease is how long a Welcome that was handed out is not handed out again: a device that
// does not confirm it has crashed, or is slow to store what it joined.
const welcomeLease = 10 * time.Minute

const mostWelcomes = 8

// Welcomes hands out Welcomes that wait for the user, of one device unless device is empty.
func (r *Registry) Welcomes(ctx context.Context, u vocab.Username, device string) (all []db.Welcome, err error) {
	now := r.Now()
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		all, err = tx.LeaseWelcomes(ctx, r.Actors.ID(u), device, mostWelcomes, now, now.Add(welcomeLease))
		return err
	})
	return all, err
}

// ConfirmWelcome notes that the user's device has joined by a Welcome. To confirm it again changes
// nothing.
func (r *Registry) ConfirmWelcome(ctx context.Context, u vocab.Username, id uuid.UUID) error {
	var was string
	err := r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		was, err = tx.ConfirmWelcome(ctx, id, r.Actors.ID(u))
		return err
	})
	switch {
	case err != nil:
		return err
	case was == "":
		return fault.New(fault.NotFound, "there is no such Welcome").WithCode("no_welcome")
	case was == db.WelcomeInvalid:
		return fault.New(fault.Gone, "the key package of the Welcome was revoked").WithCode("welcome_invalid")
	}
	return nil
}
