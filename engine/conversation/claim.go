package conversation

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Claim takes a key package of each device of the user for an actor who wants to add them. A
// stranger to the user gets none, and no actor gets them all: when they are used up, only those of
// last resort are left.
func (r *Registry) Claim(ctx context.Context, u vocab.Username, claimer vocab.ID) (claimed []db.KeyPackage, err error) {
	now := r.Now()
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		if claimer != r.Actors.ID(u) {
			if err := checkClaimer(ctx, tx, claimer, now); err != nil {
				return err
			}
		}
		if claimed, err = tx.ClaimKeyPackages(ctx, claimer, now); err != nil {
			return err
		}
		if len(claimed) == 0 {
			return errNoPackage
		}
		return tellLow(ctx, tx, claimer, now)
	})
	return claimed, err
}

// checkClaimer refuses actors who are strangers to the user, and those who claim too many.
func checkClaimer(ctx context.Context, tx *db.Tx, claimer vocab.ID, now time.Time) error {
	s, err := tx.Standing(ctx, claimer)
	if err != nil {
		return err
	}
	knows := s.Following == db.Accepted
	for _, f := range s.Friendship {
		knows = knows || f.Status == db.Accepted
	}
	if !knows {
		if knows, err = tx.SharesConversation(ctx, claimer); err != nil {
			return err
		}
	}
	if !knows || s.Blocking || s.BlockedBy {
		return fault.New(fault.Forbidden, "the key packages are for actors that the user follows or talks with").WithCode("claim_refused")
	}
	if err := tx.Lock(ctx, "claims of "+string(claimer)); err != nil {
		return err
	}
	n, err := tx.CountClaims(ctx, claimer, now.Add(-24*time.Hour))
	if err == nil && n >= claimsOfDay {
		err = fault.New(fault.RateLimited, "an actor claims 20 key packages of a user a day").WithCode("claim_limit").After(time.Hour)
	}
	return err
}

// tellLow tells the user, once until there are enough again, that few packages are left.
func tellLow(ctx context.Context, tx *db.Tx, claimer vocab.ID, now time.Time) error {
	s, err := tx.PackageStats(ctx, now)
	if err != nil || s.Available >= lowPackages || s.Told || s.Claimed == 0 {
		return err
	}
	if err := tx.NoteLow(ctx, true); err != nil {
		return err
	}
	d := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "available": s.Available, "trust": "self"}
	return tx.AddEvent(ctx, db.Event{Type: eventLow, Source: "local", Payload: d.JSON(), At: now})
}

// PublicPackages returns the key packages that everybody may see: one of each device, of last
// resort.
func (r *Registry) PublicPackages(ctx context.Context, tx *db.Tx) ([]db.KeyPackage, error) {
	return tx.PublicKeyPackages(ctx, publicSuite, r.Now(), maxPackages)
}

// PublicPackage returns a key package that everybody may see. The fault is Gone for one that was.
func (r *Registry) PublicPackage(ctx context.Context, tx *db.Tx, id uuid.UUID) (*db.KeyPackage, error) {
	k, err := tx.KeyPackage(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case k == nil || !k.LastResort || k.Suite != publicSuite:
		return nil, errNoPackage
	case k.State != db.PackageAvailable || !k.NotAfter.After(r.Now()):
		return nil, fault.New(fault.Gone, "the key package was replaced or revoked")
	}
	return k, nil
}
