package conversation

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of key packages.
const (
	maxKeyPackage = 16 << 10
	maxPackages   = 100 // of a user that are available
	lowPackages   = 5   // with fewer the user is told
	ownLifetime   = 84 * 24 * time.Hour
	claimsOfDay   = 20 // packages that one actor may claim
	forgetAfter   = 30 * 24 * time.Hour
)

// publicSuite is the cipher suite that every peer knows.
const publicSuite = 1

// NewPackage is a key package that a device publishes.
type NewPackage struct {
	Device     string
	Content    []byte
	LastResort bool
}

// Publish publishes key packages of the user's devices. One that is published already stays as it
// is.
func (r *Registry) Publish(ctx context.Context, u vocab.Username, packages []NewPackage) ([]db.KeyPackage, error) {
	now := r.Now()
	rows := make([]db.KeyPackage, len(packages))
	for i, p := range packages {
		row, err := readPackage(p, r.Actors.ID(u), now)
		if err != nil {
			return nil, err
		}
		rows[i] = row
	}
	err := r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.Lock(ctx, "key packages"); err != nil {
			return err
		}
		if err := tx.PruneKeyPackages(ctx, now.Add(-forgetAfter)); err != nil {
			return err
		}
		for _, row := range rows {
			if _, err := tx.AddKeyPackage(ctx, row); err != nil {
				return err
			}
		}
		return checkStock(ctx, tx, now)
	})
	return rows, err
}

// checkStock refuses more packages than a user may have, and notes when there are enough again.
func checkStock(ctx context.Context, tx *db.Tx, now time.Time) error {
	s, err := tx.PackageStats(ctx, now)
	switch {
	case err != nil:
		return err
	case s.Available+s.LastResort > maxPackages:
		return unprocessable("too_many_key_packages", "a user has 100 key packages at most")
	case s.Told && s.Available >= lowPackages:
		return tx.NoteLow(ctx, false)
	}
	return nil
}

// readPackage checks a package as others will who add the device.
func readPackage(p NewPackage, me vocab.ID, now time.Time) (db.KeyPackage, error) {
	bad := func(err error) error {
		return fault.Wrap(fault.Unprocessable, fault.Public(err), err).WithCode("bad_key_package").At("/keyPackages")
	}
	if len(p.Content) > maxKeyPackage {
		return db.KeyPackage{}, fault.New(fault.TooLarge, "a key package has 16 KiB at most").At("/keyPackages")
	}
	if p.Device == "" || len(p.Device) > 128 {
		return db.KeyPackage{}, unprocessable("invalid_parameter", "a key package names its device, in 1 to 128 bytes").At("/keyPackages")
	}
	k, err := mls.ParseKeyPackage(p.Content)
	if err != nil {
		return db.KeyPackage{}, bad(err)
	}
	if err := k.Check(string(me), now, ownLifetime+time.Hour); err != nil {
		return db.KeyPackage{}, bad(err)
	}
	ref, err := k.Reference()
	if err != nil {
		return db.KeyPackage{}, bad(err)
	}
	return db.KeyPackage{ID: uuid.Must(uuid.NewV7()), Ref: ref, Device: p.Device, Suite: int32(k.Suite), Content: k.Raw, LastResort: p.LastResort,
		NotAfter: time.Unix(int64(k.Leaf.NotAfter), 0), CreatedAt: now}, nil
}

// Packages returns the user's key packages that are available.
func (r *Registry) Packages(ctx context.Context, u vocab.Username) (all []db.KeyPackage, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		all, err = tx.KeyPackages(ctx, r.Now())
		return err
	})
	return all, err
}

// PackageStats counts the user's key packages.
type PackageStats struct {
	db.PackageStats
	NeedsMore bool
}

// PackageStats counts the user's key packages.
func (r *Registry) PackageStats(ctx context.Context, u vocab.Username) (s PackageStats, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		counts, err := tx.PackageStats(ctx, r.Now())
		if err == nil {
			s = PackageStats{*counts, counts.Available < lowPackages}
		}
		return err
	})
	return s, err
}

// Revoke takes a key package back, and the Welcomes that wait for it.
func (r *Registry) Revoke(ctx context.Context, u vocab.Username, id uuid.UUID) error {
	return r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		was, err := tx.RevokeKeyPackage(ctx, id)
		if err == nil && !was {
			err = errNoPackage
		}
		return err
	})
}

var errNoPackage = fault.New(fault.NotFound, "there is no such key package").WithCode("no_key_package")
