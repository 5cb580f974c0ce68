package conversation

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Limits on key packages.
const (
	maxKeyPackage = 16 << 10
	maxPackages   = 100 // packages of one user that are available at one time
	lowPackages   = 5   // if a user has fewer one-time packages, an event tells the user
	ownLifetime   = 84 * 24 * time.Hour
	claimsOfDay   = 20 // one-time packages that one actor claims within 24 hours
	domainClaims  = 40 // one-time packages that one registrable domain claims within 24 hours
	forgetAfter   = 30 * 24 * time.Hour
)

// keyPackages names the lock that publishing and claiming take.
const keyPackages = "key packages"

// publicSuite is the cipher suite that every server and client supports.
const publicSuite = 1

// NewPackage is a key package that a device publishes.
type NewPackage struct {
	Device     string
	Content    []byte
	LastResort bool
}

// Publish stores key packages of the user's devices, so that other actors can claim them. A
// package that is already stored stays unchanged. Publish returns all given packages as they are
// stored, in the given order.
func (r *Registry) Publish(ctx context.Context, u vocab.Username, packages []NewPackage) ([]user.KeyPackage, error) {
	now := r.Now()
	rows, stored, refs := make([]user.KeyPackage, len(packages)), make([]user.KeyPackage, len(packages)), make([][]byte, len(packages))
	for i, p := range packages {
		row, err := readPackage(p, r.Actors.ID(u), now)
		if err != nil {
			return nil, err
		}
		rows[i], refs[i] = row, row.Ref
	}
	err := r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Lock(ctx, keyPackages); err != nil {
			return err
		}
		if err := tx.KeyPackages.Prune(ctx, now.Add(-forgetAfter)); err != nil {
			return err
		}
		for _, row := range rows {
			if _, err := tx.KeyPackages.Add(ctx, row); err != nil {
				return err
			}
		}
		if err := checkStock(ctx, tx, now); err != nil {
			return err
		}
		found, err := tx.KeyPackages.FindAll(ctx, refs)
		for i, ref := range refs {
			stored[i] = found[string(ref)]
		}
		return err
	})
	return stored, err
}

// checkStock refuses more packages than a user may have. If the user was told that few are left
// and there are enough again, checkStock stores that the user can be told anew.
func checkStock(ctx context.Context, tx *user.Tx, now time.Time) error {
	s, err := tx.KeyPackages.CountStats(ctx, now)
	switch {
	case err != nil:
		return err
	case s.Available > maxPackages:
		return unprocessable("too_many_key_packages", "a user has 100 key packages at most")
	case s.Told && s.OneTime >= lowPackages:
		return tx.KeyPackages.NoteLow(ctx, false)
	}
	return nil
}

// readPackage reads a package, and makes the checks that other members make when they add the
// device.
func readPackage(p NewPackage, me vocab.ID, now time.Time) (user.KeyPackage, error) {
	bad := func(err error) error {
		return fault.Wrap(fault.Unprocessable, fault.Public(err), err).WithCode("bad_key_package").At("/keyPackages")
	}
	if len(p.Content) > maxKeyPackage {
		return user.KeyPackage{}, fault.New(fault.TooLarge, "a key package has 16 KiB at most").At("/keyPackages")
	}
	if p.Device == "" || len(p.Device) > 128 {
		return user.KeyPackage{}, unprocessable("invalid_parameter", "a key package names its device, in 1 to 128 bytes").At("/keyPackages")
	}
	k, err := mls.ParseKeyPackage(p.Content)
	if err != nil {
		return user.KeyPackage{}, bad(err)
	}
	if err := k.Check(string(me), now, ownLifetime+time.Hour); err != nil {
		return user.KeyPackage{}, bad(err)
	}
	ref, err := k.Reference()
	if err != nil {
		return user.KeyPackage{}, bad(err)
	}
	return user.KeyPackage{ID: uuid.Must(uuid.NewV7()), Ref: ref, Device: p.Device, Suite: int32(k.Suite), Content: k.Raw, LastResort: p.LastResort,
		NotAfter: time.Unix(int64(k.Leaf.NotAfter), 0), CreatedAt: now}, nil
}

// Packages returns the user's available key packages.
func (r *Registry) Packages(ctx context.Context, u vocab.Username) (all []user.KeyPackage, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		all, err = tx.KeyPackages.List(ctx, r.Now())
		return err
	})
	return all, err
}

// PackageStats is the number of the user's key packages in each state. NeedsMore says that few
// are left.
type PackageStats struct {
	user.PackageStats
	NeedsMore bool
}

// PackageStats counts the user's key packages.
func (r *Registry) PackageStats(ctx context.Context, u vocab.Username) (s PackageStats, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		counts, err := tx.KeyPackages.CountStats(ctx, r.Now())
		if err == nil {
			s = PackageStats{*counts, counts.OneTime < lowPackages}
		}
		return err
	})
	return s, err
}

// Revoke revokes a key package, and the Welcomes for it that no device has confirmed.
func (r *Registry) Revoke(ctx context.Context, u vocab.Username, id uuid.UUID) error {
	return r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		was, err := tx.KeyPackages.Revoke(ctx, id)
		if err == nil && !was {
			err = errNoPackage
		}
		return err
	})
}

var errNoPackage = fault.New(fault.NotFound, "there is no such key package").WithCode("no_key_package")
